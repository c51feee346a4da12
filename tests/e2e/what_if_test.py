#!/usr/bin/env python3
"""quire inspect --what-if on a 7B model of which only the headers exist: sizes against arithmetic done here."""

import json
import os
import struct
import tempfile
from pathlib import Path

from quire_runner import TINY, equal, main, refuse, succeed

HIDDEN, FFN, LAYERS, HEADS, VOCAB = 4096, 11008, 32, 32, 32000
LAYER = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (HIDDEN, HIDDEN), "self_attn.v_proj": (HIDDEN, HIDDEN),
         "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (FFN, HIDDEN), "mlp.up_proj": (FFN, HIDDEN),
         "mlp.down_proj": (HIDDEN, FFN)}
LAYER_WEIGHTS = LAYERS * sum(rows * columns for rows, columns in LAYER.values())
TABLE = VOCAB * HIDDEN
NORMS = (2 * LAYERS + 1) * HIDDEN
GIB = 1 << 30


def write_headers(folder: Path) -> None:
    """A llama of 7 billion F16 weights: a true header, and a hole in the file where the weights would be."""
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": FFN,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "vocab_size": VOCAB,
              "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
              "tie_word_embeddings": False, "torch_dtype": "float16", "bos_token_id": 1, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": (VOCAB, HIDDEN), "lm_head.weight": (VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        shapes |= {f"{prefix}{name}.weight": shape for name, shape in LAYER.items()}
        shapes |= {f"{prefix}{name}.weight": (HIDDEN,) for name in ("input_layernorm", "post_attention_layernorm")}
    entries, end = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        entries[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    header = json.dumps(entries).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + end)


def close(actual, expected, what):
    assert abs(actual / expected - 1) < 1e-3, f"{what}: {actual} is not {expected}"


def test_a_model_of_7_billion_weights():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_headers(folder)
        outcome = succeed("inspect", "-m", folder, "--what-if", "--json")
        table = succeed("inspect", "-m", folder, "--what-if").out
        assert os.stat(folder / "model.safetensors").st_blocks * 512 < 1 << 20, "the file is not sparse"
    assert outcome.seconds < 10, outcome
    answer = json.loads(outcome.out)
    equal((answer["layer_weights"], answer["table_weights"], answer["context"]), (LAYER_WEIGHTS, 2 * TABLE, 4096))
    rows = {row["name"]: row for row in answer["weights"]}

    # Bits of a weight of the layers, scales of F16 included, and of the tables.
    for row, bits, tables in [("as stored", 16, 16), ("F16 or BF16", 16, 16), ("INT8, groups of 128", 8 + 16 / 128, 16),
                              ("INT4, groups of 128", 4 + 16 / 128, 16), ("INT4, groups of 64", 4 + 16 / 64, 16),
                              ("INT4, groups of 32", 4 + 16 / 32, 16), ("INT4, groups of 128, zero points", 4 + 20 / 128, 16),
                              ("GGUF Q8_0", 8.5, 8.5), ("GGUF Q6_K", 6.5625, 6.5625),
                              ("GGUF Q4_K", 4.5, (4.5 + 6.5625) / 2), ("GGUF Q4_0", 4.5, (4.5 + 6.5625) / 2)]:
        close(rows[row]["bits"], bits, row)
        close(rows[row]["layer_bytes"], LAYER_WEIGHTS * bits / 8, row)
        close(rows[row]["file_bytes"], (LAYER_WEIGHTS * bits + 2 * TABLE * tables) / 8 + 2 * NORMS, row)
    assert 13.4e9 < rows["F16 or BF16"]["file_bytes"] < 13.6e9
    assert 6.9e9 < rows["INT8, a scale a row"]["file_bytes"] < 7.1e9
    assert 3.7e9 < rows["INT4, a scale a row"]["file_bytes"] < 3.8e9
    # Packing pads at most, and leaves the embedding in the file.
    assert 0.99 < rows["F16 or BF16"]["packed_bytes"] / (13.48e9 - 2 * TABLE) < 1.05, rows["F16 or BF16"]
    assert rows["INT4, groups of 128"]["packed_bytes"] < 0.36 * rows["F16 or BF16"]["packed_bytes"], rows

    kv = {row["name"]: row for row in answer["kv"]}
    # Records of pages are padded by less than a thousandth.
    close(kv["bf16 KV"]["bytes_per_token"], 2 * 2 * LAYERS * HIDDEN, "bf16")
    close(kv["bf16 KV"]["bytes_per_sequence"], 2 * GIB, "bf16")
    # int8: a byte a value and an f32 scale for K and V of each token and head.
    close(kv["int8 KV"]["bytes_per_token"], 2 * LAYERS * (HIDDEN + 4 * HEADS), "int8")
    for row in rows.values():
        left = answer["available_bytes"] - row["packed_bytes"] - row["other_bytes"]
        equal(row["fits"], left >= 0)
        for kind, sequences in row["sequences"].items():
            equal(sequences, max(left, 0) // kv[kind]["bytes_per_sequence"], f"{row['name']}, {kind}")
    for part in ("INT4, groups of 128, zero points", "12.55 GiB", "sequences, int8 KV", "available"):
        assert part in table, f"{part!r} is not in\n{table}"


def test_context_and_small_models():
    answer = json.loads(succeed("inspect", "-m", TINY / "gemma3", "--what-if", "--json", "--context", 64).out)
    equal(answer["context"], 64)
    names = [row["name"] for row in answer["weights"]]
    equal(len(names), len(set(names)))
    assert all(row["fits"] for row in answer["weights"]), answer
    refuse("inspect", "-m", TINY / "gemma3", "--what-if", "--context", 1 << 29, says="--context")


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")])
