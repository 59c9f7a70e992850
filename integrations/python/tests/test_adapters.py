"""The adapters as processes, before a model that answers badly: each call ends in a result or an error, in time, and what went
wrong is said. Adapters whose system is not installed are skipped.

    python -m unittest discover integrations/python/tests
"""

import importlib.util
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ISSUES = [
    (3, "Config loader ignores the environment"),
    (5, "Retry loses the open reader after a time-out"),
    (8, "Date parser takes the thirteenth month"),
]

#: What the model says: (status, content of its message, or None for a body that is no JSON).
FAULTS = {
    "prose": (200, "I am sorry, I cannot help with that."),
    "cut": (200, '{"memory": [{"id": "0", "text": "half'),
    "other shape": (200, '{"memory": {"a": [1]}, "keywords": 7, "context": [], "tags": "x", "should_evolve": "maybe"}'),
    "hostile": (200, "[" * 3000),
    "empty": (200, ""),
    "no JSON": (200, None),
    "refused": (401, "no such key"),
}


class Model:
    """A model endpoint on the loopback device."""

    def __init__(self, status, said):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                message = {"role": "assistant", "content": said}
                body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m",
                        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
                data = b"<html>" if said is None else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"


class Program:
    def __init__(self, *command, model=None):
        self.state = tempfile.TemporaryDirectory()
        env = {"PATH": os.environ["PATH"], "HOME": self.state.name, "MEMTRIAL_STATE": self.state.name,
               "PYTHONPATH": str(HERE)}
        if model:
            env.update(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="key")
        os.mkdir(f"{self.state.name}/tmp")
        self.process = subprocess.Popen([sys.executable, *map(str, command)], env=env, text=True, cwd=self.state.name,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.number, self.model = 0, bool(model)

    def send(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def read(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 120)
        assert ready, "no answer in time"
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        self.number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}))
        reply = self.read()
        assert reply["id"] == self.number, reply
        return reply

    def begin(self):
        hello = self.ask("hello", protocol="memtrial-memory/1", state=self.state.name, model=self.model)
        assert hello["result"]["protocol"] == "memtrial-memory/1"
        self.ask("prepare", scope={"condition": "c", "target": "acme__widget-12", "seed": 1})

    def feed(self):
        for number, issue in ISSUES:
            yield self.ask("ingest", experience={"instance_id": f"acme__widget-{number}", "issue": issue, "patch": "+x",
                                                 "exit_status": "Submitted", "outcome": None, "events": []})

    def retrieve(self, records=2, tokens=100):
        target = {"instance_id": "acme__widget-12", "repo": "acme/widget", "language": None,
                  "problem_statement": "the reader is lost after a retry"}
        query = {"target": target, "text": None, "phase": "start", "recent": []}
        return self.ask("retrieve", query=query, budget={"records": records, "tokens": tokens})

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(30)
        self.process.stdout.close()
        self.state.cleanup()
        return code


class Shim(unittest.TestCase):
    def test_a_system_of_two_methods_is_served(self):
        program = Program(HERE / "adapters/words.py")
        program.begin()
        self.assertTrue(all("result" in reply for reply in program.feed()))
        program.ask("flush"), program.ask("freeze")
        frozen = next(program.feed())
        self.assertEqual(frozen["error"]["code"], -32001)
        records = program.retrieve()["result"]["delivery"]["records"]
        self.assertEqual(records[0]["source"], "acme__widget-5")
        self.assertLessEqual(sum(-(-len(record["text"]) // 4) for record in records), 100)
        self.assertEqual(program.retrieve(records=0)["result"]["abstain"]["reason"], "nothing was found")
        self.assertEqual(program.ask("none")["error"]["code"], -32601)
        program.send("no message")
        self.assertEqual(program.read()["error"]["code"], -32700)
        self.assertEqual(program.end(), 0)


class BadModels(unittest.TestCase):
    def hold(self, package, *command):
        if importlib.util.find_spec(package) is None:
            self.skipTest(f"{package} is not installed")
        for name, (status, said) in FAULTS.items():
            with self.subTest(name):
                program = Program(*command, model=Model(status, said))
                program.begin()
                told = list(program.feed())
                for reply in told:
                    self.assertTrue("error" in reply or reply["result"].get("degraded"), (name, reply))
                program.ask("flush"), program.ask("freeze")
                found = program.retrieve()
                self.assertTrue("error" in found or found["result"].keys() & {"delivery", "abstain"}, found)
                program.end()

    def test_mem0(self):
        self.hold("mem0", HERE / "adapters/mem0_memory.py", "infer")

    def test_amem(self):
        self.hold("agentic_memory", HERE / "adapters/amem_memory.py")


if __name__ == "__main__":
    unittest.main()
