#!/usr/bin/env python3
"""Golden values of whole models: loss and gradients of a plain PyTorch Transformer in float64.

Needs PyTorch (any 1.13 or later). Writes transformer.json beside this script.
Parameters are not stored: both sides compute them from their name and index by the same formula
(see value()). Of each gradient two projections are stored, so that the file stays small and any
wrong element shows. Attention and the loss are written out plainly, on padded batches with masks:
nothing here is packed.
"""
import json
import math
import os
import re

import torch

torch.set_default_dtype(torch.float64)

PAIRS = [  # source ids, target ids (both end with EOS = 2); lengths differ on purpose
    ([5, 9, 4, 10, 2], [7, 4, 2]),
    ([8, 2], [6, 10, 9, 5, 4, 8, 2]),
    ([4, 4, 6, 2], [2]),
    ([2], [5, 2]),
]
BOS, VOCABULARY, SMOOTHING = 1, 11, 0.1
BASE = dict(width=8, hidden=12, heads=2, head_width=4, encoder_layers=2, decoder_layers=2, norm="post",
            activation="relu", positions="sinusoidal", max_positions=16, share_embeddings="all")
CASES = {
    "post_relu_all": {},
    "pre_gelu_decoder": dict(norm="pre", activation="gelu", share_embeddings="decoder"),
    "post_gelu_none_learned": dict(activation="gelu", share_embeddings="none", positions="learned"),
    "pre_relu_all_learned_wide_heads": dict(norm="pre", positions="learned", head_width=3, heads=3),
    "post_deep_encoder": dict(encoder_layers=3, decoder_layers=1, heads=1, head_width=8),
}


def value(name, shape):
    """Element i of a parameter: 0.5 sin(i + 1 + sum of the name's bytes); norms' weights start near 1."""
    key = sum(name.encode()) % 1000
    i = torch.arange(math.prod(shape))
    v = 0.5 * torch.sin(i * 1.7 + key + 1.0)
    if name.endswith("norm.weight"):
        v = 1.0 + 0.2 * v
    return v.reshape(shape).clone().requires_grad_()


class Model:
    def __init__(self, config):
        self.c = config
        self.p = {}

    def get(self, name, *shape):
        if name not in self.p:
            self.p[name] = value(name, shape)
        return self.p[name]

    def linear(self, name, x, out):
        return x @ self.get(name + ".weight", out, x.shape[-1]).T + self.get(name + ".bias", out)

    def norm(self, name, x):
        w, b = self.get(name + ".weight", self.c["width"]), self.get(name + ".bias", self.c["width"])
        return torch.nn.functional.layer_norm(x, (self.c["width"],), w, b, 1e-5)

    def attention(self, name, x, keys, mask):
        h, w = self.c["heads"], self.c["head_width"]
        split = lambda t: t.reshape(t.shape[0], t.shape[1], h, w).transpose(1, 2)
        q = split(self.linear(name + ".q", x, h * w))
        k = split(self.linear(name + ".k", keys, h * w))
        v = split(self.linear(name + ".v", keys, h * w))
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(w)
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        context = (weights @ v).transpose(1, 2).reshape(x.shape[0], x.shape[1], h * w)
        return self.linear(name + ".out", context, self.c["width"])

    def feed_forward(self, name, x):
        u = self.linear(name + ".up", x, self.c["hidden"])
        u = torch.relu(u) if self.c["activation"] == "relu" else torch.nn.functional.gelu(u, approximate="tanh")
        return self.linear(name + ".down", u, self.c["width"])

    def embed(self, side, ids):
        c = self.c
        shared = c["share_embeddings"]
        table = "embedding.weight" if shared == "all" else f"{side}_embedding.weight"
        x = self.get(table, VOCABULARY, c["width"])[ids] * math.sqrt(c["width"])
        n = torch.arange(ids.shape[1])
        if c["positions"] == "learned":
            return x + self.get(f"{side}_positions.weight", c["max_positions"], c["width"])[n]
        rate = 10000.0 ** (-torch.arange(0, c["width"], 2) / c["width"])
        angle = n[:, None] * rate[None]
        return x + torch.stack([angle.sin(), angle.cos()], -1).reshape(len(n), c["width"])

    def stack(self, name, x, layers, sublayers):
        pre = self.c["norm"] == "pre"
        for layer in range(layers):
            for sub, f in sublayers:
                full = f"{name}.layers.{layer}.{sub}"
                if pre:
                    x = x + f(full, self.norm(full + "_norm", x))
                else:
                    x = self.norm(full + "_norm", x + f(full, x))
        return self.norm(f"{name}.norm", x) if pre else x

    def loss(self, source, source_mask, target, labels):
        c = self.c
        see = source_mask[:, None, None, :]
        memory = self.stack("encoder", self.embed("source", source), c["encoder_layers"], [
            ("self_attention", lambda n, x: self.attention(n, x, x, see)),
            ("feed_forward", self.feed_forward)])
        t = target.shape[1]
        causal = torch.ones(t, t, dtype=torch.bool).tril()[None, None]
        out = self.stack("decoder", self.embed("target", target), c["decoder_layers"], [
            ("self_attention", lambda n, x: self.attention(n, x, x, causal)),
            ("cross_attention", lambda n, x: self.attention(n, x, memory, see)),
            ("feed_forward", self.feed_forward)])
        shared = c["share_embeddings"]
        table = {"all": "embedding.weight", "decoder": "target_embedding.weight", "none": "output.weight"}[shared]
        logp = (out @ self.get(table, VOCABULARY, c["width"]).T).log_softmax(-1)
        real = labels >= 0
        nll = -logp.gather(-1, labels.clamp(min=0)[..., None])[..., 0][real].sum()
        smooth = -logp.mean(-1)[real].sum()
        return (1 - SMOOTHING) * nll + SMOOTHING * smooth, nll


def padded(rows, fill):
    width = max(map(len, rows))
    return torch.tensor([r + [fill] * (width - len(r)) for r in rows])


def main():
    cases = {}
    for name, change in CASES.items():
        config = {**BASE, **change}
        model = Model(config)
        source = padded([s for s, _ in PAIRS], 0)
        mask = padded([[1] * len(s) for s, _ in PAIRS], 0).bool()
        target = padded([[BOS] + t[:-1] for _, t in PAIRS], 0)
        labels = padded([t for _, t in PAIRS], -1)
        loss, nll = model.loss(source, mask, target, labels)
        tokens = sum(len(t) for _, t in PAIRS)
        (loss / tokens).backward()
        gradients = {}
        for key, p in sorted(model.p.items()):
            g = p.grad.reshape(-1)
            i = torch.arange(g.numel())
            gradients[key] = [list(p.shape), (g * torch.sin(0.7 * i + 0.3)).sum().item(),
                              (g * torch.cos(1.3 * i)).sum().item()]
        cases[name] = dict(config=config, loss=loss.item(), nll=nll.item(), gradients=gradients)
    result = dict(made_with=f"PyTorch {torch.__version__.split('+')[0]}, float64", vocabulary=VOCABULARY, bos=BOS,
                  label_smoothing=SMOOTHING, pairs=PAIRS, cases=cases)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transformer.json")
    with open(path, "w") as f:
        f.write(re.sub(r"\n {4,}|\n {3}(?=[\]}])", " ", json.dumps(result, indent=1)) + "\n")


main()
