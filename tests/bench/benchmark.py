#!/usr/bin/env python3
"""Measures for launch/benchmark.sh, which see: training and decoding beside PyTorch and CTranslate2."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "out/benchmark"
TEXT = ROOT / "out/quickstart-en-de/text"
OCTAVO = ROOT / "build/cpu-release/octavo"
BENCH = ROOT / "tests/bench"
LENGTH = 32  # tokens of a sentence, EOS counted
MODELS = {
    "small": {"width": 256, "hidden": 1024, "heads": 4, "layers": 3, "vocabulary": 8000, "updates": 60, "lines": 512},
    "base": {"width": 512, "hidden": 2048, "heads": 8, "layers": 6, "vocabulary": 32000, "updates": 12, "lines": 128},
}


def say(text):
    print(f"[benchmark] {text}", flush=True)


def run(command, threads=None, **options):
    """What a command writes on standard output and standard error; its log is shown if it fails."""
    environment = dict(os.environ)
    if threads:  # bound to cores; workers with threads of their own must not be, or they share one
        environment.update(OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="close", OMP_PLACES="cores")
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, env=environment, **options)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}error: {' '.join(map(str, command))} ended with code {done.returncode}")
    return done.stdout, done.stderr


def last_json(text):
    return json.loads([line for line in text.splitlines() if line.startswith("{")][-1])


def random_words(vocabulary, path, lines, words):
    """Lines of words that are one subword each."""
    pieces = [line.split("\t")[2] for line in vocabulary.read_text("utf-8").splitlines()]
    whole = [piece[1:] for piece in pieces if piece.startswith("\u2581") and len(piece) > 3 and piece[1:].isalpha()]
    chosen = random.Random(str(path))
    path.write_text("".join(" ".join(chosen.choices(whole, k=words)) + "\n" for _ in range(lines)), "utf-8")


def configuration(size, length):
    """An experiment on sentences of `length` tokens, prepared; the path of its settings."""
    model, folder = MODELS[size], WORK / f"{size}-{length}"
    subwords = WORK / size / "subwords.model"
    config = folder / "experiment.yaml"
    if config.exists():
        return config
    folder.mkdir(parents=True, exist_ok=True)
    if not subwords.exists():
        say(f"training a subword model of {model['vocabulary']:,} pieces")
        learn = {"prepared": str(WORK / size), "train": [{"source": str(TEXT / "train.en"), "target": str(TEXT / "train.de")}],
                 "subwords": {"vocabulary_size": model["vocabulary"]}}
        (WORK / f"{size}.yaml").write_text(json.dumps({"data": learn, "trainer": {"output": "none", "max_updates": 1}}))
        run([OCTAVO, "prepare", WORK / f"{size}.yaml"])
    vocabulary = WORK / size / "subwords.vocab"
    for side in ("source", "target"):
        random_words(vocabulary, folder / side, 262144 // length, length - 1)
    data = {"prepared": str(folder / "prepared"), "train": [{"source": str(folder / "source"), "target": str(folder / "target")}],
            "subwords": {"model": str(subwords)}, "max_length": max(length, 32)}
    layers = {"encoder_layers": model["layers"], "decoder_layers": model["layers"]}
    dropouts = {"dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1}  # where PyTorch's layers have it
    experiment = {
        "data": data,
        "model": {"width": model["width"], "hidden": model["hidden"], "heads": model["heads"], "norm": "pre", **layers, **dropouts},
        "trainer": {"output": str(folder / "run"), "max_updates": model["updates"], "tokens_per_update": 2048,
                    "max_tokens": 2048, "report_every": model["updates"] // 6,
                    "optimizer": {"clip_norm": "none"}, "schedule": {"kind": "constant", "peak_rate": 3.0e-4}},
    }
    unfinished = config.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(experiment).replace('"none"', "none"))
    run([OCTAVO, "prepare", unfinished])
    return unfinished.rename(config)


def train(size, precision, threads=None, ranks=1, length=LENGTH):
    """Target tokens per second: the median over reports but the first."""
    config = configuration(size, length)
    folder = config.parent / "run"
    shutil.rmtree(folder, ignore_errors=True)
    command = [ROOT / "launch/train.sh", config, "--ranks", ranks, "--progress", "plain", "--set", f"trainer.precision={precision}"]
    if threads:
        command += ["--threads", threads]
    run(command)
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(record["target_tokens_per_second"] for record in records[1:] if record["kind"] == "train")


def training(rounds):
    results = {}
    for size in MODELS:
        for precision in ("float32", "bf16"):
            threads = os.cpu_count()
            torch = [sys.executable, BENCH / "torch_speed.py", size, precision]
            limit = [ROOT / "build/cpu-release/tests/product_limit", size, precision]
            turns = {"octavo": [], "torch": [], "products": []}
            for _ in range(rounds):
                turns["octavo"].append(train(size, precision))
                turns["torch"].append(last_json(run(torch, threads)[0])["tgt_tok_s"])
                turns["products"].append(last_json(run(limit, threads)[0])["tgt_tok_s"])
            median = {name: statistics.median(values) for name, values in turns.items()}
            say(f"training {size} {precision}: Octavo {median['octavo']:.0f}, PyTorch {median['torch']:.0f} target tokens/s, "
                f"{median['octavo'] / median['torch']:.2f} x; {median['octavo'] / median['products']:.0%} of products alone "
                f"({median['products']:.0f})")
            results[f"{size} {precision}"] = {"turns": turns, "medians": median}
    return results


def decode_octavo(model, text, beam, precision):
    _, log = run([OCTAVO, "translate", model, "--preset", "fairseq", "--beam", beam, "--min-length", LENGTH, "--max-length",
                  LENGTH, "--precision", precision], stdin=text.open())
    return float(re.search(r"([\d.]+) target tokens/s", log)[1])


def decode_ctranslate2(model, subwords, text, beam, precision, workers):
    command = [sys.executable, BENCH / "ctranslate2_translate.py", model, subwords, "--compute", precision, "--beam", beam,
               "--min-length", LENGTH, "--max-length", LENGTH, "--workers", workers, "--threads", os.cpu_count() // workers]
    _, log = run(command, stdin=text.open())
    told = last_json(log)
    return told["target_tokens"] / told["seconds"]


def decoding(rounds):
    results = {}
    for size, model in MODELS.items():
        config = configuration(size, LENGTH)
        train(size, "float32")
        checkpoint = next(iter(sorted((config.parent / "run/checkpoints").glob("step_*"))))
        peer, text = WORK / size / "ctranslate2", config.parent / "text"
        run([sys.executable, BENCH / "ctranslate2_model.py", checkpoint, peer])
        random_words(WORK / size / "subwords.vocab", text, model["lines"], LENGTH - 1)
        subwords = WORK / size / "subwords.model"
        for precision in ("float32", "int8"):
            for beam in (4, 1):
                # Its threads share a batch, or have one each: whichever is faster here.
                ways = {w: decode_ctranslate2(peer, subwords, text, beam, precision, w) for w in (1, os.cpu_count())}
                workers = max(ways, key=ways.get)
                turns = {"octavo": [], "ctranslate2": []}
                for _ in range(rounds):
                    turns["octavo"].append(decode_octavo(checkpoint, text, beam, precision))
                    turns["ctranslate2"].append(decode_ctranslate2(peer, subwords, text, beam, precision, workers))
                median = {name: statistics.median(values) for name, values in turns.items()}
                say(f"decoding {size} {precision} beam {beam}: Octavo {median['octavo']:.0f}, CTranslate2 "
                    f"{median['ctranslate2']:.0f} target tokens/s, {median['octavo'] / median['ctranslate2']:.2f} x")
                results[f"{size} {precision} beam {beam}"] = {"turns": turns, "medians": median}
    return results


def scaling(rounds):
    results = {}
    ways = {"1 thread": {"threads": 1}, "2 threads": {"threads": 2}, "2 ranks": {"threads": 1, "ranks": 2}}
    ways.update({f"{length} tokens a sentence": {"length": length} for length in (8, 16, 32, 64, 128, 256)})
    for name, way in ways.items():
        results[name] = statistics.median(train("small", "float32", **way) for _ in range(rounds))
        say(f"scaling small float32, {name}: {results[name]:.0f} target tokens/s")
    return results


def processor():
    models = re.findall(r"^model name\s*: (.*)$|^flags\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    flags = " ".join(flag for _, flag in models).split()
    told = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16") if flag in flags]
    return {"name": next(name for name, _ in models if name), "flags": told, "processors": os.cpu_count(), "machine": platform.machine()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--only", choices=("all", "training", "decoding", "scaling"), required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    import ctranslate2
    import torch
    WORK.mkdir(parents=True, exist_ok=True)
    results = {"date": datetime.date.today().isoformat(), "processor": processor(), "rounds": options.rounds,
               "versions": {"octavo": run([OCTAVO, "--version"])[0].split("\n")[0], "torch": torch.__version__,
                            "ctranslate2": ctranslate2.__version__}}
    say(json.dumps(results))
    for name, part in {"training": training, "decoding": decoding, "scaling": scaling}.items():
        if options.only in ("all", name):
            results[name] = part(options.rounds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    say(f"wrote {options.output}")


if __name__ == "__main__":
    main()
