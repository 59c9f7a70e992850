"""A memory that asks its model once for each run and once for each question, with the standard library alone."""

import json
import os
import sys
import urllib.error
import urllib.request

state = os.environ["MEMTRIAL_STATE"]
notes = []


def ask(text):
    body = {"model": "any", "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


def answer(method, params):
    if method == "hello":
        return {"protocol": "memtrial-memory/1", "name": "model", "version": "1", "needs": {"model": True}}
    if method == "ingest":
        run = params["experience"]
        reply = ask(run["issue"])
        try:
            note = json.loads(reply)["note"]
        except (ValueError, KeyError, TypeError) as error:
            # The plain text is kept, and said to be.
            notes.append((run["instance_id"], run["issue"]))
            return {"degraded": f"{type(error).__name__} in the model's reply: {reply[:80]}"}
        notes.append((run["instance_id"], note))
        open(os.path.join(state, "notes"), "a").write(note + "\n")
    if method == "retrieve":
        choice = ask(params["query"]["target"]["problem_statement"])
        records = [{"source": source, "text": f"{note} / {choice}"} for source, note in notes]
        return {"delivery": {"records": records[: params["budget"]["records"]]}}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    try:
        reply["result"] = answer(request["method"], request.get("params", {}))
    except Exception as error:
        words = error.read().decode() if isinstance(error, urllib.error.HTTPError) else str(error)
        reply["error"] = {"code": -32000, "message": f"{type(error).__name__}: {words}"}
    print(json.dumps(reply), flush=True)
