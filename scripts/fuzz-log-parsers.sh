#!/bin/sh
# Fuzzes the log parsers, family after family, beginning with made-up logs. Needs cargo-fuzz; a stable compiler is told
# to take the flags of a nightly one.
#   usage: scripts/fuzz-log-parsers.sh [SECONDS] [FAMILY]...        210 seconds for each of 17 families are an hour
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-210}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- $(ls fuzz/fuzz_targets | sed 's/\.rs$//')
export RUSTC_BOOTSTRAP=1
cargo run --quiet --package memtrial-testkit --example log_corpus -- fuzz/corpus 40
for family in "$@"; do
    cargo fuzz run "$family" -- -max_total_time="$seconds" -timeout=20 -max_len=20000 -print_final_stats=1
done
