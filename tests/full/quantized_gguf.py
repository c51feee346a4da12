#!/usr/bin/env python3
"""GGUF files that quire quantizes, in llama.cpp: each type, log-probabilities of an English text side by side.

Both programs read the same file: as it is, when llama.cpp rounds activations (per 256 with K-quants, and then more), and as its
llama-quantize decodes it to F32, when nothing is rounded. How far llama.cpp is from itself over the two says what its rounding
is worth. quire answers by `quire score --compute f32`, llama.cpp by its server, asked for the next token after each prefix.
Needs the model in QUIRE_MODELS and builds llama.cpp where bench/peers/llama_cpp.sh has not yet.
quantized_gguf.py [--model smollm2|qwen05] [TYPE...]
"""

import argparse
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
QUIRE = os.environ.get("QUIRE_BIN", str(ROOT / "build/release/bin/quire"))
SOURCES = {"smollm2": "smollm2-135m-instruct-q4_1.gguf", "qwen05": "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"}
SKIPPED = 77
TOKENS = 256
TOP = 2000  # of each distribution that llama.cpp is asked for; the rarest tokens are left out
# As the file is: so near, or as near as llama.cpp's own rounding lets it be. Decoded: the same numbers in another order.
RMS_LIMIT, OVER_ITS_OWN, DECODED_RMS_LIMIT, LEAST_SHARE = 0.10, 1.02, 0.02, 0.9
START_LIMIT_S = 120
TYPES = {
    "q4_0": ["--scheme", "gptq", "--calibration-sequences", "4", "--calibration-length", "64"],
    "q4_1": ["--scheme", "rtn", "--importance", "off"],
    "q8_0": ["--scheme", "rtn", "--importance", "off"],
    "q4_k": ["--scheme", "rtn", "--importance", "off"],
    "q6_k": ["--scheme", "rtn", "--importance", "off"],
}


def golden_ids(model):
    prompts = json.loads((ROOT / f"tests/golden/logits/{model}.json").read_text())["prompts"]
    return next(prompt["ids"] for prompt in prompts if prompt["name"] == "english-700")[:TOKENS]


def quire_logprobs(model, ids):
    run = subprocess.run([QUIRE, "score", "-m", model, "--compute", "f32", "--jsonl"], input=json.dumps({"ids": ids}) + "\n", capture_output=True,
                         text=True, check=True)
    return json.loads(run.stdout)["next_logprob"]


class LlamaServer:
    def __init__(self, program, model):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.process = subprocess.Popen(
            [program, "-m", model, "--port", self.url.rsplit(":", 1)[1], "-c", "512", "-t", "2", "-np", "1", "--no-warmup",
             "-ctk", "f32", "-ctv", "f32", "-fa", "off"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        end = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urllib.request.urlopen(self.url + "/health", timeout=5).read()
                return self
            except OSError:
                time.sleep(0.2)
        self.process.kill()
        sys.exit("llama-server did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def top(self, ids):
        """The most likely next tokens and their log-probabilities."""
        body = {"prompt": ids, "n_predict": 1, "n_probs": TOP, "temperature": 0, "cache_prompt": True, "post_sampling_probs": False}
        request = urllib.request.Request(self.url + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
        answer = json.load(urllib.request.urlopen(request, timeout=60))
        return {entry["id"]: entry["logprob"] for entry in answer["completion_probabilities"][0]["top_logprobs"]}


def llama_logprobs(program, model, ids):
    """Of each token but the first; None where it is not among the likeliest."""
    with LlamaServer(program, model) as server:
        return [server.top(ids[:i]).get(ids[i]) for i in range(1, len(ids))]


def rms(a, b):
    """Of the differences, and the share of tokens that both know."""
    squares = [(x - y) ** 2 for x, y in zip(a, b) if x is not None and y is not None]
    return math.sqrt(sum(squares) / len(squares)), len(squares) / len(a)


def check(programs, source, name, ids, folder):
    model, decoded = Path(folder) / f"{name}.gguf", Path(folder) / f"{name}-f32.gguf"
    subprocess.run([QUIRE, "quantize", source, model, "--proof-tokens", "0", "--type", name, *TYPES[name]], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([programs / "llama-quantize", "--allow-requantize", model, decoded, "F32"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ours = quire_logprobs(model, ids)
    as_it_is = llama_logprobs(programs / "llama-server", model, ids)
    as_f32 = llama_logprobs(programs / "llama-server", decoded, ids)
    apart, share = rms(ours, as_it_is)
    exact, exact_share = rms(ours, as_f32)
    its_own, _ = rms(as_it_is, as_f32)
    wrong = apart > max(RMS_LIMIT, OVER_ITS_OWN * its_own) or exact > DECODED_RMS_LIMIT or min(share, exact_share) < LEAST_SHARE
    print(f"{'FAILED' if wrong else 'ok'} {name}: next_logprob differs by {apart:.4f} RMS, decoded to F32 by {exact:.4f}; "
          f"llama.cpp's rounding is worth {its_own:.4f} ({share:.0%} of {len(ids) - 1} tokens)", flush=True)
    return not wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=SOURCES, default="smollm2")
    parser.add_argument("types", nargs="*", metavar="TYPE", help="q4_0, q4_1, q8_0, q4_k, q6_k; all if none is named")
    args = parser.parse_args()
    types = args.types or list(TYPES)
    source = Path(os.environ.get("QUIRE_MODELS", "")) / SOURCES[args.model]
    if not source.exists():
        print(f"no {source.name} in QUIRE_MODELS")
        sys.exit(SKIPPED)
    built = subprocess.run(["bash", ROOT / "bench/peers/llama_cpp.sh"], stdout=subprocess.PIPE, text=True)
    programs = Path(built.stdout.strip())
    if built.returncode != 0 or not (programs / "llama-server").exists():
        print("llama.cpp's server cannot be built here")
        sys.exit(SKIPPED)
    ids = golden_ids(args.model)
    failed = 0
    for name in types:
        with tempfile.TemporaryDirectory(prefix="quire-full-") as folder:
            failed += not check(programs, source, name, ids, folder)
    print(f"{len(types) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
