#!/usr/bin/env python3
"""Decoded weights against a numpy dequantization, bit for bit: compare_quantized.py CHECKPOINT DECODED

The decoders are those of quantized_reference.py. DECODED is what quantized_weights_test.cc and
written_checkpoints_test.cc write: for each matrix a line "module rows columns", then its floats. Prints the number of equal
matrices; exits with 1 at a difference.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

import quantized_reference as reference

DTYPES = {"F32": "<f4", "F16": "<f2", "I32": "<i4", "I64": "<i8", "I8": "i1"}


def e4m3(codes):
    exponent, mantissa = (codes >> 3 & 15).astype(np.int32), (codes & 7).astype(np.float32)
    value = np.where(exponent == 0, np.ldexp(mantissa, -9), np.ldexp(8 + mantissa, exponent - 10))
    return np.where(codes & 128, -value, value).astype(np.float32)


def tensors(path):
    data = path.read_bytes()
    header_bytes = struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:8 + header_bytes]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        raw, dtype = data[begin:end], entry["dtype"]
        if dtype == "BF16":
            values = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        elif dtype == "F8_E4M3":
            values = e4m3(np.frombuffer(raw, np.uint8))
        else:
            values = np.frombuffer(raw, DTYPES[dtype])
            values = values.astype(np.float32) if dtype == "F16" else values
        yield name, values.reshape(entry["shape"])


def decoded(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        line_end = data.index(b"\n", at)
        module, rows, columns = data[at:line_end].decode().split()
        at = line_end + 1
        end = at + 4 * int(rows) * int(columns)
        yield module, np.frombuffer(data[at:end], np.float32).reshape(int(rows), int(columns))
        at = end


def ordered(stored, config):
    """compressed-tensors with a group for each column, which the reference's decoder does not follow."""
    bits = config["config_groups"]["group_0"]["weights"]["num_bits"]
    n, k = (int(size) for size in stored["weight_shape"])
    codes = reference.fields(stored["weight_packed"], bits, k, 1)
    middle = np.full(stored["weight_scale"].shape, 2 ** (bits - 1))
    zeros = reference.fields(stored["weight_zero_point"], bits, n, 0) if "weight_zero_point" in stored else middle
    group = stored["weight_g_idx"]
    return stored["weight_scale"][:, group] * (codes - zeros[:, group]).astype(np.float32)


def main(checkpoint, decoded_path):
    config = json.loads((checkpoint / "config.json").read_text())["quantization_config"]
    decode = {"gptq": reference.gptq, "awq": reference.awq, "compressed-tensors": reference.compressed,
              "fp8": reference.fp8}
    parts = {}
    for name, values in tensors(checkpoint / "model.safetensors"):
        module, kind = name.rsplit(".", 1)
        if "_proj" in module:
            parts.setdefault(module, {})[kind] = values
    got = dict(decoded(decoded_path))
    if set(got) != set(parts):
        sys.exit(f"{checkpoint}: other matrices: {sorted(set(got) ^ set(parts))}")
    for module, stored in parts.items():
        values = ordered(stored, config) if "weight_g_idx" in stored else decode[config["quant_method"]](stored, config)
        want = np.asarray(values, np.float32)
        # + 0: the sign of a zero is nobody's.
        if not np.array_equal((want + 0).view(np.uint32), (got[module] + 0).view(np.uint32)):
            sys.exit(f"{checkpoint}: {module} differs in {(want != got[module]).sum()} of {want.size} weights")
    print(len(parts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
