#!/bin/sh
# Compares the agent with mini-swe-agent from PyPI, its newest release and 1.15, message by message: both ask the same
# fake endpoint. The peers live in virtual environments of their own, which are kept between runs: below PEERS_VENV, or
# target/peers. The trajectories that memtrial writes stay there as well (test-peers-atif.sh reads them).
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
venvs=${PEERS_VENV:-$target/peers}
cargo build --quiet --package memtrial --example agent_scenario
for version in 2.4.6 1.15.0; do
    venv=$venvs/mini-$version
    if ! [ -e "$venv/.ready" ]; then
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check "mini-swe-agent==$version"
        touch "$venv/.ready"
    fi
    "$venv/bin/python" tests/peers/agent_vs_mini.py "$target/debug/examples/agent_scenario" \
        "$target/peers/runs/mini-$version"
done
