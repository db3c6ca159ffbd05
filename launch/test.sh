#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests: all of them, or those of the fast tier.
#
#   launch/test.sh               every test
#   launch/test.sh --fast        without the tests labelled slow
#   launch/test.sh --sanitize    builds with AddressSanitizer and UBSan, runs the fast tests
set -euo pipefail
cd "$(dirname "$0")/.."

preset=cpu-release
chosen=()
for argument in "$@"; do
  case "$argument" in
    --fast) chosen=(--label-exclude slow) ;;
    --sanitize) preset=cpu-debug chosen=(--label-exclude slow) ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "error: launch/test.sh: no option '$argument'; there are --fast and --sanitize" >&2; exit 2 ;;
  esac
done

launch/install.sh build test
jobs=$(nproc)
echo "[test] building $preset"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset "$preset" -DOCTAVO_TESTS=ON >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build --preset "$preset" --parallel "$jobs"
echo "[test] running the tests of $preset"
# Why tests were skipped, each reason once, with its number of mentions.
skipped() {
  local said=build/$preset/Testing/Temporary/LastTest.log
  { sed -n '/: Skipped$/{n;p}' "$said"; grep -o "this processor can't multiply bf16" "$said" || true; } |
    sort | uniq -c | sed 's/^ *\([0-9]*\) /[test] skipped, \1 times: /'
}
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$jobs" "${chosen[@]}" || code=$?
skipped
exit "${code:-0}"
