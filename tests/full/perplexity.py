#!/usr/bin/env python3
"""Holds the perplexity of real models against llama.cpp's on the same text and windows.

The text is that of four licences as Debian installs them. llama.cpp's figures: `llama-perplexity -c 512 -b 2048 -fa on` of
llama-cpp-python 0.3.36, f16 KV. It rounds activations to int8 in other blocks than quire, and the weights of Q4_1 meet
them in another order; from exact arithmetic either may be half a percent away.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
QUIRE = os.environ.get("QUIRE_BIN", str(ROOT / "build/release/bin/quire"))
MODELS = Path(os.environ.get("QUIRE_MODELS", ""))
LICENCES = [Path("/usr/share/common-licenses") / name for name in ("GPL-3", "GFDL-1.3", "LGPL-2.1", "MPL-2.0")]
SHA256 = "61e98a41438cbfcaa003969cd54f44993c46d4ab4c16a148c4a076ab6b8015bf"
SKIPPED = 77
TOLERANCE = 0.01

# model, windows, llama.cpp's perplexity
FIGURES = [("smollm2-135m-instruct-q4_1", 43, 15.915), ("smollm2-135m-instruct-q4_1", 8, 18.494),
           ("qwen2.5-coder-0.5b-instruct-q4_k_m", 10, 5.880)]


def perplexity(model: Path, text: str, windows: int, *options: str) -> float:
    out = subprocess.run([QUIRE, "eval", "--json", "--model", model, "--text", text, "--tokens", str(512 * windows), *options],
                         check=True, capture_output=True, text=True).stdout
    report = json.loads(out)
    if report["windows"] != windows:
        sys.exit(f"{model}: {report['windows']} windows judged, {windows} expected")
    return report["models"][0]["perplexity"]


def main():
    if not os.environ.get("QUIRE_MODELS") or not all(path.exists() for path in LICENCES):
        print("skipped: QUIRE_MODELS is not set, or the licences are not installed")
        sys.exit(SKIPPED)
    data = b"".join(path.read_bytes() for path in LICENCES)
    if hashlib.sha256(data).hexdigest() != SHA256:
        print("skipped: these licences are another edition than llama.cpp read")
        sys.exit(SKIPPED)
    failed = 0
    with tempfile.NamedTemporaryFile(suffix=".txt") as text:
        text.write(data)
        text.flush()
        for name, windows, expected in FIGURES:
            for options in ([], ["--compute", "f32"]):
                value = perplexity(MODELS / f"{name}.gguf", text.name, windows, *options)
                off = value / expected - 1
                verdict = "ok" if abs(off) <= TOLERANCE else "FAILED"
                failed += verdict != "ok"
                print(f"{verdict}: {name}, {windows} windows{' '.join(['', *options])}: {value:.3f}, llama.cpp {expected} ({off:+.2%})",
                      flush=True)
    print(f"{2 * len(FIGURES) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
