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
run=runs/quickstart-$pair

say() { printf '\n[quickstart] %s (%d s so far)\n' "$*" "$SECONDS"; }

# A signal is handed on to the step that runs, and ends the script once all of that step's processes are
# gone. Each step has a session of its own: else a terminal's Ctrl-C would come twice, and mpirun takes
# two for a kill.
child='' starting='' stopped=''
# shellcheck disable=SC2317  # the trap calls it
stop() {
  stopped=yes
  if [ -n "$child" ]; then
    kill -TERM -- "-$child" 2>/dev/null || kill -TERM "$child" 2>/dev/null || true
  elif [ -z "$starting" ]; then
    leave
  fi
}
leave() {
  echo "[quickstart] stopped; run the same command again to go on" >&2
  exit 130
}
trap stop INT TERM HUP

step() {
  local status=0 looks
  starting=yes
  setsid "$@" <&0 &
  child=$! starting=''
  [ -z "$stopped" ] || stop
  wait "$child" || status=$?
  while kill -0 "$child" 2>/dev/null; do wait "$child" || status=$?; done
  if [ -n "$stopped" ]; then
    for ((looks = 0; looks < 100; ++looks)); do kill -0 -- "-$child" 2>/dev/null || break; sleep 0.1; done
    leave
  fi
  child=''
  [ "$status" -eq 0 ] || exit "$status"
}

has_gpu() { [ -e /dev/nvidia0 ] || { command -v nvidia-smi && nvidia-smi --list-gpus; } >/dev/null 2>&1; }

build() {
  if has_gpu; then
    echo "[quickstart] there is an NVIDIA device, but this version computes on the CPU alone" >&2
  fi
  say "building (a few minutes the first time)"
  local log
  log=$(cmake --preset cpu-release -DOCTAVO_TESTS=OFF 2>&1) || { echo "$log" >&2; exit 1; }
  step cmake --build --preset cpu-release --parallel "$(nproc)" --target octavo
}

# bf16 where the processor multiplies it faster than float32.
precision_here() {
  if grep -qw avx512_bf16 /proc/cpuinfo; then echo bf16; else echo float32; fi
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
  printf '\n%s\nrun folder: %s\n' "$(speed)" "$run"
  printf 'to translate more: %s translate %s < TEXT\n' "$octavo" "$run/average"
}

# Tokens per second, the median of the run's reports.
speed() {
  python3 - "$run/metrics.jsonl" <<'EOF'
import json, statistics, sys
records = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
reports = [record for record in records if record["kind"] == "train"]
if reports:
    source, target = (statistics.median(report[f"{side}_tokens_per_second"] for report in reports)
                      for side in ("source", "target"))
    print(f"speed of training: {source:.0f} source tokens/s, {target:.0f} target tokens/s")
else:
    print("speed of training: not known, it was too short for a report")
EOF
}

# Averages the last five checkpoints, or those that a short training has left.
average() {
  local checkpoints=("$run"/checkpoints/step_*/)
  local last=$((${#checkpoints[@]} < 5 ? ${#checkpoints[@]} : 5))
  rm -rf "$run/average"
  step "$octavo" average "$run" --last "$last" --output "$run/average"
}

say "packages"
launch/install.sh build
mkdir -p "out/quickstart-$pair"
exec 8>"out/quickstart-$pair/lock"
flock -w 5 8 || fail "another quickstart of $pair is still running in this folder; wait for it or stop it"
build
octavo=build/cpu-release/octavo
say "text"
step launch/fetch_text.sh --pair "$pair" --output "$text"
say "subwords and corpus of $(wc -l <"$text/train.$source") pairs"
step "$octavo" prepare "$config"
precision=$(precision_here)
say "training for $minutes minutes in all, in $precision"
step env OCTAVO="$PWD/$octavo" launch/train.sh "$config" --set "trainer.max_minutes=$minutes" \
  --set "trainer.precision=$precision"
say "averaging the last checkpoints"
average
translation=$run/test.$target
say "translating the $(wc -l <"$text/test.$source") lines of the test set"
step "$octavo" translate "$run/average" --beam 4 <"$text/test.$source" >"$translation.tmp"
mv "$translation.tmp" "$translation"
report
