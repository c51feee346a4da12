#!/usr/bin/env python3
"""Writes a GGUF model of a given shape with random weights: for speed and memory of sizes that nobody wants to download.

    bench/random_gguf.py SOURCE OUT [--shape 8b] [--type q4_0|q8_0]

The tokenizer is that of SOURCE, a GGUF file; the text it generates is noise. Shapes: 1b, 8b (Llama 3's, with SOURCE's
vocabulary), 7b-layer (one layer of Llama 2's 7B: what quantizing a whole one takes). Needs numpy and the package gguf.
"""

import argparse
import sys

import gguf
import numpy

# layers, hidden, feed-forward, heads, heads for K and V, dimension of a head
SHAPES = {"1b": (16, 2048, 8192, 32, 8, 64), "8b": (32, 4096, 14336, 32, 8, 128),
          "7b-layer": (1, 4096, 11008, 32, 32, 128)}
TYPES = {"q4_0": (gguf.GGMLQuantizationType.Q4_0, 18), "q8_0": (gguf.GGMLQuantizationType.Q8_0, 34)}
BLOCK = 32
SCALE = 0.004  # of a block: keeps activations finite through any number of layers
CONTEXT = 8192


def blocks(random, rows: int, columns: int, block_bytes: int) -> numpy.ndarray:
    """Random quants, each block with the same f16 scale: [rows][bytes of a row]."""
    data = random.integers(0, 256, (rows * columns // BLOCK, block_bytes), dtype=numpy.uint8)
    data[:, :2] = numpy.frombuffer(numpy.float16(SCALE).tobytes(), dtype=numpy.uint8)
    return data.reshape(rows, -1)


def copy_tokenizer(writer: gguf.GGUFWriter, source: gguf.GGUFReader) -> int:
    for field in source.fields.values():
        if not field.name.startswith("tokenizer."):
            continue
        kind = field.types[0]
        sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub)
    return len(source.fields["tokenizer.ggml.tokens"].data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--shape", choices=SHAPES, default="8b")
    parser.add_argument("--type", choices=TYPES, default="q4_0")
    options = parser.parse_args()
    layers, hidden, feed_forward, heads, kv_heads, head_dim = SHAPES[options.shape]
    dtype, block_bytes = TYPES[options.type]
    random = numpy.random.default_rng(1)

    writer = gguf.GGUFWriter(options.out, "llama", use_temp_file=False)
    writer.add_name(f"random {options.shape}")
    writer.add_block_count(layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(feed_forward)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500000.0)
    writer.add_rope_dimension_count(head_dim)
    vocabulary = copy_tokenizer(writer, gguf.GGUFReader(options.source))
    writer.add_vocab_size(vocabulary)

    matrices = {"token_embd.weight": (vocabulary, hidden), "output.weight": (vocabulary, hidden)}
    norms = ["output_norm.weight"]
    for layer in range(layers):
        prefix = f"blk.{layer}."
        norms += [prefix + "attn_norm.weight", prefix + "ffn_norm.weight"]
        matrices |= {prefix + "attn_q.weight": (heads * head_dim, hidden), prefix + "attn_k.weight": (kv_heads * head_dim, hidden),
                     prefix + "attn_v.weight": (kv_heads * head_dim, hidden),
                     prefix + "attn_output.weight": (hidden, heads * head_dim),
                     prefix + "ffn_gate.weight": (feed_forward, hidden), prefix + "ffn_up.weight": (feed_forward, hidden),
                     prefix + "ffn_down.weight": (hidden, feed_forward)}
    for name in norms:
        writer.add_tensor_info(name, (hidden,), numpy.dtype(numpy.float32), hidden * 4)
    for name, (rows, columns) in matrices.items():
        size = rows * columns // BLOCK * block_bytes
        writer.add_tensor_info(name, (rows, columns // BLOCK * block_bytes), numpy.dtype(numpy.uint8), size, raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for _ in norms:
        writer.write_tensor_data(numpy.ones(hidden, dtype=numpy.float32))
    for name, (rows, columns) in matrices.items():
        print(f"\r{name:28}", end="", file=sys.stderr, flush=True)
        writer.write_tensor_data(blocks(random, rows, columns, block_bytes))
    print(file=sys.stderr)
    writer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
