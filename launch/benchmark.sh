#!/usr/bin/env bash
# Training and decoding beside PyTorch and CTranslate2 on this machine, in turns (A B A B); medians and ratios.
#
#   launch/benchmark.sh [--rounds N] [--peers DIR] [--only training|decoding|scaling] [--output FILE]
#
#   --rounds N    turns of each; default 3
#   --peers DIR   Python environment with torch, ctranslate2, sentencepiece, safetensors, numpy and PyYAML;
#                 default out/benchmark/peers, made with pip where it is missing
#   --only WHAT   one part; default all
#   --output F    the numbers as JSON; default out/benchmark/benchmark.json
#
# Takes about an hour. Needs the text of launch/quickstart.sh (or launch/fetch_text.sh) in out/quickstart-en-de/text,
# and nothing else running. docs/benchmark.md says what is measured.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "error: launch/benchmark.sh: $*" >&2; exit 2; }
rounds=3 peers=out/benchmark/peers only=all output=out/benchmark/benchmark.json
while (($# > 0)); do
  case $1 in
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --rounds | --peers | --only | --output)
      (($# > 1)) || fail "$1 needs a value"
      case $1 in
        --rounds) [[ $2 =~ ^[1-9][0-9]?$ ]] || fail "--rounds is '$2'; it must be a number from 1 to 99"; rounds=$2 ;;
        --peers) peers=$2 ;;
        --only) only=$2 ;;
        --output) output=$2 ;;
      esac
      shift ;;
    *) fail "no option '$1'; --help lists them" ;;
  esac
  shift
done
[[ $only =~ ^(all|training|decoding|scaling)$ ]] || fail "--only is '$only'; it must be training, decoding or scaling"
[[ -f out/quickstart-en-de/text/train.en ]] ||
  fail "there is no out/quickstart-en-de/text; launch/fetch_text.sh --pair en-de --output out/quickstart-en-de/text makes it"
[[ -x build/cpu-release/tests/product_limit ]] ||
  fail "build/cpu-release/tests/product_limit is missing; launch/test.sh builds it"
if [[ ! -x $peers/bin/python ]]; then
  echo "[benchmark] making $peers"
  python3 -m venv "$peers"
  "$peers/bin/pip" install --quiet torch ctranslate2 sentencepiece safetensors numpy PyYAML
fi
exec "$peers/bin/python" tests/bench/benchmark.py --rounds "$rounds" --only "$only" --output "$output"
