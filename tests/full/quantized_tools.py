#!/usr/bin/env python3
"""Directories that quire quantizes, in the tools whose formats they are: gptqmodel (GPTQ and AWQ), transformers with compressed-tensors.

The tool loads what quire wrote, and its log-probabilities of a few hundred tokens are held against those of `quire score --compute f32`:
with the weights that the tool decodes from f32 scales, when only the order of sums differs, and by the model as the tool loads it, when
it rounds weights (and gptqmodel activations) to f16. See quantized_tools_reader.py, which runs in the tools' environment.

That is made in ${QUIRE_CACHE:-~/.cache/quire}/tools/quantized on first use (6 GB: torch's CUDA libraries come along), from the pins in
quantized_tools_*.txt. A tool that cannot be installed is skipped, with 77 when that leaves none. SmolLM2 is tried where QUIRE_MODELS
has it. quantized_tools.py [CASE...]
"""

import fcntl
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
QUIRE = os.environ.get("QUIRE_BIN", str(ROOT / "build/release/bin/quire"))
CACHE = Path(os.environ.get("QUIRE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quire")
ENVIRONMENT = CACHE / "tools/quantized"
PYTHON = ENVIRONMENT / "bin/python"
SKIPPED = 77
INSTALL_LIMIT_S = READER_LIMIT_S = 1800

TINY = ROOT / "tests/golden/quantized/base"
SMOLLM2 = Path(os.environ.get("QUIRE_MODELS", "")) / "smollm2-135m-instruct-q4_1.gguf"
TOKENS = 200
EXACT_LIMIT = 1e-3  # of any token; 9e-5 and less are measured
LOADED_RMS_LIMIT = 0.05  # 0.02 and less are measured

COMPRESSED = ["--scheme", "rtn", "--format", "compressed-tensors"]
# Which tool reads it, from which model, how it is quantized.
CASES = {
    "gptq-g64": ("gptqmodel", TINY, ["--scheme", "gptq", "--group", "64"]),
    "gptq-g32-asym": ("gptqmodel", TINY, ["--scheme", "gptq", "--group", "32", "--asym"]),
    "gptq-g32-act-order": ("gptqmodel", TINY, ["--scheme", "gptq", "--group", "32", "--act-order"]),
    "gptq-g32-asym-act-order": ("gptqmodel", TINY, ["--scheme", "gptq", "--group", "32", "--asym", "--act-order"]),
    "gptq-g32-static-groups": ("gptqmodel", TINY, ["--scheme", "gptq", "--group", "32", "--act-order", "--static-groups"]),
    "gptq-8bit-g128": ("gptqmodel", TINY, ["--scheme", "gptq", "--bits", "8", "--group", "128"]),
    "gptq-row": ("gptqmodel", TINY, ["--scheme", "gptq", "--group=-1"]),
    "gptq-smollm2": ("gptqmodel", SMOLLM2, ["--scheme", "rtn", "--format", "gptq", "--group", "64", "--asym"]),
    "awq-g64": ("gptqmodel", TINY, ["--scheme", "awq", "--group", "64"]),
    "awq-g64-asym": ("gptqmodel", TINY, ["--scheme", "awq", "--group", "64", "--asym"]),
    "awq-smollm2": ("gptqmodel", SMOLLM2, ["--scheme", "rtn", "--format", "awq", "--group", "64", "--asym"]),
    "ct-4bit-g64": ("compressed-tensors", TINY, [*COMPRESSED, "--group", "64"]),
    "ct-4bit-g64-asym": ("compressed-tensors", TINY, [*COMPRESSED, "--group", "64", "--asym"]),
    "ct-8bit-g128": ("compressed-tensors", TINY, [*COMPRESSED, "--bits", "8", "--group", "128"]),
    "ct-8bit-row": ("compressed-tensors", TINY, [*COMPRESSED, "--bits", "8", "--group=-1"]),
    "ct-8bit-row-asym": ("compressed-tensors", TINY, [*COMPRESSED, "--bits", "8", "--group=-1", "--asym"]),
    "ct-smollm2": ("compressed-tensors", SMOLLM2, [*COMPRESSED, "--group", "64", "--asym"]),
    "ct-g32-static-groups": ("compressed-tensors", TINY, ["--scheme", "gptq", "--format", "compressed-tensors", "--group", "32", "--asym",
                                                          "--act-order", "--static-groups"]),
    "ct-row-act-order": ("compressed-tensors", TINY, ["--scheme", "gptq", "--format", "compressed-tensors", "--group=-1", "--act-order"]),
}


# --- the tools ------------------------------------------------------------------------------------------------

def pip(*arguments):
    """Whether pip could."""
    try:
        done = subprocess.run([PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], capture_output=True, text=True,
                              timeout=INSTALL_LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f"pip {' '.join(map(str, arguments))}: no end after {INSTALL_LIMIT_S} s")
        return False
    if done.returncode != 0:
        print(f"pip {' '.join(map(str, arguments))}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    return done.returncode == 0


def ensure(name, pins, *options):
    """Installs unless a stamp says that it is done; whether it is there."""
    stamp = ENVIRONMENT / f"{name}.installed"
    if stamp.exists() and stamp.read_text() == pins:
        return True
    if not pip("install", "--no-cache-dir", *options):
        return False
    stamp.write_text(pins)
    return True


def install():
    """The tools that are there then."""
    ENVIRONMENT.mkdir(parents=True, exist_ok=True)
    with open(ENVIRONMENT / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not PYTHON.exists() and subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT]).returncode != 0:
            return set()
        requirements, gptqmodel = HERE / "quantized_tools_requirements.txt", HERE / "quantized_tools_gptqmodel.txt"
        if not ensure("compressed-tensors", requirements.read_text(), "-r", requirements):
            return set()
        tools = {"compressed-tensors"}
        if ensure("gptqmodel", gptqmodel.read_text(), "--no-build-isolation", "-r", gptqmodel, "-c", requirements):
            tools.add("gptqmodel")
    return tools


def read(ids, directories, folder):
    """What quantized_tools_reader.py answers for each directory, by its name."""
    task = folder / "task.json"
    task.write_text(json.dumps({"ids": ids, "directories": [str(directory) for directory in directories]}))
    done = subprocess.run([PYTHON, HERE / "quantized_tools_reader.py", task], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=READER_LIMIT_S)
    answers = {Path(answer["directory"]).name: answer for answer in map(json.loads, done.stdout.splitlines())}
    if len(answers) < len(directories):
        print("\n".join(done.stderr.splitlines()[-20:]))
    return answers


# --- comparing ------------------------------------------------------------------------------------------------

def quantize(source, target, arguments):
    subprocess.run([QUIRE, "quantize", source, target, "--calibration-sequences", "4", "--calibration-length", "64", "--proof-tokens", "0",
                    *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def quire_logprobs(model, ids):
    run = subprocess.run([QUIRE, "score", "-m", model, "--compute", "f32", "--jsonl"], input=json.dumps({"ids": ids}) + "\n", capture_output=True,
                         text=True, check=True)
    return json.loads(run.stdout)["next_logprob"]


def check(name, ours, answer):
    if "error" in (answer := answer or {"error": "no answer"}):
        print(f"FAILED {name}: {answer['error']}")
        return False
    exact = max(abs(a - b) for a, b in zip(ours, answer["exact"], strict=True))
    loaded = math.sqrt(sum((a - b) ** 2 for a, b in zip(ours, answer["loaded"], strict=True)) / len(ours))
    good = exact <= EXACT_LIMIT and loaded <= LOADED_RMS_LIMIT  # false for NaN
    print(f"{'ok' if good else 'FAILED'} {name}: next_logprob differs by at most {exact:.1e}, as the tool loads it by {loaded:.4f} RMS", flush=True)
    return good


def ids_for(source):
    if source == SMOLLM2:
        prompts = json.loads((ROOT / "tests/golden/logits/smollm2.json").read_text())["prompts"]
        return next(prompt["ids"] for prompt in prompts if prompt["name"] == "english-700")[:TOKENS]
    return random.Random(1).choices(range(3, json.loads((source / "config.json").read_text())["vocab_size"]), k=TOKENS)


def main(names):
    tools = install()
    if not tools:
        print(f"the tools cannot be installed into {ENVIRONMENT}")
        sys.exit(SKIPPED)
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory(prefix="quire-full-") as temporary:
        folder = Path(temporary)
        runnable = [name for name in names if CASES[name][0] in tools and CASES[name][1].exists()]
        for name in names:
            if name not in runnable:
                skipped += 1
                print(f"skipped {name}: {CASES[name][0] + ' is not installed' if CASES[name][0] not in tools else 'no model in QUIRE_MODELS'}")
        for tool in sorted(tools):
            mine = [name for name in runnable if CASES[name][0] == tool]
            if not mine:
                continue
            for name in mine:
                quantize(CASES[name][1], folder / name, CASES[name][2])
            ids = [ids_for(CASES[name][1]) for name in mine]
            answers = read(ids, [folder / name for name in mine], folder)
            for name, own_ids in zip(mine, ids):
                good = check(name, quire_logprobs(folder / name, own_ids), answers.get(name))
                passed, failed = passed + good, failed + (not good)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed else 0 if passed else SKIPPED)


if __name__ == "__main__":
    main(sys.argv[1:] or list(CASES))
