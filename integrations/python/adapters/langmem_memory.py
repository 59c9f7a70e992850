"""LangMem's tools over LangGraph's in-memory store. `pip install langmem`. No model: the tools write and search as they are
told; the embedder is the hashing one beside this file."""

import json
from importlib.metadata import version

from embedder import SIZE, embed
from langgraph.store.memory import InMemoryStore
from langmem import create_manage_memory_tool, create_search_memory_tool
from memtrial_memory import MemorySystem, Record, serve


class LangMem(MemorySystem):
    name = "langmem"
    version = version("langmem")

    def open(self):
        index = {"dims": SIZE, "embed": lambda texts: [embed(text) for text in texts], "fields": ["content"]}
        store = InMemoryStore(index=index)
        self.write = create_manage_memory_tool(namespace=("runs",), store=store)
        self.search = create_search_memory_tool(namespace=("runs",), store=store)
        self.runs = {}

    def ingest(self, experience):
        text = experience.text()
        said = self.write.invoke({"content": text, "action": "create"})
        # "created memory <key>"
        self.runs[said.rsplit(" ", 1)[-1]] = experience.id
        with open(self.state / "runs.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps([experience.id, text]) + "\n")

    def retrieve(self, query, k):
        if not self.runs or not k:
            return []
        found = self.search.invoke({"query": query.text, "limit": k})
        items = json.loads(found[0] if isinstance(found, (list, tuple)) else found)
        return [
            Record(self.runs[item["key"]], item["value"]["content"], item.get("score")) for item in items
        ]


if __name__ == "__main__":
    serve(LangMem)
