#!/usr/bin/env python3
"""Compares quire's tokenizers with Hugging Face `tokenizers` on random strings.

Each case is a tokenizer.json: one for every splitter and pre-tokenizer pattern that quire knows, and for the kinds of
normalizer, decoder and added token. Its merges are trained on random strings without any splitting, so that pieces cut
elsewhere than at the right places give other ids. Ids and decoded text must be equal on every string.

usage: tokenizer_differential.py [--quire PROGRAM] [--strings N] [--seed N] [CASE ...]

The program defaults to $QUIRE_BIN. Exit status 1 after the first differences of a case are printed, 77 when
`tokenizers` (tests/full/requirements.txt) is not installed. Closes with 'N passed, N failed', a case being one.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError:
    print("skipped: the Python package 'tokenizers' is not installed")
    sys.exit(77)

ROOT = Path(__file__).resolve().parent.parent.parent
CHECKPOINT = ROOT / "tests/golden/tiny/qwen2"
SHOWN = 3

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# The same splits, spelled so that quire takes its general path.
GPT2_RESPELLED = r"(?:'s|'t|'re|'ve|'m|'ll|'d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3_RESPELLED = LLAMA3.replace("(?i:'s|", "(?i:'S|")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O = TEKKEN.replace(r"\p{M}]+|", r"\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|").replace(
    r"\p{M}]*|\p{N}|", r"\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|")
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+"
          r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
DEEPSEEK_V3 = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
               r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
               r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
DEEPSEEK_CODER = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u0800-一가-\ud7ff]+", r"\p{N}"]
DEEPSEEK_LLM = [r"[\r\n]", r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁ]+",
                r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", "[一-龥\u0800-一가-\ud7ff]+", r"\p{N}+"]
FALCON = [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]

# What random strings are made of; the first lists weigh most.
ALPHABETS = [
    list("etaoinshrdlu" * 2 + "ABCXYZ"), list("0123456789"), [" "] * 6 + ["  ", "   ", "\n", "\n\n", "\r\n", "\t", "\r"],
    list("'\"!?.,;:-_()[]{}<>/\\|@#$%^&*+=~`"),
    ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'Re", "'\u017f", "'\u212a", "don't", "I'm", "the", "ing"],
    ["\x85", "\xa0", "\u1680", "\u180e", "\u2003", "\u2028", "\u2029", "\u202f", "\u200b", "\u200d", "\ufeff", "\u3000",
     "\x0b", "\x0c", "\x1c", "\x1f", "\x00", "\x7f"],
    list("éàüßñøåÆŒſ¡¿«»°±²³¹½×÷€£¥©"), ["\u0301", "\u0308", "\u0323", "\u0345", "\u0334", "e\u0301", "o\u0302\u0301"],
    # Marks of many combining classes, some younger than the normalizer's tables, and parts of compositions.
    list("aeoA\u0300\u0301\u0303\u0307\u0323\u0327\u0328\u031b\u0334\u0345\u0591\u05b0\u064b\u0651\u093c\u0e38\u0f71\u1ddc\u3099\u302a"
         "\u07fd\u0898\u09fe\u0c3c\u1715\u1abf\u1df6\ua82c\U00011070\U0001e130\U0001e08f\U00010efd\U00011f41"),
    list("\u1100\u1161\u11a8\uac00\u0915\u09c7\u09be\u212b\u2126\ufb1d\u0344\U00011935\U00011930\U00011938\U0001d15e\U0002f800"),
    list("абвГДЕяё"), list("αβγΩάώ"), list("שלום"), list("مرحبا٠١٢٣"), list("नमस्ते१२"), list("สวัสดี๑๒"),
    list("中文字符一龥鿼㐀"), list("ひらがなカタカナー々〇、。「」！～"), list("한국어ㄱㅏ"), list("각각각"),
    list("😀👍🏽🇩🇪❤️"), list("ǅǈΐᾳ\u01c5\u1f88"), list("ʰʲːªº"), list("ⅠⅫↀ①⑳㉑½¾"), list("𝒜𝟘𝐀𐐷𐍈"),
    # Younger than Unicode 14.
    list("\U00011f50\U00011f02\U00010d40\U0001e4f0\U00031350\U0002ebf0\u1c89\ua7cb\U00010d4e\u0cf3\U000113b8\u2ffc"),
    list("\ue000\uffff\ufdd0\U000f0000\U0010ffff\u0378"),
    list("▁▁ĠĊ<>"), ["<|x|>", "<tool>", "</tool>", "[W]", "<s>", "<strip>", "word"],
]
WEIGHTS = [14, 5, 12, 8, 5, 4] + [2] * (len(ALPHABETS) - 6)


def random_string(rng):
    parts = []
    for _ in range(rng.choice((1, 2, 4, 8, 16, 24))):
        if rng.random() < 0.02:
            c = rng.randrange(0x110000)
            parts.append(chr(c) if not 0xD800 <= c < 0xE000 else "\ufffd")
        else:
            alphabet = rng.choices(ALPHABETS, WEIGHTS)[0]
            parts.append("".join(rng.choices(alphabet, k=rng.choice((1, 1, 1, 2, 3, 5)))))
    return "".join(parts)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(*steps, normalizer=None, use_regex=False, prefix=False, after=(), **model):
    """A byte-level tokenizer with `steps` before, and `after` behind, the ByteLevel pre-tokenizer."""
    def build(rng):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.train_from_iterator((random_string(rng) for _ in range(20000)), trainers.BpeTrainer(
            vocab_size=6000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        document = json.loads(tokenizer.to_str())
        document["model"] |= model
        tokenizer = Tokenizer.from_str(json.dumps(document))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [*steps, pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex), *after])
        return tokenizer
    return build


def sentencepiece(normalizer, pre_tokenizer=None, strips=True, characters=300, **model):
    """Merges over characters with byte fallback, as Llama 2 and Gemma have."""
    def build(rng):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.train_from_iterator((random_string(rng) for _ in range(20000)), trainers.BpeTrainer(
            vocab_size=5000, limit_alphabet=characters, initial_alphabet=["▁"], show_progress=False,
            special_tokens=["<unk>"] + [f"<0x{b:02X}>" for b in range(256)]))
        document = json.loads(tokenizer.to_str())
        document["model"] |= {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True} | model
        document["added_tokens"] = []
        tokenizer = Tokenizer.from_str(json.dumps(document))
        tokenizer.normalizer = normalizer
        if pre_tokenizer is not None:
            tokenizer.pre_tokenizer = pre_tokenizer
        chain = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        tokenizer.decoder = decoders.Sequence(chain + ([decoders.Strip(" ", 1, 0)] if strips else []))
        return tokenizer
    return build


def with_added(build, normalized=False):
    """Adds tokens of every flag, and a BOS."""
    def wrapped(rng):
        tokenizer = build(rng)
        tokenizer.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("<|x|>", normalized=normalized)])
        tokenizer.add_tokens([AddedToken("<tool>", normalized=normalized), AddedToken("</tool>", normalized=normalized, rstrip=True),
                              AddedToken("<strip>", lstrip=True, rstrip=True, normalized=normalized),
                              AddedToken("word", single_word=True, normalized=normalized),
                              AddedToken("[W]", lstrip=True, normalized=normalized), AddedToken("   ", normalized=False)])
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
        return tokenizer
    return wrapped


PREPEND = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
DIGITS = pre_tokenizers.Digits(individual_digits=True)
CASES = {
    "gpt2": byte_level(use_regex=True),
    "gpt2-prefix-space": byte_level(use_regex=True, prefix=True),
    "gpt2-by-regex": byte_level(split(GPT2_RESPELLED)),
    "llama-bpe": byte_level(split(LLAMA3), ignore_merges=True),
    "llama-bpe-by-regex": byte_level(split(LLAMA3_RESPELLED)),
    "qwen2": byte_level(split(QWEN2), normalizer=normalizers.NFC()),
    "smollm": byte_level(DIGITS, use_regex=True),
    "tekken": byte_level(split(TEKKEN), ignore_merges=True),
    "gpt-4o": byte_level(split(GPT4O)),
    "cl100k": byte_level(split(CL100K)),
    "deepseek-v3": byte_level(*map(split, DEEPSEEK_V3)),
    "deepseek-coder": byte_level(*map(split, DEEPSEEK_CODER)),
    "deepseek-llm": byte_level(*map(split, DEEPSEEK_LLM)),
    "falcon-patterns": byte_level(*map(split, FALCON)),
    "falcon": byte_level(pre_tokenizers.Punctuation("contiguous"), use_regex=True,
                         after=(pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]"))),
    "behaviors": byte_level(split(r"\p{Lu}", "merged_with_next"), split(r"[.!]", "merged_with_previous"),
                            split(r"\d", "contiguous"), split(r"\t", "removed"), split(r"[^\r\n]+", "removed", True),
                            split(r"(?=[AEIOU])"), pre_tokenizers.Split("ing", "isolated")),
    "classes": byte_level(split(r"\w+|[^\w\s]+"), split(r"\b\p{Ll}{2,}"), split(r"[\P{L}\s]+"), split(r"\W\D?\S")),
    "added-tokens": with_added(byte_level(split(LLAMA3))),
    "added-tokens-normalized": with_added(byte_level(split(QWEN2), normalizer=normalizers.NFC()), normalized=True),
    "llama-spm": sentencepiece(PREPEND),
    "llama-metaspace-first": sentencepiece(None, pre_tokenizers.Metaspace("▁", "first", split=False)),
    "metaspace-always": sentencepiece(None, pre_tokenizers.Metaspace("▁", "always", split=True)),
    "gemma": sentencepiece(normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"), strips=False),
    "unknown-token": sentencepiece(PREPEND, byte_fallback=False),
    "spm-added-tokens": with_added(sentencepiece(PREPEND)),
    "spm-added-tokens-normalized": with_added(sentencepiece(PREPEND), normalized=True),
    "metaspace-added-tokens": with_added(sentencepiece(None, pre_tokenizers.Metaspace("▁", "first", split=False))),
}


def requests(rng, strings):
    for _ in range(strings):
        yield {"text": random_string(rng), "add_special": rng.random() < 0.5, "parse_special": rng.random() < 0.5}


def answers(quire, directory, lines):
    """Feeds the program from a file, so that neither side waits for the other."""
    path = directory / "requests.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with path.open() as stdin:
        done = subprocess.run([quire, "tokenize", "--model", str(directory), "--jsonl"], stdin=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"quire tokenize failed: {done.stderr.decode(errors='replace').strip()[:2000]}")
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def reference(tokenizer, lines):
    """(ids, decoded text) of every request, in order; a batch for each pair of switches."""
    result = [None] * len(lines)
    for add_special, parse_special in ((a, p) for a in (False, True) for p in (False, True)):
        chosen = [n for n, x in enumerate(lines) if (x["add_special"], x["parse_special"]) == (add_special, parse_special)]
        tokenizer.encode_special_tokens = not parse_special
        encodings = tokenizer.encode_batch([lines[n]["text"] for n in chosen], add_special_tokens=add_special)
        decoded = tokenizer.decode_batch([e.ids for e in encodings], skip_special_tokens=False)
        for n, encoding, text in zip(chosen, encodings, decoded):
            result[n] = (encoding.ids, text)
    return result


def differences(quire, name, strings, seed):
    """(how many strings differ, descriptions of the first)"""
    rng = random.Random(f"{name} {seed}")
    tokenizer = CASES[name](rng)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "checkpoint"
        shutil.copytree(CHECKPOINT, directory)
        tokenizer.save(str(directory / "tokenizer.json"))
        lines = list(requests(rng, strings))
        got = answers(quire, directory, lines)
    if len(got) != len(lines):
        raise RuntimeError(f"{len(lines)} requests, {len(got)} answers")
    shown, count = [], 0
    for line, answer, (ids, decoded) in zip(lines, got, reference(tokenizer, lines)):
        if answer.get("ids") != ids or answer.get("decoded") != decoded:
            count += 1
            if len(shown) < SHOWN:
                shown.append(f"    {json.dumps(line)}\n      tokenizers {[tokenizer.id_to_token(i) for i in ids]} {decoded!r}"
                             f"\n      quire      {[tokenizer.id_to_token(i) for i in answer.get('ids', [])]} {answer.get('decoded', answer)!r}")
    return count, shown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quire", default=os.environ.get("QUIRE_BIN", str(ROOT / "build/release/bin/quire")))
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.strings} strings a case")
    passed = failed = 0
    for name in arguments.cases or CASES:
        began = time.monotonic()
        count, shown = differences(arguments.quire, name, arguments.strings, arguments.seed)
        print(f"{name}: {count} of {arguments.strings} differ ({time.monotonic() - began:.0f} s)", flush=True)
        print("".join(f"{line}\n" for line in shown), end="")
        passed, failed = passed + (count == 0), failed + (count != 0)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
