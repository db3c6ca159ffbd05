#!/usr/bin/env bash
# Checks what no test sees, over all files that git knows: clang-format, shellcheck, clang-tidy.
# clang-tidy reads build/cpu-release/compile_commands.json: run launch/test.sh or cmake before.
set -euo pipefail
cd "$(dirname "$0")/.."

launch/install.sh development
build=build/cpu-release
[ -f "$build/compile_commands.json" ] || cmake --preset cpu-release >/dev/null
failures=0

echo "[lint] clang-format"
git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 -r clang-format --dry-run -Werror || failures=1

echo "[lint] shellcheck"
git ls-files -z '*.sh' .ci/run | xargs -0 -r shellcheck || failures=1

echo "[lint] clang-tidy"
# clang knows the warnings of GCC under other names, and has no omp.h of its own.
arguments=(-p "$build" --quiet --extra-arg=-Wno-unknown-warning-option
           --extra-arg=-idirafter --extra-arg="$(g++ -print-file-name=include)")
git ls-files '*.cpp' | while read -r file; do
  if grep -qF "\"file\": \"$PWD/$file\"" "$build/compile_commands.json"; then printf '%s\0' "$file"; fi
done | xargs -0 -r -n 1 -P "$(nproc)" sh -c 'clang-tidy "$@" 2>/dev/null' clang-tidy "${arguments[@]}" ||
  failures=1

[ "$failures" -eq 0 ] || { echo "error: launch/lint.sh found faults, see above" >&2; exit 1; }
