"""Plugs a memory system into memtrial: the protocol memtrial-memory/1 over standard input and output.

    from memtrial_memory import MemorySystem, Record, serve

    class Mine(MemorySystem):
        def ingest(self, experience):
            self.store.add(experience.id, experience.text())

        def retrieve(self, query, k):
            return [Record(id, text) for id, text in self.store.search(query.text, k)]

    serve(Mine)

A list that is empty says that nothing fits; an exception is a failure of the system, and memtrial tells it as one.
"""

import json
import math
import os
import sys
import traceback
from pathlib import Path

__all__ = ["Abstain", "Experience", "MemorySystem", "Query", "Record", "serve", "tokens"]

PROTOCOL = "memtrial-memory/1"


def tokens(text):
    """Tokens as memtrial counts them: a quarter of the characters, rounded up."""
    return math.ceil(len(text) / 4)


class Record:
    """A text to show, the run that it derives from, and how well it fits (higher is better)."""

    def __init__(self, source, text, score=None):
        self.source, self.text, self.score = source, text, score


class Abstain:
    """Nothing to say, and why."""

    def __init__(self, reason):
        self.reason = reason


class Experience:
    """One earlier run."""

    def __init__(self, value):
        self.raw = value
        self.id = value["instance_id"]
        self.issue = value["issue"]
        self.patch = value.get("patch")
        self.exit_status = value.get("exit_status")
        #: Whether it was resolved; None: not known, or not asked for (`uses-outcome`).
        self.outcome = value.get("outcome")
        #: What happened, step by step; empty unless asked for (`reads-events`).
        self.events = value.get("events", [])

    def text(self, most=8192):
        """The issue and the submitted patch in at most this many characters, two fifths of them for the issue."""
        patch = f"\n\nPatch submitted:\n{self.patch.strip()}" if self.patch else "\n\nNo patch was submitted."
        room = max(most * 2 // 5, most - len(patch))
        issue = f"Issue: {self.issue.strip()}"[:room]
        return (issue + patch)[:most]


class Query:
    """What memory is asked."""

    def __init__(self, value, budget):
        self.raw = value
        self.target = value["target"]["instance_id"]
        self.repo = value["target"]["repo"]
        self.issue = value["target"]["problem_statement"]
        self.language = value["target"].get("language")
        #: What to search with: the solver's own words where it wrote some, else the issue.
        self.text = value.get("text") or self.issue
        self.phase = value.get("phase", "start")
        self.recent = value.get("recent", [])
        #: How much may be delivered: `records`, `tokens`.
        self.budget = budget


class MemorySystem:
    """What a memory system has to say. `ingest` and `retrieve` are enough; the rest is there where it is needed.

    A new one is made for each target, with an empty state folder.
    """

    name = None
    version = "0"
    #: What of a run it must be told, and whether it asks a model.
    needs_outcome = False
    needs_events = False
    needs_model = False

    #: The one folder that it may write to, the target and condition, and whether a model can be asked (its address is
    #: in OPENAI_BASE_URL, its key in OPENAI_API_KEY).
    state = Path(".")
    scope = {}
    has_model = False

    def open(self):
        """Called once, before the first run."""

    def ingest(self, experience):
        raise NotImplementedError

    def flush(self):
        """Returns when all that was ingested can be found."""

    def freeze(self):
        """Nothing is written from here on: memtrial compares the state's files after every retrieval."""

    def retrieve(self, query, k):
        """At most k Records, best first; [] or Abstain where nothing fits; a str is shown as it is."""
        raise NotImplementedError

    def sources(self):
        """The runs that a str of `retrieve` derives from."""
        return []

    def feedback(self, feedback):
        """Hears how a run went that it delivered to."""

    def close(self):
        """Called at the end."""

    def report(self, **usage):
        """Notes what a call cost (calls, prompt_tokens, completion_tokens, embedded_tokens, usd)."""
        for key, value in usage.items():
            self._usage[key] = self._usage.get(key, 0) + value

    def degraded(self, reason):
        """Says that a call went on without a part of what it should do, as a write without the model's part."""
        self._degraded.append(str(reason))

    def __init__(self):
        self._usage, self._degraded = {}, []


class _Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def fit(records, budget):
    """The records that the budget allows, each cut to its share of the tokens; what one leaves goes to the next."""
    records = records[: budget["records"]]
    kept, room = [], budget["tokens"]
    for place, record in enumerate(records):
        share = room // (len(records) - place)
        text = record.text[: share * 4]
        if text.strip():
            kept.append(Record(record.source, text, record.score))
            room -= tokens(text)
    return kept


class _Server:
    def __init__(self, make):
        self.make, self.system, self.frozen = make, None, False
        self.state, self.model = Path("."), False

    def answer(self, method, params):
        call = getattr(self, "on_" + method.replace("/", "_"), None)
        if call is None:
            raise _Refused(-32601, f"there is no method {method}")
        if method not in ("hello", "prepare") and self.system is None:
            raise _Refused(-32002, f"{method} before prepare")
        return call(params)

    def on_hello(self, params):
        if params["protocol"] != PROTOCOL:
            raise _Refused(-32003, f"this speaks {PROTOCOL}, not {params['protocol']}")
        self.state, self.model = Path(params["state"]), params["model"]
        about = self.make
        needs = {
            "outcome": about.needs_outcome,
            "events": about.needs_events,
            "model": about.needs_model,
        }
        return {
            "protocol": PROTOCOL,
            "name": about.name or about.__name__.lower(),
            "version": str(about.version),
            "needs": needs,
        }

    def on_prepare(self, params):
        self.system, self.frozen = self.make(), False
        self.system._usage, self.system._degraded = {}, []
        self.system.state, self.system.scope, self.system.has_model = self.state, params["scope"], self.model
        self.system.open()
        return {}

    def on_ingest(self, params):
        if self.frozen:
            raise _Refused(-32001, "frozen")
        self.system.ingest(Experience(params["experience"]))
        return {}

    def on_flush(self, _params):
        self.system.flush()
        return {}

    def on_freeze(self, _params):
        self.system.freeze()
        self.frozen = True
        return {}

    def on_retrieve(self, params):
        budget = params["budget"]
        query = Query(params["query"], budget)
        found = self.system.retrieve(query, budget["records"])
        if isinstance(found, Abstain):
            return {"abstain": {"reason": found.reason}}
        if isinstance(found, str):
            block = found[: budget["tokens"] * 4]
            if not block.strip():
                return {"abstain": {"reason": "the memory is empty"}}
            return {"delivery": {"block": block, "sources": list(self.system.sources())}}
        if not found:
            return {"abstain": {"reason": "nothing was found"}}
        kept = fit(list(found), budget)
        if not kept:
            return {"abstain": {"reason": "the budget holds no record"}}
        records = [{"source": r.source, "text": r.text, "score": r.score} for r in kept]
        return {"delivery": {"records": records}}

    def on_feedback(self, params):
        self.system.feedback(params["feedback"])
        return {}

    def on_cleanup(self, _params):
        self.system.close()
        return {}

    def result(self, method, params):
        result = self.answer(method, params)
        system = self.system
        if system is not None:
            if system._usage:
                result["usage"], system._usage = system._usage, {}
            if system._degraded:
                result["degraded"], system._degraded = "; ".join(system._degraded), []
        return result


def serve(make):
    """Serves a class of memory systems until the end of standard input."""
    # What the system and its libraries print goes to standard error: the output is the protocol's.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    server = _Server(make)
    for line in sys.stdin.buffer:
        reply = {"jsonrpc": "2.0", "id": None}
        try:
            request = json.loads(line)
            reply["id"] = request["id"]
            reply["result"] = server.result(request["method"], request.get("params") or {})
        except _Refused as refused:
            reply["error"] = {"code": refused.code, "message": str(refused)}
        except (ValueError, TypeError, KeyError) as error:
            if reply["id"] is None:
                reply["error"] = {"code": -32700, "message": f"no request: {error}"}
            else:
                reply["error"] = _failure(error)
        except Exception as error:  # every failure is told, none ends the program
            reply["error"] = _failure(error)
        out.write(json.dumps(reply) + "\n")
        out.flush()


def _failure(error):
    traceback.print_exc()
    return {"code": -32000, "message": f"{type(error).__name__}: {error}"}
