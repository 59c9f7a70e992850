"""An MCP server over standard streams that keeps notes in a file and finds them by one word."""

import json
import os
import sys

fault = sys.argv[1] if len(sys.argv) > 1 else "none"
path = os.environ["NOTES"]


def call(name, arguments):
    notes = [json.loads(line) for line in open(path)] if os.path.exists(path) else []
    if name == "add":
        if fault == "fails":
            return {"isError": True, "content": [{"type": "text", "text": "quota exceeded"}]}
        with open(path, "a") as file:
            file.write(json.dumps({"key": arguments["key"], "body": arguments["body"]}) + "\n")
        return {"content": [{"type": "text", "text": "stored"}]}
    assert isinstance(arguments["limit"], int), arguments
    found = [note for note in notes if arguments["q"].lower() in note["body"].lower()]
    if fault == "foreign":
        found = [{"key": "uuid-1", "body": "x"}]
    if fault == "prose":
        return {"content": [{"type": "text", "text": "I found some notes for you"}]}
    if fault == "structured":
        return {"content": [], "structuredContent": {"hits": found}}
    return {"content": [{"type": "text", "text": json.dumps({"hits": found})}]}


print("server running on stdio", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        # A request of its own, which must be answered before it goes on.
        print(json.dumps({"jsonrpc": "2.0", "id": "s1", "method": "ping"}), flush=True)
        assert json.loads(sys.stdin.readline()) == {"jsonrpc": "2.0", "id": "s1", "result": {}}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "notes", "version": "3"}}
    elif method == "tools/list":
        cursor = message["params"].get("cursor")
        tools = [{"name": "find"}] if cursor else [{"name": "add"}]
        result = {"tools": tools, **({} if cursor else {"nextCursor": "2"})}
    elif method == "tools/call":
        result = call(message["params"]["name"], message["params"]["arguments"])
    else:
        assert "id" not in message, message
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
