#!/bin/sh
# Reading test logs beside the reference parsers of SWE-rebench V2, whose sources are fetched by hand.
#   usage: benches/logs.sh V2 [MB] [PARSER]...
set -eu
v2=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
cargo bench --quiet --package memtrial --bench logs -- "$v2" "$@"
