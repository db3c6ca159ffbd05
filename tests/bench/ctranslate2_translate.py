#!/usr/bin/env python3
"""Translates a text with CTranslate2 and says how fast, for launch/benchmark.sh.

  ctranslate2_translate.py MODEL SUBWORD_MODEL < SOURCE > TRANSLATION

Beam search with hypotheses ranked by log-probability per token, as Octavo's preset fairseq. The last line of the
log is JSON: seconds without loading, target tokens (EOS counted). Needs ctranslate2 and sentencepiece.
"""
import argparse
import json
import sys
import time

import ctranslate2
import sentencepiece


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("subwords")
    parser.add_argument("--compute", default="float32", help="float32, bfloat16 or int8")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1, help="translate so many batches at once, each with its threads")
    parser.add_argument("--batch", type=int, default=64, help="sentences")
    parser.add_argument("--max-length", type=int, default=200)
    parser.add_argument("--min-length", type=int, default=1)
    options = parser.parse_args()
    subwords = sentencepiece.SentencePieceProcessor(model_file=options.subwords)
    translator = ctranslate2.Translator(options.model, compute_type=options.compute, intra_threads=options.threads,
                                        inter_threads=options.workers)
    lines = [line.rstrip("\n") for line in sys.stdin]
    begin = time.perf_counter()
    sources = [subwords.encode(line, out_type=str) for line in lines]
    results = translator.translate_batch(
        sources, beam_size=options.beam, length_penalty=1.0, max_batch_size=options.batch,
        max_decoding_length=options.max_length, min_decoding_length=options.min_length, return_scores=False)
    outputs = [result.hypotheses[0] for result in results]
    texts = [subwords.decode(output) for output in outputs]
    seconds = time.perf_counter() - begin
    for text in texts:
        print(text)
    steps = [min(len(output) + 1, options.max_length) for output in outputs]  # one that was cut off has no EOS
    print(json.dumps({"seconds": seconds, "target_tokens": sum(steps)}), file=sys.stderr)


if __name__ == "__main__":
    main()
