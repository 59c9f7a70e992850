#!/bin/sh
# Compares memtrial with the tools people use today, installed from PyPI into target/peers (nothing else is touched):
# statistics with scipy and statsmodels, the agent with mini-swe-agent 1 and 2, its ATIF documents with Harbor's model,
# the gateway with the SDKs of OpenAI and Anthropic.
set -eu
cd "$(dirname "$0")"
./test-peers-stats.sh
./test-peers-agent.sh
./test-peers-atif.sh
./test-peers-gateway.sh
