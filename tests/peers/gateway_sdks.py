"""The official SDKs of OpenAI and Anthropic against `memtrial gateway`, before endpoints of both formats.

usage: gateway_sdks.py MEMTRIAL TESTKIT
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request

import anthropic
import openai

MEMTRIAL, TESTKIT = sys.argv[1:3]
KEY = "sk-canary-0123456789"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        raise SystemExit(f"FAILED: {what}")


class Program:
    def __init__(self, *command):
        env = {**os.environ, "ENDPOINT_KEY": KEY}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.first = self.process.stdout.readline().strip()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=60)
        check(self.process.returncode == 0, f"ended with {self.process.returncode}: {err}")
        check(KEY not in out + err, "the key is printed")
        return out


def gateway(folder, api, url, *more):
    command = ["gateway", "--endpoint", url, "--model", "fake-model", "--api", api, "--api-key-env", "ENDPOINT_KEY"]
    program = Program(MEMTRIAL, *command, "--journal", folder, "--json", *more)
    first = json.loads(program.first)
    return program, first["listening"], first["token"]


def chat(client):
    tool = {"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}
    messages = [{"role": "user", "content": "What is here?"}]
    first = client.chat.completions.create(model="gpt-x", messages=messages, tools=[tool])
    call = first.choices[0].message.tool_calls[0]
    check(json.loads(call.function.arguments) == {"command": "ls"}, "chat: arguments")
    check(first.choices[0].finish_reason == "tool_calls" and first.usage.total_tokens > 0, "chat: end and usage")
    messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "a.py"}]
    text, usage, role = "", None, None
    stream = client.chat.completions.create(
        model="gpt-x", messages=messages, tools=[tool], stream=True, stream_options={"include_usage": True}
    )
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            role = choice.delta.role or role
            text += choice.delta.content or ""
    check((text, role) == ("The tool says: a.py", "assistant"), f"chat: streamed {text!r} by {role}")
    check(usage.prompt_tokens > 0, "chat: usage of the stream")
    with client.chat.completions.stream(model="gpt-x", messages=messages[:1], tools=[tool]) as stream:
        final = stream.get_final_completion()
    check(final.choices[0].message.tool_calls[0].function.name == "bash", "chat: a streamed call")
    return 3


def responses(client):
    tool = {"type": "function", "name": "bash", "parameters": SCHEMA, "strict": False}
    items = [{"role": "user", "content": "What is here?"}]
    first = client.responses.create(model="gpt-x", input=items, tools=[tool], instructions="Be brief.", store=False)
    call = next(item for item in first.output if item.type == "function_call")
    check(json.loads(call.arguments) == {"command": "ls"} and first.status == "completed", "responses: call")
    items += [item.model_dump() for item in first.output]
    items += [{"type": "function_call_output", "call_id": call.call_id, "output": "a.py"}]
    with client.responses.stream(model="gpt-x", input=items, tools=[tool]) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    check(text == final.output_text == "The tool says: a.py", f"responses: streamed {text!r}")
    check(final.usage.input_tokens > 0, "responses: usage")
    return 2


def messages(client):
    tool = {"name": "bash", "description": "Runs.", "input_schema": SCHEMA}
    turns = [{"role": "user", "content": "What is here?"}]
    common = {"model": "claude-x", "max_tokens": 500, "tools": [tool], "system": "Be brief."}
    first = client.messages.create(messages=turns, **common)
    use = next(block for block in first.content if block.type == "tool_use")
    check((use.input, first.stop_reason) == ({"command": "ls"}, "tool_use"), "messages: call")
    check(first.usage.input_tokens > 0 and first.usage.output_tokens > 0, "messages: usage")
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "a.py"}
    turns += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    with client.messages.stream(messages=turns, **common) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    check(text == final.content[0].text == "The tool says: a.py", f"messages: streamed {text!r}")
    check(final.stop_reason == "end_turn" and final.usage.output_tokens > 0, "messages: end of the stream")
    with client.messages.stream(messages=turns[:1], **common) as stream:
        use = stream.get_final_message().content[-1]
    check(use.input == {"command": "ls"}, "messages: a streamed call")
    check(client.messages.count_tokens(model="claude-x", messages=turns[:1]).input_tokens > 0, "messages: count")
    return 3


def refusals(openai_client, anthropic_client, listening):
    """Refusals that no client tries again."""
    for error, ask in [
        (openai.AuthenticationError, lambda: chat(openai.OpenAI(base_url=listening + "/v1", api_key="wrong"))),
        (anthropic.AuthenticationError, lambda: messages(anthropic.Anthropic(base_url=listening, api_key="wrong"))),
        (openai.APIStatusError, lambda: chat(openai_client)),
        (anthropic.APIStatusError, lambda: messages(anthropic_client)),
    ]:
        try:
            ask()
        except error as refused:
            capped = "cap reached" in str(refused)
            check(refused.status_code == (402 if capped else 401), f"{refused}")
            continue
        raise SystemExit(f"FAILED: no {error.__name__}")


def main():
    for api in ["openai", "anthropic"]:
        with tempfile.TemporaryDirectory() as folder:
            endpoint = Program(TESTKIT, "tool-user")
            program, listening, token = gateway(folder, api, endpoint.first, "--cap-calls", "8")
            openai_client = openai.OpenAI(base_url=listening + "/v1", api_key=token)
            anthropic_client = anthropic.Anthropic(base_url=listening, api_key=token)
            calls = chat(openai_client) + responses(openai_client) + messages(anthropic_client)
            check([model.id for model in openai_client.models.list()] == ["fake-model"], "models: openai")
            check([model.id for model in anthropic_client.models.list()] == ["fake-model"], "models: anthropic")
            refusals(openai_client, anthropic_client, listening)
            spent = json.loads(program.end().splitlines()[-1])["spent"]["cost"]
            check(spent["calls"] == calls and spent["unmetered_calls"] == 0, f"{api}: counted {spent}")
            stats = json.load(urllib.request.urlopen(endpoint.first.replace("/v1", "/stats")))
            check(stats["violations"] == [], f"{api}: {stats['violations']}")
            journal = open(os.path.join(folder, "calls.jsonl")).read()
            check(KEY not in journal and token not in journal, "a secret in the journal")
            # The equal requests of chat and of messages were paid for once each.
            check(stats["requests"] <= calls, f"{api}: {stats['requests']} requests for {calls} calls")
            program, listening, token = gateway(folder, api, endpoint.first)
            chat(openai.OpenAI(base_url=listening + "/v1", api_key=token))
            program.end()
            after = json.load(urllib.request.urlopen(endpoint.first.replace("/v1", "/stats")))
            check(after["requests"] == stats["requests"], "a resumed client was paid for again")
            endpoint.end()
    print(f"openai {openai.__version__}, anthropic {anthropic.__version__}: {checks} checks passed")


main()
