#!/usr/bin/env bash
# Feeds every reader of what comes from outside with mutations of the inputs in tests/fuzz/inputs
# (clang's libFuzzer, AddressSanitizer and UBSan). A reader may refuse an input; it may not crash.
#
#   launch/fuzz.sh [--seconds N] [TARGET...]      default: 10 seconds for each of tests/fuzz/*_fuzz.cpp
#
# What was found on the way stays in build/fuzz/found/TARGET for the next time. An input that fails is
# written to build/fuzz/TARGET-crash-...: mend the reader and keep the input in tests/fuzz/inputs/TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "error: launch/fuzz.sh: $*" >&2; exit 2; }

seconds=10 targets=()
while (($# > 0)); do
  case $1 in
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --seconds)
      [[ ${2:-} =~ ^[1-9][0-9]{0,6}$ ]] || fail "--seconds is '${2:-}'; it must be a number from 1"
      seconds=$2; shift ;;
    -*) fail "no option '$1'; --help lists them" ;;
    *) [[ -e tests/fuzz/$1_fuzz.cpp ]] || fail "no target '$1': there is no tests/fuzz/$1_fuzz.cpp"; targets+=("$1") ;;
  esac
  shift
done
if ((${#targets[@]} == 0)); then
  for source in tests/fuzz/*_fuzz.cpp; do source=${source##*/}; targets+=("${source%_fuzz.cpp}"); done
fi

launch/install.sh build test fuzz
echo "[fuzz] building"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset fuzz >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build --preset fuzz --parallel "$(nproc)"

failures=0
for target in "${targets[@]}"; do
  found=build/fuzz/found/$target
  mkdir -p "$found"
  if "build/fuzz/tests/fuzz_$target" -max_total_time="$seconds" -max_len=20000 -timeout=10 \
    -artifact_prefix="build/fuzz/$target-" "$found" "tests/fuzz/inputs/$target" >"$log" 2>&1; then
    echo "[fuzz] $target: $(sed -n 's/^Done \([0-9]*\) runs.*/\1 inputs, no fault/p' "$log")"
  else
    cat "$log" >&2
    echo "error: launch/fuzz.sh: $target failed, see above" >&2
    failures=1
  fi
done
exit "$failures"
