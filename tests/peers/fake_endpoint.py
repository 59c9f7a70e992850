"""A model endpoint that answers from scripts: chat completions and the Responses API, one script a base address."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = {"prompt_tokens": 1000, "completion_tokens": 500}


def chat_completion(reply):
    usage = USAGE | reply.get("usage", {})
    return {
        "id": "chatcmpl-fake", "object": "chat.completion", "created": 1784700000, "model": "fake-model",
        "choices": [{"index": 0, "message": reply["message"], "finish_reason": reply["finish_reason"]}],
        "usage": usage | {"total_tokens": usage["prompt_tokens"] + usage["completion_tokens"]},
    }


def response(reply):
    usage = USAGE | reply.get("usage", {})
    return {
        "id": "resp_fake", "object": "response", "created_at": 1784700000, "model": "fake-model", "error": None,
        "incomplete_details": reply.get("incomplete_details"), "instructions": None, "metadata": {},
        "output": reply["output"], "parallel_tool_calls": True, "status": reply.get("status", "completed"),
        "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "usage": {
            "input_tokens": usage["prompt_tokens"], "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage["completion_tokens"], "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        },
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key, _, path = self.path.strip("/").partition("/v1/")
        with self.server.lock:
            self.server.requests.setdefault(key, []).append(body)
            script = self.server.scripts.get(key, [])
            # A script's end is a refusal that no client tries again.
            reply = script.pop(0) if script else {"status": 404, "error": {"message": "the script has ended"}}
        if "error" in reply:
            return self.answer(reply["status"], {"error": reply["error"]}, reply.get("headers", {}))
        self.answer(200, response(reply) if path == "responses" else chat_completion(reply), {})

    def answer(self, status, value, headers):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class FakeEndpoint:
    """Serves until the process ends."""

    def __init__(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.lock, self.server.scripts, self.server.requests = threading.Lock(), {}, {}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def script(self, key, replies):
        """The base address under which these replies are given, in order."""
        self.server.scripts[key] = list(replies)
        return f"http://127.0.0.1:{self.server.server_port}/{key}/v1"

    def requests(self, key):
        return self.server.requests.get(key, [])
