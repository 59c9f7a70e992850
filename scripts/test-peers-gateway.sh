#!/bin/sh
# Tries the gateway with the official Python SDKs of OpenAI and Anthropic, before a fake endpoint on this machine.
# The SDKs live in a virtual environment of their own, which is kept between runs: PEERS_VENV, or target/peers/sdks.
set -eu
cd "$(dirname "$0")/.."
venv=${PEERS_VENV:-target/peers/sdks}
if ! [ -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet 'openai==3.57.0' 'anthropic==2.14.0'
fi
cargo build --quiet --package memtrial-cli --package memtrial-testkit
target=${CARGO_TARGET_DIR:-target}/debug
exec "$venv/bin/python" tests/peers/gateway_sdks.py "$target/memtrial" "$target/memtrial-testkit"
