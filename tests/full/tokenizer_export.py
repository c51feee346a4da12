#!/usr/bin/env python3
"""Reads tokenizers that quire converted with the official packages, and compares ids and text.

GGUF to Hugging Face: `tokenizers` loads the tokenizer.json made of a GGUF file. It must give the ids of the goldens
(tests/golden/tokenizers) and of the vectors beside shared vocabularies, which other programs agreed on, and on random strings
those that quire reads from the GGUF file itself; decoded texts must be equal too. Hugging Face to GGUF: of the
tokenizers of tokenizer_differential.py, those that GGUF has a form for must keep tokens and merges and get the right name of
a pre-tokenizer; the others must be refused.

usage: tokenizer_export.py [--exporter PROGRAM] [--strings N] [--seed N]

The program is quire_tokenizer_export, by default the one beside $QUIRE_BIN. Models are read from $QUIRE_MODELS and
shared vocabularies from ../shared/golden/peer-vocabs, as far as they are there. Exit status 1 after the first differences
of a case are printed, 77 when `tokenizers` (tests/full/requirements.txt) is not installed. Closes with 'N passed, N failed'.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/full"))

from tokenizer_differential import CASES, CHECKPOINT, random_string, reference  # exits with 77 without `tokenizers`
from tokenizers import Tokenizer

SHOWN = 3
GOLDENS = {"smollm2-135m-instruct-q4_1": "smollm2", "qwen2.5-coder-0.5b-instruct-q4_k_m": "qwen2.5-coder",
           "qwen2.5-coder-1.5b-instruct-q4_k_m": "qwen2.5-coder", "gemma3-270m-q4_k_m": "gemma3"}
# Cases of tokenizer_differential.py that GGUF has a form for, with its name; the others must be refused (deepseek-v3 is spelled
# with a needless backslash there, deepseek-llm shortened).
CONVERTIBLE = {"gpt2": "gpt-2", "llama-bpe": "llama-bpe", "qwen2": "qwen2", "smollm": "smollm", "tekken": "tekken",
               "deepseek-coder": "deepseek-coder", "falcon-patterns": "falcon"}


def convert(exporter, model, target):
    """None, or why quire refuses."""
    done = subprocess.run([exporter, str(model), str(target)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{exporter} {model}: status {done.returncode}: {done.stderr}")
    return None if done.returncode == 0 else done.stderr.strip()


def quire_answers(exporter, model, lines, folder):
    requests, answers = folder / "requests.jsonl", folder / "answers.jsonl"
    requests.write_text("".join(json.dumps(line) + "\n" for line in lines))
    subprocess.run([exporter, str(model), str(requests), str(answers)], check=True)
    return [(a["ids"], a["decoded"]) for a in map(json.loads, answers.open())]


def random_lines(rng, count, special):
    lines = []
    for _ in range(count):
        text = random_string(rng)
        while special and rng.random() < 0.4:
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(special) + text[at:]
        lines.append({"text": text, "add_special": rng.random() < 0.5, "parse_special": rng.random() < 0.5})
    return lines


def compare(lines, expected, got):
    """The first differences, as text."""
    if len(expected) != len(got):
        return [f"{len(expected)} answers expected, {len(got)} given"]
    return [f"    {json.dumps(line)}\n      expected {e}\n      got      {g}"
            for line, e, g in zip(lines, expected, got) if tuple(e) != tuple(g)]


def gguf_case(arguments, path, rng):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        refusal = convert(arguments.exporter, path, folder)
        if refusal:
            return [refusal]
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        document = json.loads((folder / "tokenizer.json").read_text())
        special = [t["content"] for t in document["added_tokens"]][:200]
        for token in document["added_tokens"]:
            if tokenizer.token_to_id(token["content"]) != token["id"]:
                return [f"added token {token} has id {tokenizer.token_to_id(token['content'])}"]
        problems = []
        golden = ROOT / "tests/golden/tokenizers" / f"{GOLDENS.get(path.stem)}.jsonl"
        if golden.exists():
            cases = [json.loads(line) for line in golden.open()]
            problems += compare(cases, [(c["ids"], c["decoded"]) for c in cases], reference(tokenizer, cases))
        if path.name.startswith("ggml-vocab"):
            problems += vectors_case(path, tokenizer)
        lines = random_lines(rng, arguments.strings, special)
        return problems + compare(lines, quire_answers(arguments.exporter, path, lines, folder), reference(tokenizer, lines))


def vectors_case(path, tokenizer):
    """Inputs and ids that llama.cpp's tests keep beside a vocabulary."""
    texts = Path(f"{path}.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    ids = [[int(i) for i in line.split()] for line in Path(f"{path}.out").read_text().split("\n")[:len(texts)]]
    tokenizer.encode_special_tokens = True
    return compare(texts, [(i,) for i in ids], [(tokenizer.encode(t, add_special_tokens=False).ids,) for t in texts])


def directory_case(arguments, name, rng):
    """A tokenizer.json to GGUF keys; the way back is tests/tokenizer/export_test.cc's."""
    tokenizer = CASES[name](rng)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "checkpoint"
        shutil.copytree(CHECKPOINT, directory)
        config = json.loads((CHECKPOINT / "config.json").read_text())
        config["vocab_size"] = tokenizer.get_vocab_size()
        (directory / "config.json").write_text(json.dumps(config))
        (directory / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>"} if tokenizer.token_to_id("<s>") else {}))
        tokenizer.save(str(directory / "tokenizer.json"))
        refusal = convert(arguments.exporter, directory, Path(folder) / "keys.json")
        if (refusal is None) != (name in CONVERTIBLE):
            return [refusal or "converted, though GGUF has no form for it"]
        if refusal:
            print(f"  refused: {refusal.split(': ', 1)[-1][:200]}")
            return []
        keys = json.loads((Path(folder) / "keys.json").read_text())
        merges = json.loads((directory / "tokenizer.json").read_text())["model"]["merges"]
        problems = []
        if keys["tokenizer.ggml.tokens"] != [tokenizer.id_to_token(i) for i in range(config["vocab_size"])]:
            problems.append("other tokens")
        if keys.get("tokenizer.ggml.merges") != [" ".join(m) for m in merges]:
            problems.append("other merges")
        if keys.get("tokenizer.ggml.pre") != CONVERTIBLE[name]:
            problems.append(f"tokenizer.ggml.pre is {keys.get('tokenizer.ggml.pre')}")
        return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(os.environ.get("QUIRE_BIN", str(ROOT / "build/release/bin/quire"))).resolve()
    parser.add_argument("--exporter", default=str(beside.parent / "quire_tokenizer_export"))
    parser.add_argument("--strings", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    models = sorted(Path(os.environ["QUIRE_MODELS"]).glob("*.gguf")) if "QUIRE_MODELS" in os.environ else []
    shared = sorted((ROOT.parent / "shared/golden/peer-vocabs").glob("*.gguf"))
    if not models or not shared:
        print("left out: " + " and ".join((["models (QUIRE_MODELS)"] if not models else []) + (["shared vocabularies"] if not shared else [])))
    cases = [(p.name, gguf_case, p) for p in [*models, *shared, ROOT / "tests/golden/tiny-gguf/llama-mha-spm.gguf"]]
    cases += [(name, directory_case, name) for name in CASES]
    print(f"seed {arguments.seed}, {arguments.strings} strings a file")
    passed = failed = 0
    for name, run, subject in cases:
        problems = run(arguments, subject, random.Random(f"{name} {arguments.seed}"))
        print(f"{name}: {len(problems)} differences", flush=True)
        print("".join(f"{p}\n" for p in problems[:SHOWN]), end="")
        passed, failed = passed + (not problems), failed + bool(problems)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
