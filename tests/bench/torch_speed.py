#!/usr/bin/env python3
"""Training speed of a Transformer in PyTorch, 1.13 or newer, for launch/benchmark.sh.

  torch_speed.py small|base float32|bf16

Prints {"tgt_tok_s": N}: target tokens per second, the median over steps on random batches of 64 pairs of 32 + 32
tokens. Dropout of 0.1 is where PyTorch's own layers have it: inside attention and the feed-forward layer too. With Debian's python3-torch a BLAS must be chosen:
LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp (package libopenblas0-openmp).
"""
import json
import math
import statistics
import sys
import time

import torch
from torch import nn

SIZES = {"small": (256, 1024, 4, 3, 8000), "base": (512, 2048, 8, 6, 32000)}
PAIRS, LENGTH, WARM_UP, STEPS = 64, 32, 3, 12


class Model(nn.Module):
    def __init__(self, width, hidden, heads, layers, vocabulary):
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, 0, width ** -0.5)
        options = {"dropout": 0.1, "batch_first": True, "norm_first": True}
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, heads, hidden, **options), layers,
                                             nn.LayerNorm(width))
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, heads, hidden, **options), layers,
                                             nn.LayerNorm(width))
        self.dropout = nn.Dropout(0.1)
        angles = torch.arange(LENGTH)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], 1))

    def embed(self, ids):
        return self.dropout(self.embedding(ids) * math.sqrt(self.width) + self.positions)

    def forward(self, source, target, mask):
        memory = self.encoder(self.embed(source))
        return nn.functional.linear(self.decoder(self.embed(target), memory, tgt_mask=mask), self.embedding.weight)


def main():
    size, precision = sys.argv[1:] if len(sys.argv) == 3 else ("", "")
    if size not in SIZES or precision not in ("float32", "bf16"):
        sys.exit(__doc__)
    torch.manual_seed(1)
    vocabulary = SIZES[size][-1]
    model = Model(*SIZES[size])
    optimizer = torch.optim.Adam(model.parameters(), 3e-4, (0.9, 0.98), 1e-9)
    mask = torch.full((LENGTH, LENGTH), -math.inf).triu(1)
    if precision == "bf16":
        mask = mask.bfloat16()
    seconds = []
    for _ in range(WARM_UP + STEPS):
        source = torch.randint(4, vocabulary, (PAIRS, LENGTH))
        target = torch.randint(4, vocabulary, (PAIRS, LENGTH + 1))
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            logits = model(source, target[:, :-1], mask)
        loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"tgt_tok_s": round(PAIRS * LENGTH / statistics.median(seconds[WARM_UP:]), 1)}))


if __name__ == "__main__":
    main()
