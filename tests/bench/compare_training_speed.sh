#!/usr/bin/env bash
# Training speed of the small model (width 256, 3 + 3 layers, vocabulary 8,000) beside a PyTorch script's:
#
#   tests/bench/compare_training_speed.sh float32|bf16 ROUNDS PYTORCH_COMMAND...
#
# PYTORCH_COMMAND prints a line with "tgt_tok_s": N, target tokens per second, for batches of 64 sentence pairs of
# 32 + 32 tokens. Octavo trains on the same shapes: random words that are one subword each, 31 and EOS. The two take
# turns; medians and their ratio are printed. Needs out/quickstart-en-de/prepared (launch/quickstart.sh makes it).
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
precision=$1 rounds=$2
shift 2
cd "$(dirname "$0")/../.."
octavo=${OCTAVO:-$PWD/build/cpu-release/octavo}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 - out/quickstart-en-de/prepared/subwords.vocab "$work" <<'PYTHON'
import random, sys
pieces = [line.rstrip("\n").split("\t")[2] for line in open(sys.argv[1], encoding="utf-8")]
words = [piece[1:] for piece in pieces if piece.startswith("\u2581") and len(piece) > 3 and piece[1:].isalpha()]
random.seed(1)
for side in ("source", "target"):
    with open(f"{sys.argv[2]}/{side}", "w", encoding="utf-8") as file:
        file.writelines(" ".join(random.choices(words, k=31)) + "\n" for _ in range(12800))
PYTHON
settings=(
  --set "data.prepared=$work/prepared"
  --set "data.train=[{source: $work/source, target: $work/target}]"
  --set data.subwords.model=out/quickstart-en-de/prepared/subwords.model
  --set 'data.dev.source=""' --set 'data.dev.target=""'
  --set "trainer.output=$work/run" --set "trainer.precision=$precision"
  --set trainer.tokens_per_update=2048 --set trainer.max_tokens=2048
  --set trainer.max_minutes=none --set trainer.max_updates=60 --set trainer.report_every=10
  --set trainer.schedule.kind=constant --set trainer.optimizer.clip_norm=none
  --set trainer.validation.every_minutes=none --set trainer.checkpoints.every_minutes=none
)
config=configs/quickstart-en-de.yaml
"$octavo" prepare "$config" "${settings[@]}"

ours() {
  rm -rf "$work/run"
  OCTAVO=$octavo launch/train.sh "$config" "${settings[@]}" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  python3 - "$work/run/metrics.jsonl" <<'PYTHON'
import json, statistics, sys
reports = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
print(statistics.median(r["target_tokens_per_second"] for r in reports[1:] if r["kind"] == "train"))
PYTHON
}
theirs() { OMP_NUM_THREADS=$(nproc) "$@" | sed -n 's/.*"tgt_tok_s": \([0-9.]*\).*/\1/p'; }

for ((round = 1; round <= rounds; ++round)); do
  ours >>"$work/ours"
  theirs "$@" >>"$work/theirs"
  echo "round $round: Octavo $(tail -n1 "$work/ours"), PyTorch $(tail -n1 "$work/theirs") target tokens/s"
done
python3 - "$work/ours" "$work/theirs" <<'PYTHON'
import statistics, sys
ours, theirs = (statistics.median(float(line) for line in open(path)) for path in sys.argv[1:])
print(f"medians: Octavo {ours:.0f}, PyTorch {theirs:.0f} target tokens/s; ratio {ours / theirs:.2f}")
PYTHON
