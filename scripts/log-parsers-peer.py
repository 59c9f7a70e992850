"""Answers with the results of the reference log parsers, one JSON line for each JSON line.

    log-parsers-peer.py V2 [SWE_BENCH_4] [SWE_BENCH_5]      folders of sources: SWE-rebench V2, SWE-bench 4.1.0 and 5.0

First come the names, one line: {origin: {name: its function}}. A question is {"o": origin, "p": name, "log": text}; the answer
{"out": {test: status}}, {"raises": exception}, {"slow": true} after two seconds, or {"unknown": true}; answers are sent at a question with "last". The log gets the
newline translation that the harnesses give it. A lone surrogate in a name becomes U+FFFD, as no other encoding of text
than Python's own has it. Only the files of parsers are loaded; what else they import is stood in for.
"""

import enum
import functools
import importlib.util
import json
import os
import re
import signal
import sys
import types
from pathlib import Path

LIMIT_S = 2
ORIGINS = ("swe-rebench-2", "swe-bench-4", "swe-bench-5")


class TestStatus(enum.Enum):
    FAILED = "FAILED"
    PASSED = "PASSED"
    SKIPPED = "SKIPPED"
    ERROR = "ERROR"
    XFAIL = "XFAIL"


class Slow(BaseException):
    """Not an Exception: some parsers catch those."""


class TestSpec:
    """What a few parsers ask of the task, where memtrial goes by the log: see `asked_of_task`."""

    version = "12.0"
    instance_id = "owner__repo-0"


def asked_of_task(name, parse, log):
    """The results of a parser that chooses its rule by the task, for the task whose logs look like this one."""
    spec = TestSpec()
    if name == "parse_log_lighthouse":
        mocha = re.search(r"running\s\d+\stest\sfiles", log)
        spec.version = "10.0" if mocha else "2.9" if "./node_modules/.bin/mocha --reporter json" in log else "3.0"
    elif name == "parse_log_next":
        spec.version = "1.0" if " xvfb-run " in log else "1.27"
    elif name in ("parse_log_immutable_js", "parse_log_jekyll"):
        # Two rules for lines of two kinds: each line is read by both.
        found = {}
        tasks = ("a__a-2006", "a__a-2005") if name == "parse_log_immutable_js" else ("a__a-9141", "a__a-8761")
        for line in log.split("\n"):
            for spec.instance_id in tasks:
                found |= parse(line, spec)
        return found
    return parse(log, spec)


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stand_in(name, **content):
    module = types.ModuleType(name)
    module.__path__ = []
    module.__dict__.update(content)
    sys.modules[name] = module


def function_of(path, name):
    """One function of a file whose imports are not there."""
    source = path.read_text()
    start = source.index(f"\ndef {name}(")
    end = re.compile(r"^(?=[^\s#)])", re.M).search(source, start + 6)
    scope = {"re": re}
    exec(compile(source[start:end.start() if end else None], str(path), "exec"), scope)
    return scope[name]


def parsers_of(module):
    found = {name: value for name, value in vars(module).items() if re.match(r"parse_(?:log|lu|java|test|comb|plotly)", name)}
    return {name: value for name, value in found.items() if callable(value)}


def rebench(root):
    stand_in("lib")
    stand_in("lib.agent")
    load("lib.agent.swe_constants", root / "lib/agent/swe_constants.py")
    return parsers_of(load("lib.agent.log_parsers", root / "lib/agent/log_parsers.py"))


def bench(root):
    for name in [name for name in sys.modules if name.split(".")[0] == "swebench"]:
        del sys.modules[name]
    folder = root / "swebench/harness/log_parsers"
    for name in ("swebench", "swebench.harness", "swebench.harness.log_parsers", "swebench.harness.test_spec"):
        stand_in(name)
    for name in ("swebench.harness.constants", "swebench.harness.test_spec.test_spec", "swebench.types"):
        stand_in(name, TestStatus=TestStatus, TestSpec=TestSpec)
    for name, path in (("swebench.utils", "swebench/utils.py"), ("swebench.harness.utils", "swebench/harness/utils.py")):
        if (root / path).exists() and "\ndef ansi_escape(" in (root / path).read_text():
            stand_in(name, ansi_escape=function_of(root / path, "ansi_escape"))
    found = {}
    for path in sorted(folder.glob("*.py")):
        if path.stem != "__init__":
            found |= parsers_of(load(f"swebench.harness.log_parsers.{path.stem}", path))
    # SWE-bench 5 has a registry, beside which other functions are its own affair.
    registry = (folder / "__init__.py").read_text().partition("PARSER_REGISTRY = {")[2]
    found = {name: parse for name, parse in found.items() if not registry or f'"{name}":' in registry}
    return {name: functools.update_wrapper(functools.partial(asked_of_task, name, parse), parse) for name, parse in found.items()}


def text(value):
    return str(value.value if isinstance(value, enum.Enum) else value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def answer(parse, log):
    log = log.replace("\r\n", "\n").replace("\r", "\n")
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        found = parse(log)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return {"out": {text(name): text(status) for name, status in found.items()}}
    except Slow:
        return {"slow": True}
    except Exception as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return {"raises": type(error).__name__}


def expire(*_):
    raise Slow


def main():
    loaders = (rebench, bench, bench)
    known = {origin: load(Path(path)) for origin, load, path in zip(ORIGINS, loaders, sys.argv[1:])}
    names = {origin: {name: parse.__name__ for name, parse in parsers.items()} for origin, parsers in known.items()}
    # Some parsers print.
    out, sys.stdout = sys.stdout, open(os.devnull, "w")
    print(json.dumps(names), file=out, flush=True)
    signal.signal(signal.SIGALRM, expire)
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        parse = known.get(asked["o"], {}).get(asked["p"])
        reply = answer(parse, asked["log"]) if parse else {"unknown": True}
        out.write(json.dumps(reply) + "\n")
        if asked.get("last"):
            out.flush()


if __name__ == "__main__":
    main()
