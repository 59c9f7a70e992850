"""The smallest example: the earlier run that shares most words with the issue. Needs nothing but Python."""

import re

from memtrial_memory import MemorySystem, Record, serve


class Words(MemorySystem):
    version = "1"

    def open(self):
        self.runs = []

    def ingest(self, experience):
        words = set(re.findall(r"[a-z]{4,}", experience.text().lower()))
        self.runs.append((experience.id, words, experience.text()))
        with open(self.state / "runs.txt", "a", encoding="utf-8") as file:
            file.write(f"{experience.id}\t{len(words)}\n")

    def retrieve(self, query, k):
        asked = set(re.findall(r"[a-z]{4,}", query.text.lower()))
        scored = [(len(asked & words), id, text) for id, words, text in self.runs]
        best = sorted((item for item in scored if item[0]), key=lambda item: (-item[0], item[1]))
        return [Record(id, text, score) for score, id, text in best[:k]]


if __name__ == "__main__":
    serve(Words)
