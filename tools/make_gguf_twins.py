#!/usr/bin/env python3
"""make_gguf_twins.py TINY_DIR OUT_DIR [NAME ...] - GGUF twins of tiny Hugging Face checkpoints.

Writes what llama.cpp's converter would make of a directory of TINY_DIR, with the `gguf` package (0.19.0): the rows of Q and K
of llama reordered for interleaved rope, 1 added to Gemma's norms, rope_freqs.weight for llama3 scaling, tokenizer keys. Matrices
take turns as BF16, F16 (where that is exact) and F32, so a twin holds the very numbers of its directory. llama-mqa-sharded
becomes three parts. Needs `gguf`, `sentencepiece` and numpy.
"""
import json
import math
import pathlib
import struct
import sys

import gguf
import numpy as np

NAMES = ["gemma3", "llama-gqa-llama3rope", "llama-linear-rope-bias", "llama-mha-spm", "llama-mqa-sharded", "llama-yarn", "qwen2", "qwen3"]
ARCHITECTURES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma3_text": "gemma3"}
PARTS = {"llama-mqa-sharded": 3}

TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
MODULES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
           "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
           "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
NORMS = {"llama": {"post_attention_layernorm": "ffn_norm"}, "qwen2": {"post_attention_layernorm": "ffn_norm"}, "qwen3": {"post_attention_layernorm": "ffn_norm"},
         "gemma3": {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                    "post_feedforward_layernorm": "post_ffw_norm"}}


def read_safetensors(path):
    """Every tensor of a file as float32; the tiny checkpoints are BF16 throughout."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    out = {}
    for name, t in header.items():
        assert t["dtype"] == "BF16", (name, t["dtype"])
        begin, end = t["data_offsets"]
        bits = np.frombuffer(data[8 + size + begin:8 + size + end], np.uint16).astype(np.uint32) << 16
        out[name] = bits.view(np.float32).reshape(t["shape"])
    return out


def gguf_name(name, arch):
    stem, kind = name.rsplit(".", 1)
    if stem in TOP:
        return f"{TOP[stem]}.{kind}"
    _, _, layer, module = stem.split(".", 3)
    return f"blk.{layer}.{(MODULES | NORMS[arch])[module]}.{kind}"


def pairs_from_halves(w, heads):
    """Row s * D/2 + i of a head becomes row 2i + s."""
    return np.ascontiguousarray(w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape))


def llama3_factors(rope, theta, dim):
    factors = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * theta ** (i / dim)
        old = rope["original_max_position_embeddings"]
        low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
        if wavelength < old / high:
            factors.append(1.0)
        elif wavelength > old / low:
            factors.append(factor)
        else:
            smooth = (old / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, np.float32)


def rope_of(config):
    """(theta of full attention, scaling of full attention, theta of sliding layers or None)"""
    p = config.get("rope_parameters")
    if p and "full_attention" in p:
        return p["full_attention"]["rope_theta"], p["full_attention"], p["sliding_attention"]["rope_theta"]
    if p:
        return p["rope_theta"], p, None
    return config["rope_theta"], config.get("rope_scaling") or {}, None


def add_hparams(w, config, arch, head_dim):
    w.add_context_length(config["max_position_embeddings"])
    w.add_block_count(config["num_hidden_layers"])
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_head_count_kv(config["num_key_value_heads"])
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_vocab_size(config["vocab_size"])
    theta, scaling, local_theta = rope_of(config)
    w.add_rope_freq_base(theta)
    kind = scaling.get("rope_type", "default")
    if kind in ("linear", "yarn"):
        w.add_rope_scaling_type(gguf.RopeScalingType(kind))
        w.add_rope_scaling_factor(scaling["factor"])
    if kind == "yarn":
        w.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
        w.add_rope_scaling_yarn_beta_fast(scaling["beta_fast"])
        w.add_rope_scaling_yarn_beta_slow(scaling["beta_slow"])
    if arch == "llama":
        w.add_rope_dimension_count(head_dim)
    if arch in ("gemma3", "qwen3"):
        w.add_key_length(head_dim)
        w.add_value_length(head_dim)
    if arch == "gemma3":
        w.add_sliding_window(config["sliding_window"])
        w.add_sliding_window_pattern([t == "sliding_attention" for t in config["layer_types"]])
        w.add_rope_freq_base_swa(local_theta)


def add_tokenizer(w, directory, config):
    tokenizer = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    settings = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))
    vocab = tokenizer["model"]["vocab"]
    tokens = sorted(vocab, key=vocab.get)
    assert [vocab[t] for t in tokens] == list(range(config["vocab_size"]))
    special = {t["content"] for t in tokenizer["added_tokens"] if t["special"]}
    types = [gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL for t in tokens]
    model = directory / "tokenizer.model"
    if model.exists():
        import sentencepiece
        sp = sentencepiece.SentencePieceProcessor(model_file=str(model))
        assert [sp.id_to_piece(i) for i in range(len(tokens))] == tokens
        for i, t in enumerate(tokens):
            if sp.is_byte(i):
                types[i] = gguf.TokenType.BYTE
            elif sp.is_unknown(i):
                types[i] = gguf.TokenType.UNKNOWN
        w.add_tokenizer_model("llama")
        w.add_tokenizer_pre("default")
        w.add_token_list(tokens)
        w.add_token_scores([sp.get_score(i) for i in range(len(tokens))])
        w.add_token_types(types)
        w.add_unk_token_id(vocab[tokenizer["model"]["unk_token"]])
    else:
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre("gpt-2")
        w.add_token_list(tokens)
        w.add_token_types(types)
        w.add_token_merges([" ".join(m) for m in tokenizer["model"]["merges"]])
    w.add_bos_token_id(config["bos_token_id"])
    w.add_eos_token_id(config["eos_token_id"])
    w.add_pad_token_id(config["pad_token_id"])
    w.add_add_bos_token(settings["add_bos_token"])
    w.add_chat_template(settings["chat_template"])


def stored(weights, turn):
    """A matrix in one of three types, whichever is next; a vector as F32."""
    if weights.ndim == 1 or turn % 3 == 2:
        return weights, gguf.GGMLQuantizationType.F32
    half = weights.astype(np.float16)
    if turn % 3 == 1 and np.array_equal(half.astype(np.float32), weights):
        return half, gguf.GGMLQuantizationType.F16
    return gguf.quants.quantize(weights, gguf.GGMLQuantizationType.BF16), gguf.GGMLQuantizationType.BF16


def convert(directory, out):
    name = directory.name
    config = json.loads((directory / "config.json").read_text())
    arch = ARCHITECTURES[config["model_type"]]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    tensors = {}
    for file in sorted(directory.glob("model*.safetensors")):
        tensors |= read_safetensors(file)
    for old in out.glob(f"{name}*.gguf"):
        old.unlink()
    w = gguf.GGUFWriter(out / f"{name}.gguf", arch, split_max_tensors=-(-len(tensors) // PARTS[name]) if name in PARTS else 0)
    w.add_type("model")
    w.add_name(f"tiny {name}")
    add_hparams(w, config, arch, head_dim)
    add_tokenizer(w, directory, config)
    theta, scaling, _ = rope_of(config)
    if scaling.get("rope_type") == "llama3":
        w.add_tensor("rope_freqs.weight", llama3_factors(scaling, theta, head_dim))
    turn = 0
    for hf_name, weights in tensors.items():
        target = gguf_name(hf_name, arch)
        if arch == "llama" and ".attn_q." in target:
            weights = pairs_from_halves(weights, heads)
        if arch == "llama" and ".attn_k." in target:
            weights = pairs_from_halves(weights, kv_heads)
        if arch == "gemma3" and target.endswith("norm.weight"):
            weights = weights + np.float32(1)
        data, kind = stored(np.ascontiguousarray(weights), turn)
        turn += weights.ndim > 1
        w.add_tensor(target, data, raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main(tiny, out, names):
    out.mkdir(parents=True, exist_ok=True)
    for name in names or NAMES:
        convert(tiny / name, out)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:])
