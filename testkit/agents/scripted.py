"""A small agent for tests of other programs as the agent: chat completions, one tool, the standard library alone.

usage: scripted.py PROMPT (or `-`: on standard input; or `@FILE`)
"""

import http.client
import json
import os
import subprocess
import sys
import urllib.parse

DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
BASH = {"type": "function", "function": {"name": "bash", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}


def ask(messages):
    base = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(base.netloc)
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    body = {"model": os.environ.get("MODEL", "any"), "messages": messages, "tools": [BASH]}
    connection.request("POST", base.path + "/chat/completions", json.dumps(body), headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status != 200:
        sys.exit(f"the model answered {response.status}: {answer}")
    return answer["choices"][0]["message"]


def run(command):
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode(errors="replace")


def main():
    prompt = sys.argv[1]
    if prompt == "-":
        prompt = sys.stdin.read()
    elif prompt.startswith("@"):
        prompt = open(prompt[1:]).read()
    messages = [{"role": "user", "content": prompt}]
    os.makedirs(os.path.expanduser("~/.scripted"), exist_ok=True)
    with open(os.path.expanduser("~/.scripted/log.jsonl"), "w") as log:
        while True:
            message = ask(messages)
            messages.append(message)
            for call in message.get("tool_calls") or sys.exit(0):
                output = run(json.loads(call["function"]["arguments"])["command"])
                print(json.dumps({"call": call["id"], "output": output}), file=log, flush=True)
                print(f"{call['id']}: {len(output)} bytes", flush=True)
                if output.startswith(DONE):
                    return
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


main()
