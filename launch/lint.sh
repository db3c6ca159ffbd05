#!/usr/bin/env bash
# Checks what no test sees, over all files that git knows: clang-format, shellcheck, clang-tidy.
#
#   launch/lint.sh
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  '') ;;
  -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "error: launch/lint.sh: no option '$1'; there are none" >&2; exit 2 ;;
esac

launch/install.sh development
build=build/cpu-release
cmake --preset cpu-release -DOCTAVO_TESTS=ON >/dev/null
failures=0

echo "[lint] clang-format"
git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 -r clang-format --dry-run -Werror || failures=1

echo "[lint] shellcheck"
git ls-files -z '*.sh' .ci/run | xargs -0 -r shellcheck || failures=1

echo "[lint] clang-tidy"
# clang knows the warnings of GCC under other names, and has no omp.h of its own.
arguments=(-p "$build" --quiet --extra-arg=-Wno-unknown-warning-option
           --extra-arg=-idirafter --extra-arg="$(g++ -print-file-name=include)")
# One file: silent, or everything that clang-tidy says.
tidy() { local said; said=$(clang-tidy "$@" 2>&1) || { echo "$said" >&2; return 1; }; }
export -f tidy
mapfile -t sources < <(git ls-files '*.cpp')
for file in "${sources[@]}"; do
  grep -qF "\"file\": \"$PWD/$file\"" "$build/compile_commands.json" ||
    { echo "error: $file is built by no target, so clang-tidy can't read it" >&2; failures=1; }
done
printf '%s\0' "${sources[@]}" |
  xargs -0 -n 1 -P "$(nproc)" bash -c 'tidy "$@"' tidy "${arguments[@]}" || failures=1

[ "$failures" -eq 0 ] || { echo "error: launch/lint.sh found faults, see above" >&2; exit 1; }
