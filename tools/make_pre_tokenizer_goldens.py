#!/usr/bin/env python3
"""Writes tests/golden/pre_tokenizers.json: pieces that Hugging Face `tokenizers` cuts texts into, for every value of
GGUF's tokenizer.ggml.pre that quire knows.

GGUF names a pre-tokenizer without storing it; the pipelines here are those of the models' own tokenizer.json files.

    pip install -r tests/full/requirements.txt
    python3 tools/make_pre_tokenizer_goldens.py > tests/golden/pre_tokenizers.json
"""

import json
import random
import sys
from pathlib import Path

from tokenizers import normalizers, pre_tokenizers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/full"))
import tokenizer_differential as differential  # noqa: E402

# DeepSeek-LLM's own list of cased letters, of an older Unicode.
DEEPSEEK_LLM_LETTERS = (
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7d"
    "ᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943]+")

SPLITS = {name: [differential.split(p) for p in patterns] for name, patterns in {
    "gpt2": [differential.GPT2], "llama3": [differential.LLAMA3], "qwen2": [differential.QWEN2],
    "tekken": [differential.TEKKEN], "falcon": differential.FALCON, "deepseek-v3": differential.DEEPSEEK_V3,
    "deepseek-coder": differential.DEEPSEEK_CODER,
    "deepseek-llm": [differential.DEEPSEEK_LLM[0], DEEPSEEK_LLM_LETTERS, *differential.DEEPSEEK_LLM[2:]]}.items()}
# Names that share a pipeline, the normalizer, the pre-tokenizers.
PIPELINES = [
    (["gpt-2", "mpt", "olmo"], None, SPLITS["gpt2"]),
    (["smollm", "starcoder", "refact", "command-r"], None, [differential.DIGITS, *SPLITS["gpt2"]]),
    (["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"], None, SPLITS["llama3"]),
    (["qwen2"], normalizers.NFC(), SPLITS["qwen2"]),
    (["tekken"], None, SPLITS["tekken"]),
    (["falcon"], None, SPLITS["falcon"]),
    (["deepseek-v3"], None, SPLITS["deepseek-v3"]),
    (["deepseek-coder"], None, SPLITS["deepseek-coder"]),
    (["deepseek-llm"], None, SPLITS["deepseek-llm"]),
]

TEXTS = [
    "Hello, world!  It's 2024-01-31,\n\nisn't it?\tYes.  \n", "I'LL don't WE'RE 'tis o'clock'S", "\u017f'\u017f a'\u017f 'Ve",
    "1234567 12,345.678 ½²³ ٠١٢٣ ⅫⅣ", "   leading\n  \n   and trailing   ", "\r\n\r\n x \r y\u0085z\u2028w\u00a0v\u3000u",
    "中文字符，日本語のテキスト。한국어 텍스트！", "e\u0301\u0323 cafe\u0301 \u212b", "def f(x):\n    return x**2 + [1, 2][0]  # ok\n",
    "😀👍🏽 👨‍👩‍👧 ❤️", "ǅungla ʰello ªº ᾈ ῼ", "$^+=<>~`|&%@#*_", "\u1c89\ua7cb\U00011f50\U00031350 \U00010d40",
    "нормальный ТЕКСТ Ελληνικά עברית العربية हिन्दी ไทย", "https://example.org/a/b?c=d&e=f#g", " \u180e \u200b\ufeff\u0000\u001f",
]


def main():
    rng = random.Random(2024)
    texts = TEXTS + [differential.random_string(rng) for _ in range(40)]
    result = []
    for names, normalizer, steps in PIPELINES:
        pre_tokenizer = pre_tokenizers.Sequence(steps)
        cases = []
        for text in texts:
            normalized = normalizer.normalize_str(text) if normalizer else text
            cases.append({"text": text, "pieces": [piece for piece, _ in pre_tokenizer.pre_tokenize_str(normalized)]})
        result.append({"names": names, "cases": cases})
    print("[" + ",\n".join(json.dumps(entry) for entry in result) + "]")


if __name__ == "__main__":
    main()
