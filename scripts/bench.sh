#!/bin/bash
# How long a cold snapshot takes, against the least that the protocol allows. Arguments go to bench/run.py:
#   scripts/bench.sh --apps kcalc,gedit --runs 3
# AGENT_DESKTOP_BIN: a binary that is there already.
set -eu
cd "$(dirname "$(readlink -f "$0")")/.."
scripts/install.sh bench
if [ -z "${AGENT_DESKTOP_BIN:-}" ]; then
    cargo build --release --locked -p agent-desktop
    AGENT_DESKTOP_BIN=$(realpath "${CARGO_TARGET_DIR:-target}/release/agent-desktop")
    export AGENT_DESKTOP_BIN
fi
mkdir -p target/bench
for tool in floor meas; do
    [ "target/bench/$tool" -nt "bench/floor/$tool.rs" ] ||
        rustc --edition 2024 -O "bench/floor/$tool.rs" -o "target/bench/$tool"
done
export BENCH_QT_PYTHON="${XDG_CACHE_HOME:-$HOME/.cache}/agent-desktop-test/venv/bin/python"
DESK_SIZE=1920x1080 exec desktops/x11.sh run -- /usr/bin/python3 bench/run.py "$@"
