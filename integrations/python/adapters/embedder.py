"""A hashing embedder: words and their neighbours as 256 numbers. It needs no weights and no network, and knows no
meaning: what it finds similar shares words. Results with it say nothing about a system's own embedder."""

import hashlib
import math
import re

SIZE = 256


def embed(text):
    words = re.findall(r"[a-z0-9]{2,}", text.lower())
    vector = [0.0] * SIZE
    for token in words + [" ".join(pair) for pair in zip(words, words[1:])]:
        digest = hashlib.blake2b(token.encode(), digest_size=8).digest()
        vector[int.from_bytes(digest[:4], "big") % SIZE] += 1.0 if digest[4] & 1 else -1.0
    length = math.sqrt(sum(x * x for x in vector)) or 1.0
    return [x / length for x in vector]
