#!/usr/bin/env python3
"""A plain PyTorch Transformer, trained on what 'octavo prepare' made: the translations that one gets without Octavo.

  torch_translation.py PREPARED SOURCE_TEXT OUTPUT [--seconds 900] [--updates N] [--precision bf16] [--seed 1]

Trains for so many seconds (or updates), then translates SOURCE_TEXT (lines) with beam 4 into OUTPUT. Sizes, recipe
and the average of the last five checkpoints are those of configs/quickstart-en-de.yaml; sentences of similar
length are padded to one another, as usual. Needs torch (2 or newer), numpy and sentencepiece.
"""
import argparse
import copy
import json
import math
import random
import time

import numpy
import sentencepiece
import torch
from torch import nn
from torch.nn import functional

PAD = 0
BEAM, PENALTY = 4, 1.0


def read_columns(path, names):
    """Rows of ids of the named columns; docs/formats/corpus.md."""
    data = numpy.memmap(path, numpy.uint8, "r")
    size = int(data[-32:-24].view("<u8")[0])
    footer = json.loads(bytes(data[-32 - size:-32]))
    columns = [column["name"] for column in footer["columns"]]
    found = {name: [] for name in names}
    for number, block in enumerate(footer["blocks"]):
        rows = min(footer["rows_per_block"], footer["rows"] - number * footer["rows_per_block"])
        for name in names:
            column = columns.index(name)
            begin = block[column]
            ends = data[begin:begin + 4 * (rows + 1)].view("<u4")
            begin = (begin + 4 * (rows + 1) + 7) // 8 * 8
            width = 2 if footer["columns"][column]["type"] == "tokens16" else 4
            ids = data[begin:begin + width * int(ends[-1])].view(f"<u{width}")
            found[name] += [ids[a:b].tolist() for a, b in zip(ends[:-1], ends[1:])]
    return [found[name] for name in names]


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.keys = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x, memory, mask=None, causal=False):
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.keys(memory).chunk(2, -1)
        y = functional.scaled_dot_product_attention(split(self.query(x)), split(k), split(v), mask, is_causal=causal)
        return self.output(y.transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self, options, decoder):
        super().__init__()
        width = options.width
        self.self_attention = Attention(width, options.heads)
        self.cross_attention = Attention(width, options.heads) if decoder else None
        self.up, self.down = nn.Linear(width, options.hidden), nn.Linear(options.hidden, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(options.dropout)

    def forward(self, x, mask, memory=None, memory_mask=None):
        y = self.norms[0](x)
        x = x + self.dropout(self.self_attention(y, y, mask, causal=self.cross_attention is not None))
        if self.cross_attention is not None:
            x = x + self.dropout(self.cross_attention(self.norms[1](x), memory, memory_mask))
        return x + self.dropout(self.down(torch.relu(self.up(self.norms[2](x)))))


class Model(nn.Module):
    def __init__(self, options, vocabulary):
        super().__init__()
        width = options.width
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, 0, width ** -0.5)
        self.encoder = nn.ModuleList(Layer(options, False) for _ in range(options.layers))
        self.decoder = nn.ModuleList(Layer(options, True) for _ in range(options.layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(options.dropout)
        angles = torch.arange(512)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000) / width))
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], 1))

    def embed(self, ids):
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x + self.positions[:ids.size(1)])

    def encode(self, source):
        mask = (source != PAD)[:, None, None, :]
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x), mask

    def decode(self, target, memory, mask):
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, None, memory, mask)
        return self.decoder_norm(x)

    def logits(self, x):
        return functional.linear(x, self.embedding.weight)


def padded(rows):
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def updates(pairs, tokens, rng):
    """Batches of about `tokens` target tokens of similar length, in random order, epoch after epoch."""
    while True:
        order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][1]), len(pairs[i][0]), rng.random()))
        batches, batch, size = [], [], 0
        for i in order:
            batch.append(i)
            size += len(pairs[i][1]) - 1
            if size >= tokens:
                batches.append(batch)
                batch, size = [], 0
        rng.shuffle(batches)
        yield from batches


def train(options, model, pairs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1, betas=(0.9, 0.98), eps=1e-9, fused=True)
    begin, tokens, kept, share, losses = time.time(), 0, [], 0.0, []
    for update, batch in enumerate(updates(pairs, options.tokens, random.Random(options.seed)), 1):
        share = update / options.updates if options.updates else (time.time() - begin) / options.seconds
        if share > 1:
            break
        rate = options.rate * min(update / options.warmup, max(0.0, 1 - share))
        for group in optimizer.param_groups:
            group["lr"] = rate
        source = padded([pairs[i][0] for i in batch])
        target = padded([pairs[i][1] for i in batch])
        labels = target[:, 1:].reshape(-1)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            x = model.decode(target[:, :-1], *model.encode(source)).flatten(0, 1)
            real = labels != PAD
            logits = model.logits(x[real])
        loss = functional.cross_entropy(logits.float(), labels[real], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tokens += int(real.sum())
        losses.append(float(loss.detach()))
        if share > 1 - (5 - len(kept)) / 15 or (options.updates and update == options.updates):
            kept.append(copy.deepcopy(model.state_dict()))
        if update % 100 == 0:
            pace = tokens / (time.time() - begin)
            print(f"update {update} loss {sum(losses[-100:]) / 100:.3f} target tokens/s {pace:.0f}", flush=True)
    kept = (kept + [copy.deepcopy(model.state_dict())])[-5:]
    model.load_state_dict({name: sum(state[name] for state in kept) / len(kept) for name in kept[0]})
    print(f"trained {len(losses)} updates, {tokens / (time.time() - begin):.0f} target tokens/s")


def beam_search(model, source, bos, eos):
    """Best translation of each row of `source`, as ids; length penalty of Wu et al., output up to source + 50."""
    memory, mask = model.encode(source)
    rows, size = source.size(0), BEAM
    memory, mask = memory.repeat_interleave(size, 0), mask.repeat_interleave(size, 0)
    hypotheses = torch.full((rows * size, 1), bos)
    scores = torch.tensor([[0.0] + [-math.inf] * (size - 1)] * rows)
    ended = [[] for _ in range(rows)]
    for step in range(source.size(1) + 50):
        logits = model.logits(model.decode(hypotheses, memory, mask)[:, -1]).float()
        total = torch.log_softmax(logits, -1).view(rows, size, -1) + scores[:, :, None]
        best, index = total.flatten(1).topk(2 * size, -1)
        kept, kept_scores = [], []
        for row in range(rows):
            chosen = []
            for score, i in zip(best[row].tolist(), index[row].tolist()):
                parent, piece = row * size + i // logits.size(1), i % logits.size(1)
                if piece == eos:
                    ended[row].append((score / ((6 + step) / 6) ** PENALTY, hypotheses[parent, 1:].tolist()))
                elif len(chosen) < size:
                    chosen.append((score, torch.cat([hypotheses[parent], torch.tensor([piece])])))
            kept += [ids for _, ids in chosen]
            kept_scores.append([score for score, _ in chosen])
        hypotheses, scores = torch.stack(kept), torch.tensor(kept_scores)
        if all(len(done) >= size for done in ended):
            break
    return [max(done)[1] if done else hypotheses[row * size, 1:].tolist() for row, done in enumerate(ended)]


def translate(model, subwords, lines):
    model.eval()
    order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
    found = [""] * len(lines)
    with torch.no_grad():
        for begin in range(0, len(order), 32):
            part = order[begin:begin + 32]
            source = padded([subwords.encode(lines[i])[:400] + [subwords.eos_id()] for i in part])
            for i, ids in zip(part, beam_search(model, source, subwords.bos_id(), subwords.eos_id())):
                found[i] = subwords.decode(ids)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prepared")
    parser.add_argument("source_text")
    parser.add_argument("output")
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--updates", type=int, help="instead of seconds")
    parser.add_argument("--precision", choices=["float32", "bf16"], default="bf16")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=2000, help="target tokens of an update")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    subwords = sentencepiece.SentencePieceProcessor(options.prepared + "/subwords.model")
    bos, eos = subwords.bos_id(), subwords.eos_id()
    sources, targets = read_columns(options.prepared + "/train.0.corpus", ["source", "target"])
    pairs = [(source + [eos], [bos] + target + [eos]) for source, target in zip(sources, targets)]
    model = Model(options, subwords.vocab_size())
    print(f"{len(pairs)} pairs, {sum(p.numel() for p in model.parameters())} parameters, {torch.get_num_threads()} threads")
    train(options, model, pairs)
    with open(options.source_text, encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")[:-1]
    with open(options.output, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in translate(model, subwords, lines))


if __name__ == "__main__":
    main()
