"""bm25s over issues and patches. `pip install bm25s`. No model."""

import json

import bm25s
from memtrial_memory import MemorySystem, Record, serve


class Bm25s(MemorySystem):
    name = "bm25s"
    version = bm25s.__version__

    def open(self):
        self.runs, self.index = [], None

    def ingest(self, experience):
        self.runs.append((experience.id, experience.text()))
        with open(self.state / "runs.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(self.runs[-1]) + "\n")

    def flush(self):
        if self.runs:
            self.index = bm25s.BM25()
            self.index.index(self.tokens([text for _, text in self.runs]), show_progress=False)

    def tokens(self, texts):
        return bm25s.tokenize(texts, stopwords="en", show_progress=False)

    def retrieve(self, query, k):
        if not self.runs or not k:
            return []
        found, scores = self.index.retrieve(
            self.tokens([query.text]), k=min(k, len(self.runs)), show_progress=False
        )
        hits = zip(found[0].tolist(), scores[0].tolist())
        return [Record(*self.runs[number], score=score) for number, score in hits if score > 0]


if __name__ == "__main__":
    serve(Bm25s)
