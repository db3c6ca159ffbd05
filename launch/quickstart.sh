#!/usr/bin/env bash
# From a fresh Debian 12 to a translation model trained on real text, and its BLEU:
#
#   launch/quickstart.sh [--pair en-de|en-fr] [--minutes N]
#
# Installs what is missing, builds, gets and prepares the text, trains for N minutes (default 15), averages
# the last checkpoints, translates the held-out test set and scores it. Stopped anywhere and started again,
# it goes on from there; with a larger N it trains on.
set -euo pipefail

fail() { echo "error: launch/quickstart.sh: $*" >&2; exit 2; }

pair=en-de minutes=15
while [ $# -gt 0 ]; do
  case "$1" in
    --pair) pair=${2-}; shift 2 || fail "--pair needs en-de or en-fr" ;;
    --minutes) minutes=${2-}; shift 2 || fail "--minutes needs a number" ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "no option '$1'; there are --pair and --minutes" ;;
  esac
done
case "$pair" in
  en-de | en-fr) ;;
  *) fail "--pair is '$pair'; it must be en-de or en-fr" ;;
esac
[[ $minutes =~ ^[0-9]+(\.[0-9]+)?$ && $minutes =~ [1-9] ]] ||
  fail "--minutes is '$minutes'; it must be a number above 0, e.g. 15"
cd "$(dirname "$0")/.."

source=${pair%-*} target=${pair#*-}
config=configs/quickstart-$pair.yaml
text=out/quickstart-$pair/text
run_folder=runs/quickstart-$pair

say() { printf '\n[quickstart] %s (%d s so far)\n' "$*" "$SECONDS"; }

has_gpu() { [ -e /dev/nvidia0 ] || { command -v nvidia-smi && nvidia-smi --list-gpus; } >/dev/null 2>&1; }

build() {
  if has_gpu; then
    echo "[quickstart] there is an NVIDIA device, but this version computes on the CPU alone" >&2
  fi
  say "building"
  local log
  log=$(cmake --preset cpu-release -DOCTAVO_TESTS=OFF 2>&1) || { echo "$log" >&2; exit 1; }
  run cmake --build --preset cpu-release --parallel "$(nproc)" --target octavo
}

# bf16 where the processor multiplies it faster than float32.
precision_here() {
  if grep -qw avx512_bf16 /proc/cpuinfo; then echo bf16; else echo float32; fi
}

hand_on() {  # to the group; a process that is just starting has none yet
  [ -z "$child" ] || kill -TERM -- "-$child" 2>/dev/null || kill -TERM "$child" 2>/dev/null || true
}

# Runs one step. A signal to this script is handed on once, waited for (training saves before it stops),
# and ends the script afterwards. In a session of its own the step and what it has started are one group,
# which does not get a terminal's Ctrl-C as well: mpirun takes two for a kill.
run() {
  local stopped='' status=0 child=''
  trap 'stopped=yes; hand_on' INT TERM HUP
  setsid "$@" <&0 &
  child=$!
  [ -z "$stopped" ] || hand_on
  wait "$child" || status=$?
  while kill -0 "$child" 2>/dev/null; do wait "$child" || status=$?; done
  trap - INT TERM HUP
  if [ -n "$stopped" ]; then
    echo "[quickstart] stopped; run the same command again to go on" >&2
    exit 130
  fi
  [ "$status" -eq 0 ] || exit "$status"
}

# The lines of a file that belong to a domain of the test set.
of_domain() {
  awk -v domain="$1" 'NR == FNR {of[FNR] = $0; next} of[FNR] == domain' "$text/test.domain" "$2"
}

report() {
  say "BLEU of $(wc -l <"$text/test.$target") held-out lines"
  "$octavo" evaluate --reference "$text/test.$target" <"$translation"
  local domain part
  part=$(mktemp)
  sort -u "$text/test.domain" | while read -r domain; do
    of_domain "$domain" "$text/test.$target" >"$part"
    printf '%-21s ' "$domain:"
    of_domain "$domain" "$translation" | "$octavo" evaluate --reference "$part" | sed -n '1s/^[^=]*= //p'
  done
  rm -f "$part"

  printf '\nFive of them:\n'
  local line
  for line in 100 300 500 700 900; do
    printf '\n  source       %s\n' "$(sed -n "${line}p" "$text/test.$source")"
    printf '  translation  %s\n' "$(sed -n "${line}p" "$translation")"
    printf '  reference    %s\n' "$(sed -n "${line}p" "$text/test.$target")"
  done
  printf '\n%s\nrun folder: %s\n' "$(speed)" "$run_folder"
}

# Tokens per second, the median of the run's reports.
speed() {
  python3 - "$run_folder/metrics.jsonl" <<'EOF'
import json, statistics, sys
records = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
reports = [record for record in records if record["kind"] == "train"]
if reports:
    source, target = (statistics.median(report[f"{side}_tokens_per_second"] for report in reports)
                      for side in ("source", "target"))
    print(f"speed of training: {source:.0f} source tokens/s, {target:.0f} target tokens/s "
          "(medians of its reports)")
else:
    print("speed of training: not known, it was too short for a report")
EOF
}

# Averages the last five checkpoints, or those that a short training has left.
average() {
  local checkpoints=("$run_folder"/checkpoints/step_*/)
  local last=$((${#checkpoints[@]} < 5 ? ${#checkpoints[@]} : 5))
  rm -rf "$run_folder/average"
  run "$octavo" average "$run_folder" --last "$last" --output "$run_folder/average"
}

say "packages"
launch/install.sh build
build
octavo=build/cpu-release/octavo
say "text: download, extraction and cleaning"
run launch/fetch_text.sh --pair "$pair" --output "$text"
say "subwords and corpus"
run "$octavo" prepare "$config"
precision=$(precision_here)
say "training for $minutes minutes in all, in $precision"
run env OCTAVO="$PWD/$octavo" launch/train.sh "$config" --set "trainer.max_minutes=$minutes" \
  --set "trainer.precision=$precision"
say "averaging the last checkpoints"
average
translation=$run_folder/test.$target
say "translating the test set"
run "$octavo" translate "$run_folder/average" --beam 4 <"$text/test.$source" >"$translation.tmp"
mv "$translation.tmp" "$translation"
report
