#!/bin/sh
# Runs real agents of others (Claude Code and Codex, installed from npm: 660 MB) through the bundled study, each with the
# reader behind the gateway: what was planted must show. Needs npm and the network for the installation alone.
#   scripts/test-peers-cli-agents.sh [claude-code|codex]...
# They are kept between runs: PEERS_DIR, or target/peers/cli-agents.
set -eu
cd "$(dirname "$0")/.."
peers=${PEERS_DIR:-$PWD/target/peers/cli-agents}
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --package memtrial-cli --package memtrial-testkit
work=$(mktemp -d)
reader=
trap 'if [ -n "$reader" ]; then kill "$reader" 2>/dev/null || true; fi; rm -rf "$work"' EXIT
"$target/debug/memtrial-testkit" bundle --out "$work/data"

install() {
    [ -d "$peers/$1/node_modules" ] && return
    mkdir -p "$peers/$1"
    npm install --silent --no-fund --no-audit --save-exact --prefix "$peers/$1" "$2"
}

# The bundled study with an agent's file in place of its agent, on two targets that memory helps and one that it harms.
study() {
    sed -n '1,/^\[agent\]/p' studies/bundled/study.toml |
        sed 's/^replicates = 1/replicates = 1\ntargets = ["quillon__tabletalk-11", "quillon__tabletalk-21", "ostler__spanwise-9"]/'
    # Tables of the file become tables of the agent.
    sed -e "s|../../target/peers/cli-agents|$peers|" -e 's/^\[env\]/[agent.env]/' \
        -e 's/^time-limit = .*/time-limit = 300\nexclude = ["patch.txt"]/' "studies/agents/$1.toml"
    sed -n '/^\[sandbox\]/,$p' studies/bundled/study.toml
}

run() {
    mkdir "$work/$1"
    ln -s ../data "$work/$1/data"
    study "$1" > "$work/$1/study.toml"
    "$target/debug/memtrial-testkit" reader --tasks "$work/data/reader.jsonl" --port-file "$work/$1/port" > /dev/null &
    reader=$!
    tries=0
    until [ -s "$work/$1/port" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { echo "the reader does not start" >&2; exit 1; }
        sleep 0.1
    done
    "$target/debug/memtrial" study run "$work/$1/study.toml" \
        --endpoint "reader=http://127.0.0.1:$(cat "$work/$1/port")/v1" ${MEMTRIAL_CACHE:+--cache "$MEMTRIAL_CACHE"}
    kill "$reader"
    wait "$reader" 2>/dev/null || true
    reader=
    python3 - "$work" "$1" <<'PYTHON'
import json, pathlib, sys
work, agent = pathlib.Path(sys.argv[1]), sys.argv[2]
planted = {plan["instance_id"]: plan for plan in json.loads((work / "data/expected.json").read_text())}
faults, calls = [], 0
for path in sorted((work / agent / "trials").glob("*/reader/1/*/verdict.json")):
    record = json.loads(path.read_text())
    calls += record["solver_cost"]["calls"]
    expected = planted[record["instance_id"]][record["condition"]]
    if (record["verdict"] == "resolved") != expected or record["exit_status"] != "Submitted":
        faults.append(record)
    messages = json.loads(next(path.parent.glob("*.traj.json")).read_text())["messages"]
    answers = sum(message["role"] == "assistant" for message in messages)
    logs = sum(1 for file in (path.parent / "agent-log/files").rglob("*") if file.is_file())
    print(f"{agent} {record['condition']:5} {record['instance_id']}: {record['verdict']}, {record['steps']} calls, "
          f"{answers} answers in the trajectory, {logs} log files, {record['agent_seconds']:.1f} s")
    if answers != record["steps"] or logs == 0:
        faults.append("the trajectory or the log is incomplete: " + str(path))
if faults:
    sys.exit("not as planted:\n" + "\n".join(map(str, faults)))
print(f"{agent}: as planted, {calls} calls")
PYTHON
}

for agent in "${@:-claude-code codex}"; do
    for name in $agent; do
        case $name in
            claude-code) install claude-code @anthropic-ai/claude-code ;;
            codex) install codex @openai/codex ;;
            *) echo "unknown agent $name: claude-code or codex" >&2; exit 2 ;;
        esac
        run "$name"
    done
done
