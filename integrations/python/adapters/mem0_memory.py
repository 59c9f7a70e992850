"""mem0. `pip install mem0ai`. `raw` stores texts as they are; `infer` lets mem0's extraction ask the model.

The embedder is the hashing one beside this file: memtrial's gateway serves no embeddings. A run of which mem0's extraction
keeps nothing is told as a degraded write.
"""

import os
import sys

os.environ.setdefault("MEM0_TELEMETRY", "False")
os.environ.setdefault("MEM0_DIR", os.environ.get("MEMTRIAL_STATE", ".") + "/tmp/mem0")
os.environ.setdefault("OPENAI_API_KEY", "none")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mem0
from embedder import SIZE, embed
from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase
from mem0.utils.factory import EmbedderFactory
from memtrial_memory import MemorySystem, Record, serve

INFER = "infer" in sys.argv[1:]


class Hashing(EmbeddingBase):
    def __init__(self, config=None):
        super().__init__(config)

    def embed(self, text, memory_action=None):
        return embed(text)

    def embed_batch(self, texts, memory_action=None):
        return [embed(text) for text in texts]


class Mem0(MemorySystem):
    name = "mem0-infer" if INFER else "mem0-raw"
    version = getattr(mem0, "__version__", "unknown")
    needs_model = INFER

    def open(self):
        EmbedderFactory.provider_to_class["openai"] = f"{__name__}.Hashing"
        sys.modules.setdefault(__name__, sys.modules["__main__"])
        state = str(self.state)
        model = {"model": "memory", "temperature": 0.0}
        if base := os.environ.get("OPENAI_BASE_URL"):
            model["openai_base_url"] = base
        self.memory = Memory.from_config(
            {
                "llm": {"provider": "openai", "config": model},
                "embedder": {"provider": "openai", "config": {"embedding_dims": SIZE}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "collection_name": "runs",
                        "path": f"{state}/qdrant",
                        "embedding_model_dims": SIZE,
                        "on_disk": True,
                    },
                },
                "history_db_path": f"{state}/history.db",
            }
        )
        self.count = 0

    def ingest(self, experience):
        added = self.memory.add(
            [{"role": "user", "content": experience.text()}],
            user_id="memtrial",
            metadata={"run": experience.id},
            infer=INFER,
        )
        # mem0 passes over replies that it cannot read: what it kept tells.
        if not added.get("results"):
            self.degraded(f"mem0 kept nothing of {experience.id}")
        self.count += len(added.get("results") or [])

    def retrieve(self, query, k):
        if not self.count or not k:
            return []
        found = self.memory.search(
            query.text, top_k=k, filters={"user_id": "memtrial"}, threshold=0.0
        )
        return [
            Record(item["metadata"]["run"], item["memory"], item.get("score")) for item in found["results"]
        ]


if __name__ == "__main__":
    serve(Mem0)
