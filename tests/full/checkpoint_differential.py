#!/usr/bin/env python3
"""Compares how quire and transformers read checkpoints whose small files were edited at random.

Each case copies a tiny checkpoint and edits its config.json, generation_config.json and tokenizer files: keys removed,
doubled in an older and a newer spelling, contradicting each other; tokens added here and there; the tokenizer left as
tokenizer.model or as vocab.json with merges.txt only. Then what either program makes of it is compared: rope, windows,
sampling defaults, token ids, rendered chats.

A case is "equal", "noted" (it differs, and a remark of quire's names what it sets aside), "refused" (by quire), "neither"
(transformers cannot load or run it) or "silent" (it differs without a word), which fails.

usage: checkpoint_differential.py [--quire PROGRAM] [--cases N] [--seed N] [--only N] [--noted] [--keep FOLDER]

Exit status 1 when a case is silent, or when quire refuses more than a tenth of what transformers reads; 77 when
`transformers` (tests/full/requirements.txt) is not installed. Closes with 'N passed, N failed'.
"""

import argparse
import collections
import json
import logging
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="critical", TRANSFORMERS_NO_ADVISORY_WARNINGS="1")
warnings.filterwarnings("ignore")
try:
    import transformers
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig
except ImportError:
    print("skipped: the Python package 'transformers' is not installed")
    sys.exit(77)
logging.disable(logging.CRITICAL)

ROOT = Path(__file__).resolve().parent.parent.parent
TINY = ROOT / "tests/golden/tiny"
BASES = ["llama-gqa-llama3rope", "llama-mha-spm", "llama-yarn", "llama-mqa-sharded", "mistral-window32", "qwen2", "qwen3", "gemma3"]
MOST_REFUSED = 0.1
TOKENS = ["<zip>", "<|user|>", "<bos>", "<s>", "<pad>", "<unk>", "the", "<a b>", "<|im_end|>"]
TEXTS = ["the hat sat", " a<zip>b", "x <bos>  y<s> z", "<|user|>  a\n<|im_end|>", "é日本 12 34", "a <a b> <pad>b <unk>", ""]
MESSAGES = [{"role": "user", "content": "the hat"}, {"role": "assistant", "content": "sat"},
            {"role": "user", "content": "and <zip>"}]
TEMPLATES = ["{{ bos_token }}|{{ eos_token }}|{{ image_token }}|{{ boi_token }}|{{ pad_token }}",
             "{% for m in messages %}<|user|>{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}<|im_end|>"]


# --- edits ----------------------------------------------------------------------------------------------------

class Case:
    """A copy of a checkpoint, its JSON files open for edits."""

    def __init__(self, folder, base, rng):
        self.folder, self.base, self.rng, self.did = folder, base, rng, []
        for file in (TINY / base).iterdir():
            if file.suffix in (".safetensors",) or "expected" in file.name:
                if "expected" not in file.name:
                    os.symlink(file, folder / file.name)
            else:
                shutil.copy(file, folder / file.name)
        self.files = {}

    def json(self, name):
        if name not in self.files:
            path = self.folder / name
            self.files[name] = json.loads(path.read_text()) if path.exists() else {}
        return self.files[name]

    def write(self):
        for name, value in self.files.items():
            (self.folder / name).write_text(json.dumps(value))

    def remove(self, name):
        self.files.pop(name, None)
        (self.folder / name).unlink(missing_ok=True)


def edit_rope(case):
    config, rng = case.json("config.json"), case.rng
    nested = "gemma3" in case.base
    scalings = [{"rope_type": "linear", "factor": rng.choice([1.0, 2.0, 8])},
                {"type": "linear", "factor": 4.0},
                {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
                {"rope_type": "yarn", "factor": 2.0, "beta_fast": 16, "beta_slow": 2, "mscale": 0.7},
                {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 0.5, "truncate": False},
                {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                 "original_max_position_embeddings": 32},
                {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
                {"rope_type": "llama3", "factor": 8.0}, {"rope_type": "default"}, {}, {"factor": 2.0},
                {"rope_type": "linear", "type": "yarn", "factor": 2.0}]
    choice = rng.randrange(9)
    if choice == 0:
        config["rope_scaling"] = rng.choice(scalings)
    elif choice == 1:
        config["rope_theta"] = rng.choice([10000.0, 500000, 1e6])
    elif choice == 2:
        theta = config.pop("rope_theta", 10000.0)
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": rng.choice([theta, 77777.0])}
    elif choice == 3:
        config["rope_parameters"] = dict(rng.choice(scalings))
        if rng.random() < 0.5:
            config["rope_parameters"]["rope_theta"] = 20000.0
    elif choice == 4:
        config["partial_rotary_factor"] = rng.choice([1.0, 0.5, 0.25])
    elif choice == 5:
        config["original_max_position_embeddings"] = rng.choice([16, 64, 128])
    elif choice == 6:
        config["rope_parameters"] = {"full_attention": dict(rng.choice(scalings)), "sliding_attention": {"rope_theta": 5000.0}}
        if nested and rng.random() < 0.5:
            config["rope_parameters"].pop("sliding_attention")
    elif choice == 7:
        for key in ("rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq"):
            if rng.random() < 0.5:
                config.pop(key, None)
    else:
        config["rope_scaling"] = rng.choice(scalings)
        config["rope_parameters"] = dict(rng.choice(scalings), rope_theta=rng.choice([10000.0, 30000.0]))
    return f"rope {choice}"


def edit_window(case):
    config, rng = case.json("config.json"), case.rng
    key, value = rng.choice([("sliding_window", None), ("sliding_window", 16), ("use_sliding_window", True),
                             ("use_sliding_window", False), ("max_window_layers", 1), ("sliding_window_pattern", 2),
                             ("_sliding_window_pattern", 3), ("layer_types", "sliding"), ("layer_types", "full"),
                             ("layer_types", "mixed"), ("layer_types", None)])
    if key == "layer_types" and value is not None:
        n = config["num_hidden_layers"]
        value = {"sliding": ["sliding_attention"] * n, "full": ["full_attention"] * n,
                 "mixed": ["sliding_attention", "full_attention"] * n}[value][:n]
    config[key] = value
    return f"{key} = {str(value)[:30]}"


def edit_config_key(case):
    config, rng = case.json("config.json"), case.rng
    key, value = rng.choice([("tie_word_embeddings", not config.get("tie_word_embeddings", False)),
                             ("rms_norm_eps", 1e-5), ("hidden_act", "gelu"), ("hidden_activation", "silu"),
                             ("attn_logit_softcapping", 50.0), ("final_logit_softcapping", 30.0),
                             ("query_pre_attn_scalar", 64), ("attention_bias", False), ("mlp_bias", False),
                             ("num_key_value_heads", None), ("head_dim", None), ("model_max_length", 99),
                             ("max_position_embeddings", 96), ("logit_scale", 2.0), ("torch_dtype", "float32"),
                             ("repetition_penalty", 1.3), ("architectures", ["MistralForCausalLM"]), ("eos_token_id", [2, 3])])
    if rng.random() < 0.3:
        config.pop(key, None)
        return f"no {key}"
    config[key] = value
    return f"{key} = {value}"


def edit_generation(case):
    config, rng = case.json("generation_config.json"), case.rng
    for _ in range(rng.randrange(1, 4)):
        key, value = rng.choice([("do_sample", True), ("do_sample", False), ("temperature", 0.6), ("temperature", 0.0),
                                 ("top_k", 20), ("top_k", 0), ("top_k", -1), ("top_p", 0.9), ("min_p", 0.05),
                                 ("repetition_penalty", 1.1), ("no_repeat_ngram_size", 3), ("typical_p", 0.5),
                                 ("max_new_tokens", 7), ("num_beams", 4), ("eos_token_id", [2, 1])])
        config[key] = value
    if rng.random() < 0.2:
        config.pop("do_sample", None)
    return "generation"


def token(rng, text):
    return {"content": text, "single_word": rng.random() < 0.2, "lstrip": rng.random() < 0.2, "rstrip": rng.random() < 0.3,
            "normalized": rng.random() < 0.3, "special": rng.random() < 0.7}


def edit_decoder(case):
    config, rng = case.json("tokenizer_config.json"), case.rng
    own = case.json("tokenizer.json").get("added_tokens", []) if (case.folder / "tokenizer.json").exists() else []
    decoder = {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in own if rng.random() < 0.8}
    next_id = 1 + max([t["id"] for t in own] + [len(case.json("tokenizer.json").get("model", {}).get("vocab", {})) - 1])
    for text in rng.sample(TOKENS, rng.randrange(3)):
        decoder[str(rng.choice([next_id, next_id, 3, 400]))] = token(rng, text)
        next_id += 1
    config["added_tokens_decoder"] = decoder
    return "added_tokens_decoder"


def edit_added_file(case):
    rng = case.rng
    vocabulary = len(case.json("tokenizer.json").get("model", {}).get("vocab", {})) or 300
    (case.folder / "added_tokens.json").write_text(
        json.dumps({text: vocabulary + i for i, text in enumerate(rng.sample(TOKENS, rng.randrange(1, 3)))}))
    return "added_tokens.json"


def edit_names(case):
    rng = case.rng
    file = rng.choice(["tokenizer_config.json", "tokenizer_config.json", "special_tokens_map.json"])
    config = case.json(file)
    key = rng.choice(["bos_token", "eos_token", "unk_token", "pad_token", "mask_token", "image_token", "boi_token"])
    choice = rng.randrange(5)
    if choice == 0:
        config.pop(key, None)
    elif choice == 1:
        config[key] = None
    elif choice == 2:
        config[key] = dict(token(rng, rng.choice(TOKENS)), __type="AddedToken")
    else:
        config[key] = rng.choice(TOKENS)
    return f"{file} {key} {choice}"


def edit_extra(case):
    rng = case.rng
    file = rng.choice(["tokenizer_config.json", "tokenizer_config.json", "special_tokens_map.json"])
    config = case.json(file)
    choice = rng.randrange(4)
    if choice == 0:
        config["extra_special_tokens"] = {"boi_token": "<boi>", "image_token": rng.choice(TOKENS)}
    elif choice == 1:
        config["extra_special_tokens"] = rng.sample(TOKENS, 2)
    elif choice == 2:
        config["additional_special_tokens"] = rng.sample(TOKENS, 2)
    else:
        config["additional_special_tokens"] = [dict(token(rng, rng.choice(TOKENS)), __type="AddedToken")]
    return f"{file} extra {choice}"


def edit_flags(case):
    config, rng = case.json("tokenizer_config.json"), case.rng
    key = rng.choice(["add_bos_token", "add_eos_token", "legacy", "add_prefix_space"])
    if rng.random() < 0.3:
        config.pop(key, None)
    else:
        config[key] = rng.random() < 0.5
    return key


def edit_class(case):
    config, rng = case.json("tokenizer_config.json"), case.rng
    name = rng.choice(["LlamaTokenizer", "LlamaTokenizerFast", "PreTrainedTokenizerFast", "GPT2Tokenizer", "Qwen2Tokenizer",
                       "Qwen2TokenizerFast", "GemmaTokenizer", "TokenizersBackend", "NoSuchTokenizer", None])
    config.pop("tokenizer_class", None)
    if name is not None:
        config["tokenizer_class"] = name
    return f"class {name}"


def edit_own_tokens(case):
    tokens, rng = case.json("tokenizer.json").get("added_tokens"), case.rng
    if not tokens:
        return "no own tokens"
    choice = rng.randrange(4)
    each = rng.choice(tokens)
    if choice == 0:
        tokens.remove(each)
    elif choice == 1:
        each[rng.choice(["lstrip", "rstrip", "single_word", "special"])] = True
    elif choice == 2:
        vocabulary = len(case.json("tokenizer.json")["model"]["vocab"])
        tokens.append(dict(token(rng, rng.choice(TOKENS)), id=rng.choice([vocabulary, vocabulary + 5])))
    else:
        each["normalized"] = not each["normalized"]
    return f"own tokens {choice}"


def edit_post_processor(case):
    case.json("tokenizer.json")["post_processor"] = None
    return "no post_processor"


def user_defined_piece(text):
    """One more piece of a SentencePiece model, as its protocol buffer is written."""
    words = text.encode()
    fields = b"\x0a" + bytes([len(words)]) + words + b"\x15" + struct.pack("<f", 0.0) + b"\x18\x04"
    return b"\x0a" + bytes([len(fields)]) + fields


def edit_form(case):
    """Leaves the tokenizer in an older form."""
    rng = case.rng
    config = case.json("tokenizer_config.json")
    if (case.folder / "tokenizer.model").exists():
        case.remove("tokenizer.json")
        config["tokenizer_class"] = rng.choice(["LlamaTokenizer", "LlamaTokenizerFast", "PreTrainedTokenizerFast"])
        if rng.random() < 0.5:
            with open(case.folder / "tokenizer.model", "ab") as model:
                model.write(user_defined_piece("<a b>") + user_defined_piece("hat s"))
        return "tokenizer.model"
    model = case.json("tokenizer.json")["model"]
    (case.folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    lines = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    (case.folder / "merges.txt").write_text("\n".join(["#version: 0.2", *lines]) + "\n")
    case.remove("tokenizer.json")
    config["tokenizer_class"] = rng.choice(["GPT2Tokenizer", "Qwen2Tokenizer"])
    return "vocab.json"


def edit_template(case):
    config, rng = case.json("tokenizer_config.json"), case.rng
    config["chat_template"] = rng.choice(TEMPLATES)
    if rng.random() < 0.3:
        (case.folder / "chat_template.jinja").write_text(rng.choice(TEMPLATES))
    return "template"


EDITS = [edit_rope] * 3 + [edit_window, edit_config_key, edit_generation, edit_decoder, edit_decoder, edit_added_file,
                           edit_names, edit_names, edit_extra, edit_flags, edit_class, edit_own_tokens, edit_post_processor,
                           edit_template]


# --- what either program says ----------------------------------------------------------------------------------

class NotLoaded(Exception):
    pass


def rope_of(parameters, head_dim):
    """One rope as quire's `inspect` names its parts."""
    kind = parameters.get("rope_type", "default")
    if kind != "default" and int(head_dim * parameters.get("partial_rotary_factor", 1.0)) != head_dim:
        raise NotLoaded("rotates part of a head, for which the model has no code")
    if kind in ("dynamic", "longrope"):
        raise NotLoaded("dynamic")
    said = {"theta": float(parameters["rope_theta"]), "scaling": "none"}
    if kind == "default" or (kind == "linear" and parameters["factor"] == 1.0):
        return said
    said |= {"scaling": kind, "factor": parameters["factor"]}
    if said["factor"] is None:
        raise NotLoaded("no factor")
    if kind == "llama3":
        for key in ("low_freq_factor", "high_freq_factor"):
            said[key] = float(parameters[key])
    if kind == "yarn":
        said |= {"beta_fast": float(parameters.get("beta_fast") or 32), "beta_slow": float(parameters.get("beta_slow") or 1),
                 "truncate": parameters.get("truncate", True)}
        scale = {key: parameters.get(key) for key in ("attention_factor", "mscale", "mscale_all_dim")}
        said |= {key: float(value) for key, value in scale.items() if value is not None}
    if kind in ("yarn", "llama3"):
        said["original_context"] = parameters["original_max_position_embeddings"]
    said["factor"] = float(said["factor"])
    return said


def transformers_config(folder):
    config = AutoConfig.from_pretrained(folder)
    config.standardize_rope_params()  # as each rope does when it computes its frequencies
    said = {"context_length": config.max_position_embeddings, "kv_heads": config.num_key_value_heads}
    kind, parameters = config.model_type, config.rope_parameters
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    types = getattr(config, "layer_types", None) or []
    if kind == "gemma3_text":
        said["rope"] = rope_of(parameters["full_attention"], head_dim)
        said["rope_local"] = rope_of(parameters["sliding_attention"], head_dim)
        window, sliding = config.sliding_window, types.count("sliding_attention")
        said["attention_softcap"] = float(config.attn_logit_softcapping or 0)
        said["final_softcap"] = float(config.final_logit_softcapping or 0)
        activation = config.hidden_activation
    else:
        if "rope_type" not in parameters:
            raise NotLoaded("nested rope")
        said["rope"] = rope_of(parameters, head_dim)
        window, sliding = (config.sliding_window, types.count("sliding_attention")) if kind in ("qwen2", "ministral") else (
            getattr(config, "sliding_window", None), config.num_hidden_layers) if kind == "mistral" else (None, 0)
        if kind == "mistral" and window is None:
            sliding = 0
        activation = config.hidden_act
    if activation not in ("silu", "gelu_pytorch_tanh"):
        raise NotLoaded("activation")  # that it runs such models is a matter of families
    if sliding and not window:
        raise NotLoaded("a window of no size")
    said |= {"sliding_window": window if sliding else 0, "window_layers": sliding, "rms_norm_eps": config.rms_norm_eps}
    return said


def transformers_sampling(folder):
    if not (folder / "generation_config.json").exists():
        return {}
    config = GenerationConfig.from_pretrained(folder)
    said = {}
    if config.repetition_penalty is not None:
        said["repetition_penalty"] = config.repetition_penalty
    if config.do_sample is not None:
        for key in ("temperature", "top_k", "top_p", "min_p"):
            value = getattr(config, key)
            if value is not None:
                said[key] = max(value, 0) if key == "top_k" else value
        if not config.do_sample:
            said["temperature"] = 0.0
    return said


def transformers_tokens(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = [tokenizer(text)["input_ids"] for text in TEXTS]
    try:
        chat = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # a template of nothing
        chat = f"error {type(error).__name__}"
    return {"ids": ids, "chat": chat}


def run(program, *arguments, stdin=""):
    result = subprocess.run([program, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout, result.stderr


def quire_says(program, folder):
    code, out, err = run(program, "inspect", "--model", folder, "--json")
    if code != 0:
        return None, err.strip()
    said = json.loads(out)
    lines = "".join(json.dumps({"text": text, "parse_special": True, "add_special": True}) + "\n" for text in TEXTS)
    code, out, err = run(program, "tokenize", "--model", folder, "--jsonl", stdin=lines)
    if code != 0:
        return None, err.strip().splitlines()[-1]
    said["ids"] = [json.loads(line)["ids"] for line in out.splitlines()]
    said["chat"] = "error"
    if said["chat_template"] is not None:
        request = json.dumps({"messages": MESSAGES, "kwargs": {"add_generation_prompt": True}})
        code, out, err = run(program, "template", "--model", folder, "--jsonl", stdin=request + "\n")
        said["chat"] = json.loads(out).get("text", "error") if code == 0 else "error"
    return said, ""


def near(a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)
    if isinstance(a, float) or isinstance(b, float):
        return a is not None and b is not None and abs(a - b) <= 1e-6 * max(abs(a), abs(b))
    return a == b


def differences(wanted, said):
    found = []
    for key, value in wanted.items():
        mine = said.get(key)
        if key in ("rope", "rope_local"):
            mine = {k: v for k, v in mine.items() if k in value or k != "original_context"}
            if value["scaling"] == "none":
                mine = {k: mine[k] for k in ("theta", "scaling")}
        if key == "chat" and str(value).startswith("error"):
            continue
        if not near(value, mine):
            found.append(f"{key}: transformers {value}, quire {mine}")
    return found


def judge(program, folder, cases_remarks):
    """(verdict, text)"""
    try:
        wanted = transformers_config(folder) | {"sampling": transformers_sampling(folder)} | transformers_tokens(folder)
    except Exception as error:
        wanted = f"{type(error).__name__}: {str(error)[:80]}"
    said, message = quire_says(program, folder)
    if isinstance(wanted, str):
        return "neither", wanted
    if said is None:
        return "refused", message
    found = differences(wanted, said)
    if not found:
        return "equal", ""
    return ("noted" if set(said["remarks"]) - cases_remarks else "silent"), "; ".join(found) + f" | remarks {said['remarks']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quire", default=os.environ.get("QUIRE_BIN", str(ROOT / "build/release/bin/quire")))
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", type=int, help="run this case alone and print what differs")
    parser.add_argument("--noted", action="store_true", help="print the cases that differ with a remark too")
    parser.add_argument("--keep", type=Path, help="where the folders of cases that fail are kept")
    options = parser.parse_args()
    print(f"transformers {transformers.__version__}, seed {options.seed}")

    own_remarks = {}
    for base in BASES:
        code, out, err = run(options.quire, "inspect", "--model", TINY / base, "--json")
        assert code == 0, err
        own_remarks[base] = set(json.loads(out)["remarks"])
    counts, reasons = collections.Counter(), collections.Counter()
    for number in range(options.cases):
        if options.only is not None and number != options.only:
            continue
        rng = random.Random(f"{options.seed}/{number}")
        with tempfile.TemporaryDirectory(prefix="quire-edits-") as path:
            folder = Path(path)
            case = Case(folder, BASES[number % len(BASES)], rng)
            did = [rng.choice(EDITS)(case) for _ in range(rng.randrange(1, 4))]
            if rng.random() < 0.15 and (folder / "tokenizer.json").exists():
                did.append(edit_form(case))
            case.write()
            verdict, text = judge(options.quire, folder, own_remarks[case.base])
            counts[verdict] += 1
            text = text.replace(str(folder), "")
            if verdict == "refused":
                reasons[text.split(": ", 1)[-1][:90]] += 1
            if verdict == "silent" or options.only is not None or (verdict == "noted" and options.noted):
                print(f"case {number} ({case.base}: {', '.join(did)}): {verdict}: {text}")
                if options.keep:
                    shutil.copytree(folder, options.keep / str(number), symlinks=True, dirs_exist_ok=True)
    print("  ".join(f"{verdict} {counts[verdict]}" for verdict in ("equal", "noted", "refused", "neither", "silent")))
    for reason, count in reasons.most_common(12):
        print(f"  refused {count:4}  {reason}")
    read = counts["equal"] + counts["noted"] + counts["silent"] + counts["refused"]
    share = counts["refused"] / max(read, 1)
    failed = counts["silent"] + (share > MOST_REFUSED)
    print(f"refused of those that transformers reads: {share:.1%} (at most {MOST_REFUSED:.0%})")
    print(f"{sum(counts.values()) - counts['silent']} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
