#!/bin/sh
# Compares the agent with mini-swe-agent from PyPI, message by message, on scripted model answers.
# The peer lives in a virtual environment of its own, which is kept between runs: PEERS_VENV, or target/peers/mini.
set -eu
cd "$(dirname "$0")/.."
venv=${PEERS_VENV:-target/peers/mini}
if ! [ -x "$venv/bin/mini" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet 'mini-swe-agent==2.4.6'
fi
cargo build --quiet --package memtrial --example agent_scenario
exec "$venv/bin/python" tests/peers/agent_vs_mini.py "${CARGO_TARGET_DIR:-target}/debug/examples/agent_scenario"
