#!/usr/bin/env python3
"""make_dtype_goldens.py OUT_DIR - random blocks of every tensor type and what the `gguf` package makes of them.

Needs `gguf` 0.19.0 and numpy. Writes, all little-endian:

  TYPE.decode.bin   u32 n, n blocks, then the f32 weights they decode to
  TYPE.encode.bin   u32 n, the f32 weights of n blocks, then the n blocks they encode to (types with an encoder)

Blocks are random bytes with finite scales; the first few carry extreme quants and subnormal or zero scales.
"""
import pathlib
import struct
import sys

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

# Byte offsets of the f16 scales inside a block.
SCALES = {T.F32: [], T.F16: [0], T.BF16: [], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82],
          T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0], T.MXFP4: []}
ENCODED = [T.F16, T.BF16, T.Q4_0, T.Q8_0]


def random_blocks(kind, rng):
    elements, size = GGML_QUANT_SIZES[kind]
    n = 4096 if elements == 1 else 48 if elements == 32 else 12
    blocks = rng.integers(0, 256, (n, size), dtype=np.uint8)
    if elements > 1:
        blocks[0], blocks[1] = 0, 255
    if kind == T.F32:
        blocks = rng.standard_normal(n).astype(np.float32).view(np.uint8).reshape(n, size)
    if kind == T.BF16:
        blocks[:, 1] &= 0xBF  # exponents below infinity
    if kind == T.MXFP4:
        blocks[:6, 0] = [0, 1, 2, 3, 254, 127]
    scales = np.concatenate([np.array([0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF], np.uint16).view(np.float16),
                             rng.standard_normal(n * 2 - 8).astype(np.float16) * np.float16(0.05)])
    for offset in SCALES[kind]:
        chosen = np.concatenate([scales[:8], rng.permutation(scales)])[:n]
        blocks[:, offset:offset + 2] = chosen.astype(np.float16).view(np.uint8).reshape(n, 2)
    return blocks


def random_weights(kind, rng):
    elements, _ = GGML_QUANT_SIZES[kind]
    if elements == 1:  # any finite bits, and values around every f16 boundary
        bits = rng.integers(0, 2**32, 4096, dtype=np.uint64).astype(np.uint32)
        bits[(bits & 0x7F800000) == 0x7F800000] = 0
        scaled = (rng.standard_normal(4096) * 2.0 ** rng.integers(-27, 17, 4096)).astype(np.float32)
        return np.concatenate([bits.view(np.float32), scaled])
    weights = (rng.standard_normal((48, elements)) * 2.0 ** rng.integers(-12, 4, (48, 1))).astype(np.float32)
    weights[0] = 0
    weights[1, ::2] = 0.5
    return weights


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20240501)
    for kind in SCALES:
        blocks = random_blocks(kind, rng)
        with np.errstate(over="ignore"):
            weights = dequantize(blocks.reshape(-1), kind).astype(np.float32)
        assert not np.isnan(weights).any(), kind
        (out / f"{kind.name}.decode.bin").write_bytes(struct.pack("<I", len(blocks)) + blocks.tobytes() + weights.tobytes())
    for kind in ENCODED:
        weights = random_weights(kind, rng)
        with np.errstate(all="ignore"):
            blocks = quantize(weights, kind)
        n = weights.size // GGML_QUANT_SIZES[kind][0]
        (out / f"{kind.name}.encode.bin").write_bytes(struct.pack("<I", n) + weights.tobytes() + blocks.tobytes())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
