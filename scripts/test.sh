#!/bin/bash
# All tests: install what is missing, format, lints, then everything from unit tests to real applications.
# Arguments go to nextest, for example: scripts/test.sh -E 'test(gedit)'
set -eu
cd "$(dirname "$(readlink -f "$0")")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
scripts/install.sh test
LINT_PROFILE=ci scripts/lint.sh
cargo build --profile ci --workspace --bins
# Its summary is the last that this script prints.
cargo nextest run --cargo-profile ci --workspace "$@"
