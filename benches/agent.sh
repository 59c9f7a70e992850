#!/bin/sh
# CPU of the agent for each step, beside mini-swe-agent's in the same run, and 500 agents at once. Prints JSON lines.
# The peer's virtual environment is the one that scripts/test-peers-agent.sh makes.
#   usage: benches/agent.sh [STEPS]...
set -eu
cd "$(dirname "$0")/.."
python=${PEERS_VENV:-${CARGO_TARGET_DIR:-target}/peers}/mini-2.4.6/bin/python
[ $# -gt 0 ] || set -- 100 500
bench() {
    cargo bench --quiet --package memtrial --bench agent -- "$@"
}
for steps in "$@"; do
    for _ in 1 2 3; do
        bench steps "$steps"
        "$python" benches/agent_peer.py "$steps"
    done
done
bench many 500 20
