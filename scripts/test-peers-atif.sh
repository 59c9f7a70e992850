#!/bin/sh
# Checks the ATIF documents that memtrial writes with Harbor's own model: those of every run that test-peers-agent.sh
# left, and, where MEMTRIAL_DATA names the folder of data, those of all its trajectories, converted. Only Harbor's wheel
# is fetched (3 MB), none of its dependencies.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
python=${PEERS_VENV:-$target/peers}/mini-2.4.6/bin/python
harbor=$target/peers/harbor-0.26.0
runs=$target/peers/runs
if ! [ -x "$python" ] || ! [ -d "$runs" ]; then
    echo "run scripts/test-peers-agent.sh first: it installs the Python that this needs, and makes the runs" >&2
    exit 1
fi
if ! [ -e "$harbor/.ready" ]; then
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --python-version 3.12 --dest "$harbor" 'harbor==0.26.0'
    "$python" -m zipfile -e "$harbor"/harbor-*.whl "$harbor"
    touch "$harbor/.ready"
fi
"$python" tests/peers/atif_vs_harbor.py "$harbor" "$runs"
if [ -n "${MEMTRIAL_DATA:-}" ]; then
    cargo build --quiet --package memtrial-cli
    converted=$target/peers/converted
    rm -rf "$converted"
    # Two of these files hold messages alone and are refused by name.
    "$target/debug/memtrial" history convert "$MEMTRIAL_DATA/trajectories" --out "$converted" || [ $? = 3 ]
    "$python" tests/peers/atif_vs_harbor.py "$harbor" "$converted"
fi
