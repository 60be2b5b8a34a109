#!/usr/bin/env bash
# Builds the fuzz targets with libFuzzer and AddressSanitizer, and runs them one after the other: fuzz.sh SECONDS [TARGET...]
set -euo pipefail

seconds=$1
shift
[ $# -gt 0 ] || set -- filter cursor query token key

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) triple=x86_64-unknown-linux-gnu ;;
  Linux-aarch64 | Linux-arm64) triple=aarch64-unknown-linux-gnu ;;
  *) echo "fuzzing is set up for Linux on x86_64 and arm64 only" >&2; exit 2 ;;
esac
if ! command -v c++ >/dev/null; then
  echo "there is no C++ compiler, which libFuzzer needs: install g++ or clang (Debian: apt-get install build-essential)" >&2
  exit 2
fi

build=$(realpath -m "${CARGO_TARGET_DIR:-target}/fuzz")
cache=${ROWGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rowgate}

# The sanitizer is no stable flag of rustc yet; RUSTC_BOOTSTRAP lets the pinned compiler take it. The others are how
# LLVM counts what a run reaches.
flags=(-Zsanitizer=address -Cpasses=sancov-module --cfg=fuzzing)
for option in -sanitizer-coverage-{level=4,inline-8bit-counters,pc-table,trace-compares,stack-depth}; do
  flags+=("-Cllvm-args=$option")
done
flags+=(-Cllvm-args=-simplifycfg-branch-fold-threshold=0)
RUSTC_BOOTSTRAP=1 RUSTFLAGS="${flags[*]}" CARGO_TARGET_DIR=$build \
  cargo build --locked --quiet --package rowgate-fuzz --features libfuzzer --profile fuzz --target "$triple" --bins

for target in "$@"; do
  # What a run learns is kept, so that the next one begins there; a finding lies beside it.
  learned=$cache/fuzz/$target
  log=$cache/fuzz/$target.log
  mkdir -p "$learned"
  echo "$target: $seconds s, log in $log" >&2
  nice "$build/$triple/fuzz/$target" -max_total_time="$seconds" -max_len=9000 -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="$cache/fuzz/$target-" "$learned" "tests/fuzz/seeds/$target" >"$log" 2>&1 ||
    { tail -n 60 "$log" >&2; echo "$target found something: its input is named above" >&2; exit 1; }
  grep -E 'DONE +cov|number_of_executed_units|peak_rss' "$log"
done
