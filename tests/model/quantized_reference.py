"""Quantized layouts dequantized with numpy from their definitions: GPTQ v1/v2, AWQ gemm, fp8 blocks, compressed-tensors.

Independent of quire and of the tools that write these files. The logits in tests/golden/quantized were computed with the weights
that these functions return. Each takes the tensors of one module by their last name, and the quantization settings of config.json.
"""

import numpy as np


def fields(words, bits, count, axis):
    """Unsigned fields of `bits` bits out of little-endian 32-bit words along `axis`, fields may straddle words."""
    w = np.moveaxis(words.astype(np.uint32), axis, -1)
    stream = ((w[..., None] >> np.arange(32, dtype=np.uint32)) & 1).reshape(*w.shape[:-1], -1)
    stream = stream[..., :count * bits].reshape(*w.shape[:-1], count, bits)
    return np.moveaxis((stream.astype(np.int64) << np.arange(bits)).sum(-1), -1, axis)


def gptq(t, c):
    bits, n = c["bits"], t["scales"].shape[1]
    k = t["qweight"].shape[0] * 32 // bits
    q = fields(t["qweight"], bits, k, 0)
    z = fields(t["qzeros"], bits, n, 1)
    if c.get("checkpoint_format", c.get("format", "gptq")) == "gptq":
        z = (z + 1) & (2 ** bits - 1)
    g = t["g_idx"] if "g_idx" in t else np.arange(k) // c["group_size"]
    return (t["scales"].astype(np.float32)[g] * (q - z[g]).astype(np.float32)).T


AWQ_NIBBLE = [j // 2 + 4 * (j % 2) for j in range(8)]


def awq(t, c):
    def columns(words):
        return np.stack([(words.astype(np.uint32) >> np.uint32(4 * p)) & 15 for p in AWQ_NIBBLE], -1).reshape(len(words), -1).astype(np.int64)
    q, z, s = columns(t["qweight"]), columns(t["qzeros"]), t["scales"].astype(np.float32)
    g = np.arange(len(q)) // (len(q) // len(s))
    return (s[g] * (q - z[g]).astype(np.float32)).T


def compressed(t, c):
    w = c["config_groups"]["group_0"]["weights"]
    bits, s = w["num_bits"], t["weight_scale"].astype(np.float32)
    if "weight_packed" in t:
        n, k = (int(x) for x in t["weight_shape"])
        q = (fields(t["weight_packed"], bits, k, 1) - 2 ** (bits - 1)).astype(np.float32)
    else:
        q = t["weight"].astype(np.float32)
        n, k = q.shape
    if w["strategy"] == "block":
        r, b = w["block_structure"]
        return q * np.kron(s, np.ones((r, b), np.float32))[:n, :k]
    s = np.repeat(s, k // s.shape[1], 1)
    if "weight_zero_point" in t:
        z = (fields(t["weight_zero_point"], bits, n, 0) - 2 ** (bits - 1)).astype(np.float32)
        q = q - np.repeat(z, k // z.shape[1], 1)
    return s * q


def fp8(t, c):
    r, b = c["weight_block_size"]
    w = t["weight"]
    return w * np.kron(t["weight_scale_inv"], np.ones((r, b), np.float32))[:w.shape[0], :w.shape[1]]
