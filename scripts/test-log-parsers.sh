#!/bin/sh
# Compares the upstream rules of the log parsers with the reference parsers on generated logs: at least 100,000 for each
# family. Needs python3, and folders of sources that you fetch yourself: SWE-rebench-V2, SWE-bench 4.1.0 and 5.0.
#   usage: scripts/test-log-parsers.sh V2 [SWE_BENCH_4] [SWE_BENCH_5] [OPTION]...
# --family F, --parser NAME, --origin O (each may repeat) choose; --count N logs for each parser, --seed S, --show N
# differences that are shrunk and printed. `--count 300 --record tests/data/logs/recorded.jsonl` records what the test
# `recorded` checks without Python (compress it with `zstd -19 --rm`).
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,8p' "$0" >&2; exit 2; }
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release --package memtrial --example log_differential
compare() { "$target/release/examples/log_differential" scripts/log-parsers-peer.py "$@"; }
case " $* " in
*" --"*) compare "$@" ;;
*)
    # Families of one or two parsers get more logs for each.
    status=0
    few='--family elixir --family julia --family csharp --family lua --family swift --family go --family rust'
    compare "$@" $few --count 100000 || status=$?
    compare "$@" --family r --family haskell --family dart --family php --family ocaml --family ruby --count 50000 || status=$?
    compare "$@" --family c --family jvm --family python --family javascript --count 15000 || status=$?
    exit "$status"
    ;;
esac
