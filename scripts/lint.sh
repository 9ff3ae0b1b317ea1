#!/bin/bash
# Format and lints, as the tests demand them.
set -eu
cd "$(dirname "$(readlink -f "$0")")/.."
cargo fmt --all --check
cargo clippy --workspace --all-targets --profile "${LINT_PROFILE:-dev}" -- -D warnings
