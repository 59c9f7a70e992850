#!/bin/sh
# Builds memtrial, writes the bundled study (two Python packages and a Rust crate with their pull requests), starts
# the reader (a fake model that solves a task only if it is shown that task's planted line), runs the study and
# prints the comparison. No key and no network are needed. OUT names another folder for the study.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-out/trial}
programs=${CARGO_TARGET_DIR:-target}/debug

cargo build --locked -p memtrial-cli -p memtrial-testkit
mkdir -p "$out"
"$programs/memtrial-testkit" bundle --out "$out/data"
cp studies/bundled/study.toml "$out/study.toml"

port=$out/reader.port
rm -f "$port"
"$programs/memtrial-testkit" reader --tasks "$out/data/reader.jsonl" --port-file "$port" > /dev/null &
reader=$!
trap 'kill $reader 2> /dev/null || true' EXIT
tries=0
while [ ! -s "$port" ]; do
	tries=$((tries + 1))
	[ $tries -le 100 ] || { echo "the reader did not start" >&2; exit 4; }
	sleep 0.1
done

"$programs/memtrial" study run "$out/study.toml" --endpoint "reader=http://127.0.0.1:$(cat "$port")/v1"
"$programs/memtrial" study report "$out/study.toml"
"$programs/memtrial-testkit" check --expected "$out/data/expected.json" --report "$out/report/report.json"
