"""Speaks memtrial-memory/1 with the standard library alone, and misbehaves as its first argument says."""

import json
import os
import sys
import time

fault = sys.argv[1] if len(sys.argv) > 1 else "none"
state = os.environ["MEMTRIAL_STATE"]
runs, frozen = [], False


def say(value):
    sys.stdout.write((value if isinstance(value, str) else json.dumps(value)) + "\n")
    sys.stdout.flush()


def retrieve(params):
    if fault == "slow":
        time.sleep(60)
    if fault == "huge":
        sys.stdout.write("x" * (3 << 20))
        say("")
    if fault == "crash":
        print("about to fail", file=sys.stderr, flush=True)
        os._exit(7)
    if fault == "writes":
        open(os.path.join(state, "asked"), "a").write("1\n")
    words = set(params["query"]["target"]["problem_statement"].lower().split())
    scored = sorted(((len(words & set(run["issue"].lower().split())), run) for run in runs), key=lambda s: -s[0])
    best = [(score, run) for score, run in scored if score][: params["budget"]["records"]]
    room = params["budget"]["tokens"] * 4 // max(1, len(best))
    if fault == "no-reason":
        return {"abstain": {"reason": ""}}
    if not best or not room:
        return {"abstain": {"reason": "no words in common"}}
    source = {"wrong-source": "acme__widget-99", "no-source": "somewhere"}.get(fault)
    records = [
        {"source": source or run["instance_id"], "score": score,
         "text": (f"{run['patch']}\n{run['issue']}")[:room] + ("x" * 3000 if fault == "over" else "")}
        for score, run in best
    ]
    if fault == "empty":
        records = []
    usage = {"calls": 1, "prompt_tokens": 2}
    return {"delivery": {"records": records}, "usage": usage}


for line in sys.stdin:
    try:
        request = json.loads(line)
    except ValueError:
        say({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}})
        continue
    method, params = request["method"], request.get("params", {})
    if fault == "noisy":
        say("Loading model weights: 100%")
        say({"level": "info", "id": 1})
        print("a word on standard error", file=sys.stderr, flush=True)
    result = {}
    if method == "hello":
        result = {"protocol": "memtrial-memory/2" if fault == "other" else "memtrial-memory/1",
                  "name": "faulty", "version": "1.0", "needs": {"outcome": fault == "needs-outcome"}}
    elif method == "prepare":
        if fault == "refuses":
            say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "no disk"}})
            continue
        open(os.path.join(state, "scope"), "w").write(params["scope"]["condition"])
    elif method == "ingest":
        if fault == "crash-ingest" and len(runs) == 1:
            os.kill(os.getpid(), 9)
        if fault == "crash-once" and len(runs) == 1:
            marker = sys.argv[2]
            if not os.path.exists(marker):
                open(marker, "w").close()
                os.kill(os.getpid(), 9)
        runs.append(params["experience"])
        open(os.path.join(state, "runs"), "a").write(params["experience"]["instance_id"] + "\n")
        if fault == "degraded":
            result = {"degraded": "the model's reply was no JSON; the plain text was kept"}
    elif method == "freeze":
        frozen = True
    elif method == "retrieve":
        result = retrieve(params)
    elif method == "cleanup" and fault == "lingers":
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
    elif method not in ("flush", "cleanup"):
        say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}})
        continue
    if fault == "wrong-id" and method == "ingest":
        request["id"] += 7
    if fault == "truncated" and method == "retrieve":
        sys.stdout.write('{"jsonrpc": "2.0", "id": %d, "result": {"deliv' % request["id"])
        sys.stdout.flush()
        os._exit(0)
    if fault == "no-result" and method == "retrieve":
        say({"jsonrpc": "2.0", "id": request["id"]})
        continue
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})
