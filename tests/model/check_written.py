#!/usr/bin/env python3
"""Tensors of a file that quire wrote, read by the format's own package, against what was given: check_written.py FILE GIVEN

FILE is a .gguf or .safetensors file, read with `gguf` or `safetensors`. GIVEN is what written_checkpoints_test.cc writes: for each
tensor a line "name rows columns", then its floats in the model's order. Rows of Q and K of a llama GGUF are put back into that
order as llama.cpp's converter puts them into the file's. Prints the number of equal tensors; exits with 1 at a difference.
"""

import sys
from pathlib import Path

import gguf
import numpy as np
from gguf.quants import dequantize
from safetensors import safe_open

from compare_quantized import decoded


def halves_from_pairs(values, heads):
    """Row 2i + s of a head becomes row s * D/2 + i."""
    return values.reshape(heads, -1, 2, values.shape[-1]).swapaxes(1, 2).reshape(values.shape)


def gguf_tensors(path):
    reader = gguf.GGUFReader(path)
    llama = reader.fields["general.architecture"].contents() == "llama"
    heads = {"attn_q": "llama.attention.head_count", "attn_k": "llama.attention.head_count_kv"}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).reshape(tensor.shape[::-1])
        for part, key in heads.items():
            if llama and f".{part}." in tensor.name:
                count = reader.fields[key].contents()
                values = halves_from_pairs(values.reshape(len(values), -1), count).reshape(values.shape)
        yield tensor.name, values


def safetensors_tensors(path):
    with safe_open(path, "np") as file:
        assert file.metadata() == {"format": "pt"}, file.metadata()
        for name in file.keys():
            yield name, file.get_tensor(name)


def main(path, given_path):
    read = dict((gguf_tensors if path.suffix == ".gguf" else safetensors_tensors)(path))
    given = dict(decoded(given_path))
    if set(read) != set(given):
        sys.exit(f"{path}: other tensors: {sorted(set(read) ^ set(given))}")
    for name, want in given.items():
        got = np.ascontiguousarray(read[name], np.float32).reshape(want.shape)
        if not np.array_equal((got + 0).view(np.uint32), (want + 0).view(np.uint32)):
            sys.exit(f"{path}: {name} differs in {(got != want).sum()} of {want.size} values")
    print(len(given))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
