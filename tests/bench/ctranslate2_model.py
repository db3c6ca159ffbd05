#!/usr/bin/env python3
"""Writes an Octavo checkpoint as a model of CTranslate2, to compare the two with the same weights.

  ctranslate2_model.py CHECKPOINT OUTPUT

CHECKPOINT is a folder with weights.safetensors (docs/formats/checkpoint.md), sinusoidal positions, one vocabulary
for both sides. Needs ctranslate2, numpy, safetensors and PyYAML.
"""
import argparse
import pathlib

import ctranslate2
import numpy
import safetensors.numpy
import yaml
from ctranslate2.specs import common_spec, transformer_spec

LAYER_NORM_EPSILON = 1e-5


def pieces_of(path):
    """The vocabulary's pieces, made unique: CTranslate2 looks ids up by them."""
    lines = path.read_text("utf-8").splitlines()
    return [line.split("\t")[2] if line.split("\t")[1] != "mute" else f"<mute {line.split(chr(9))[0]}>" for line in lines]


def sinusoids(positions, width):
    """The same as ours: sine and cosine take turns."""
    angles = numpy.arange(positions)[:, None] * 10000.0 ** (-numpy.arange(0, width, 2) / width)
    table = numpy.empty((positions, width), numpy.float32)
    table[:, 0::2], table[:, 1::2] = numpy.sin(angles), numpy.cos(angles)
    return table


class Filler:
    """Copies named weights into the layers of a specification."""

    def __init__(self, weights):
        self.weights = weights

    def norm(self, spec, name):
        spec.gamma, spec.beta = self.weights[name + ".weight"], self.weights[name + ".bias"]

    def linear(self, spec, *names):
        """Several are stacked into one product."""
        spec.weight = numpy.concatenate([self.weights[name + ".weight"] for name in names])
        spec.bias = numpy.concatenate([self.weights[name + ".bias"] for name in names])

    def self_attention(self, spec, name):
        self.norm(spec.layer_norm, name + "_norm")
        self.linear(spec.linear[0], name + ".q", name + ".k", name + ".v")
        self.linear(spec.linear[1], name + ".out")

    def cross_attention(self, spec, name):
        self.norm(spec.layer_norm, name + "_norm")
        self.linear(spec.linear[0], name + ".q")
        self.linear(spec.linear[1], name + ".k", name + ".v")
        self.linear(spec.linear[2], name + ".out")

    def feed_forward(self, spec, name):
        self.norm(spec.layer_norm, name + "_norm")
        self.linear(spec.linear_0, name + ".up")
        self.linear(spec.linear_1, name + ".down")


def specification(settings, weights):
    layers = settings["encoder_layers"], settings["decoder_layers"]
    spec = transformer_spec.TransformerSpec.from_config(
        layers, settings["heads"], pre_norm=settings["norm"] == "pre",
        activation={"relu": common_spec.Activation.RELU, "gelu": common_spec.Activation.GELU}[settings["activation"]])
    fill = Filler(weights)
    table = sinusoids(settings["max_positions"], settings["width"])
    for side, name in ((spec.encoder, "encoder"), (spec.decoder, "decoder")):
        embeddings = side.embeddings[0] if name == "encoder" else side.embeddings
        embeddings.weight = weights["embedding.weight"]
        side.position_encodings.encodings = table
        if settings["norm"] == "pre":
            fill.norm(side.layer_norm, name + ".norm")
        for number, layer in enumerate(side.layer):
            prefix = f"{name}.layers.{number}."
            fill.self_attention(layer.self_attention, prefix + "self_attention")
            if name == "decoder":
                fill.cross_attention(layer.attention, prefix + "cross_attention")
            fill.feed_forward(layer.ffn, prefix + "feed_forward")
    spec.decoder.projection.weight = weights["embedding.weight"]
    return spec


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    options = parser.parse_args()
    settings = yaml.safe_load((options.checkpoint / "settings.yaml").read_text("utf-8"))["model"]
    weights = safetensors.numpy.load_file(options.checkpoint / "weights.safetensors")
    spec = specification(settings, weights)
    spec.config.layer_norm_epsilon = LAYER_NORM_EPSILON
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = "<s>"
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "<s>", "</s>", "<unk>"
    pieces = pieces_of(options.checkpoint / "subwords.vocab")
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.validate()
    spec.optimize()
    options.output.mkdir(parents=True, exist_ok=True)
    spec.save(str(options.output))


if __name__ == "__main__":
    main()
