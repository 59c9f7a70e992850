"""A-MEM. `pip install a-mem` (`chromadb`, `litellm`). Every note is analysed and linked by the model.

A-MEM passes over the failure of a model call and keeps the plain note: each is told as a degraded write. Its links may
rewrite earlier notes, so that the order matters. Opening a note counts the visit in memory, not in the store. The embedder
is the hashing one beside this file.
"""

import logging
import os

os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("OPENAI_API_KEY", "none")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from importlib.metadata import version

import agentic_memory.memory_system as amem
import agentic_memory.retrievers as retrievers
from chromadb.api.types import EmbeddingFunction
from embedder import embed
from memtrial_memory import MemorySystem, Record, serve


class Hashing(EmbeddingFunction):
    def __init__(self, *_args, **_more):
        pass

    def __call__(self, input):
        return [embed(text) for text in input]

    @staticmethod
    def name():
        return "memtrial-hashing"

    def get_config(self):
        return {}

    @staticmethod
    def build_from_config(config):
        return Hashing()


class Watched:
    """Notes what goes wrong with the model: A-MEM itself goes on without a word."""

    def __init__(self, inner, said):
        self.inner, self.said = inner, said

    def get_completion(self, *args, **more):
        try:
            return self.inner.get_completion(*args, **more)
        except Exception as error:
            self.said(f"{type(error).__name__}: {str(error)[:200]}")
            raise


class Told(logging.Handler):
    def __init__(self, said):
        super().__init__(logging.ERROR)
        self.said = said

    def emit(self, record):
        self.said(record.getMessage()[:200])


class AMem(MemorySystem):
    name = "a-mem"
    version = version("a-mem")
    needs_model = True

    def open(self):
        retrievers.SentenceTransformerEmbeddingFunction = Hashing
        self.notes = {}
        self.system = amem.AgenticMemorySystem(
            llm_backend="openai", llm_model="memory", storage_path=str(self.state / "chroma")
        )
        controller = self.system.llm_controller
        controller.llm = Watched(controller.llm, self.degraded)
        amem.logger.addHandler(Told(self.degraded))
        analyse = self.system.analyze_content

        def analysed(content):
            found = analyse(content)
            if not isinstance(found, dict) or not found.get("keywords"):
                self.degraded("no keywords came of the model's reply; the plain note was kept")
            return found if isinstance(found, dict) else {}

        self.system.analyze_content = analysed

    def ingest(self, experience):
        # The same time for all: a clock in the store would make each build another.
        note = self.system.add_note(experience.text(), time="200001010000")
        self.notes[note] = experience.id

    def retrieve(self, query, k):
        if not self.notes or not k:
            return []
        found = self.system.retriever.search(query.text, min(k, len(self.notes)))
        hits = zip(found["ids"][0], found["distances"][0])
        records = []
        for note, distance in hits:
            kept = self.system.read(note)
            text = f"{kept.content}\nContext: {kept.context}\nKeywords: {', '.join(kept.keywords)}"
            records.append(Record(self.notes[note], text, -distance))
        return records


if __name__ == "__main__":
    serve(AMem)
