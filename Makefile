# make trial    set up, run the bundled study, print the comparison and where the report is
# make test     set up, run every test that needs nothing from outside
# make test-peers   compare with the tools people use today, installed from PyPI into target/peers
# make bench    the figures of benches/README.md
# make check    what CI checks besides the tests

.PHONY: trial test test-peers bench check setup

setup:
	@scripts/install-packages.sh

trial: setup
	@scripts/trial.sh

test: setup
	cargo test --workspace --locked

test-peers: setup
	@scripts/test-peers.sh

bench:
	cargo bench -p memtrial-cli --locked

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask layering
	cargo xtask licences
	cargo xtask cli-reference --check
