#!/usr/bin/env bash
# Writes the toy that configs/reverse.yaml learns: a line of letters, and the same line backwards.
#
#   launch/make_reverse_text.sh FOLDER     (no line of dev or test is in train)
set -euo pipefail
case ${1-} in
  -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
mkdir -p "$1"
# Written aside and moved when whole.
work=$(mktemp -d "$1/making.XXXXXX")
trap 'rm -rf "$work"' EXIT
awk -v folder="$work" '
# A generator of our own (Park, Miller 1988), so that every awk writes the same text.
function below(n) { state = (state * 16807) % 2147483647; return state % n }
function emit(name, count,    i, j, n, line, back, letter) {
  for (i = 0; i < count;) {
    line = back = ""
    n = 3 + below(10)
    for (j = 0; j < n; ++j) {
      letter = substr("abcdefghijklmnopqrstuvwxyz", 1 + below(26), 1)
      line = line (j ? " " : "") letter
      back = letter (j ? " " : "") back
    }
    if (line in seen) continue
    seen[line] = 1
    print line > (folder "/" name ".source")
    print back > (folder "/" name ".target")
    ++i
  }
}
BEGIN { state = 20170612; emit("test", 500); emit("dev", 500); emit("train", 40000) }'
mv "$work"/*.source "$work"/*.target "$1"
