#!/bin/sh
# Compares memtrial's statistics with scipy, statsmodels and numpy from PyPI on random data.
# The peers live in a virtual environment below the target folder and are installed once.
#   usage: scripts/test-peers-stats.sh [SEED]
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
venv=$target/peers/stats
if [ ! -e "$venv/.ready" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'numpy>=1.26' 'scipy>=1.11' 'statsmodels>=0.14'
    touch "$venv/.ready"
fi
cargo build --quiet --package memtrial --example stats_eval
"$venv/bin/python" tests/peers/stats_peer.py "$target/debug/examples/stats_eval" "${1:-1}"
