#!/usr/bin/env python3
"""GGUF files that quire quantizes, in llama.cpp: SmolLM2 as each type, log-probabilities of an English text side by side.

Both programs read the same file: as it is, when they differ by how llama.cpp rounds activations (per 256 with K-quants, and
then more), and as its llama-quantize decodes it to F32, when nothing is rounded. quire answers by `quire score --compute f32`,
llama.cpp by its server, asked for the next token after each prefix. Needs the model in QUIRE_MODELS and builds llama.cpp where
bench/peers/llama_cpp.sh has not yet. quantized_gguf.py [TYPE...]
"""

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
SOURCE = Path(os.environ.get("QUIRE_MODELS", "")) / "smollm2-135m-instruct-q4_1.gguf"
SKIPPED = 77
TOKENS = 256
TOP = 2000  # of each distribution that llama.cpp is asked for; the rarest tokens are left out
RMS_LIMIT, K_QUANT_RMS_LIMIT, DECODED_RMS_LIMIT, LEAST_SHARE = 0.10, 0.13, 0.02, 0.9
START_LIMIT_S = 120
TYPES = {
    "q4_0": ["--scheme", "gptq", "--calibration-sequences", "4", "--calibration-length", "64"],
    "q4_1": ["--scheme", "rtn", "--importance", "off"],
    "q8_0": ["--scheme", "rtn", "--importance", "off"],
    "q4_k": ["--scheme", "rtn", "--importance", "off"],
    "q6_k": ["--scheme", "rtn", "--importance", "off"],
}


def golden_ids():
    prompts = json.loads((ROOT / "tests/golden/logits/smollm2.json").read_text())["prompts"]
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


def compare(program, model, ours, ids):
    with LlamaServer(program, model) as server:
        pairs = [(ours[i - 1], top[ids[i]]) for i in range(1, len(ids)) if ids[i] in (top := server.top(ids[:i]))]
    rms = math.sqrt(sum((a - b) ** 2 for a, b in pairs) / len(pairs))
    return rms, len(pairs) / len(ours)


def check(programs, name, ids, folder):
    model, decoded = Path(folder) / f"{name}.gguf", Path(folder) / f"{name}-f32.gguf"
    subprocess.run([QUIRE, "quantize", SOURCE, model, "--proof-tokens", "0", "--type", name, *TYPES[name]], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([programs / "llama-quantize", "--allow-requantize", model, decoded, "F32"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ours = quire_logprobs(model, ids)
    limit = K_QUANT_RMS_LIMIT if name.endswith("_k") else RMS_LIMIT
    rms, share = compare(programs / "llama-server", model, ours, ids)
    exact, exact_share = compare(programs / "llama-server", decoded, ours, ids)
    wrong = rms > limit or exact > DECODED_RMS_LIMIT or min(share, exact_share) < LEAST_SHARE
    print(f"{'FAILED' if wrong else 'ok'} {name}: next_logprob differs by {rms:.4f} RMS, decoded to F32 by {exact:.4f} "
          f"({share:.0%} of {len(ids) - 1} tokens)", flush=True)
    return not wrong


def main(types):
    if not SOURCE.exists():
        print(f"no {SOURCE.name} in QUIRE_MODELS")
        sys.exit(SKIPPED)
    built = subprocess.run(["bash", ROOT / "bench/peers/llama_cpp.sh"], stdout=subprocess.PIPE, text=True)
    programs = Path(built.stdout.strip())
    if built.returncode != 0 or not (programs / "llama-server").exists():
        print("llama.cpp's server cannot be built here")
        sys.exit(SKIPPED)
    ids = golden_ids()
    failed = 0
    for name in types:
        with tempfile.TemporaryDirectory(prefix="quire-full-") as folder:
            failed += not check(programs, name, ids, folder)
    print(f"{len(types) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:] or list(TYPES))
