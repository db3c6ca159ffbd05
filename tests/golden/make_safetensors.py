#!/usr/bin/env python3
"""Writes safetensors.safetensors with Python's own implementation; needs torch and safetensors. See PROVENANCE.md.

    python3 tests/golden/make_safetensors.py
"""

import pathlib

import torch
from safetensors.torch import save_file

METADATA = {"text": "ä € 😀 \"quoted\" \\ \n"}
TENSORS = {
    "f32": torch.tensor([[1.5, -2.25, 3e-38], [float("inf"), -0.0, 1e38]], dtype=torch.float32),
    "f64": torch.tensor([0.1, -1e300], dtype=torch.float64),
    "bf16": torch.tensor([1.0, -3.140625, 65280.0], dtype=torch.bfloat16),
    "i64": torch.tensor([[[-(2**63)], [2**63 - 1]]], dtype=torch.int64),
    "i32": torch.tensor([-7, 2**31 - 1], dtype=torch.int32),
    "u8": torch.tensor([0, 255, 128], dtype=torch.uint8),
    "scalar": torch.tensor(42.0, dtype=torch.float32),
    "empty": torch.zeros((0, 5), dtype=torch.float32),
    "ümlaut.\"name\"": torch.tensor([7.0], dtype=torch.float32),
}

save_file(TENSORS, pathlib.Path(__file__).resolve().parent / "safetensors.safetensors", metadata=METADATA)
