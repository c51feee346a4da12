#!/usr/bin/env python3
"""Compares quire with llama.cpp on one model: prefill and decode speed in interleaved runs on the same machine.

A machine that is shared drifts, so only ratios of runs made side by side count. Each pair runs both programs once, in
alternating order, with nothing else in between; a copy of memory before and after each pair probes the bandwidth, and a
pair whose two probes differ by more than 15 % is thrown away and run again. Printed are medians (lowest to highest) and the
median of the pairs' ratios, with the load that other programs put on the machine meanwhile.

Both sides prefill `--prefill` random tokens, and decode `--decode` tokens from a context of one token; weights are loaded
and a first run is made before the clock starts (llama-bench does the same by default).
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROBE_BYTES = 256 << 20
MAX_PROBE_CHANGE = 0.15
SIDES = ("quire", "llama.cpp")


@dataclass
class Pair:
    prefill: dict[str, float] = field(default_factory=dict)  # side -> tok/s
    decode: dict[str, float] = field(default_factory=dict)


def fail(message: str):
    print(f"compare.py: {message}", file=sys.stderr)
    sys.exit(2)


def run_quire(options) -> tuple[float, float]:
    """(prefill, decode) tok/s of one process that answers a warm-up and two measured requests."""
    rng = random.Random(time.monotonic_ns())

    def request(prompt_tokens: int, max_tokens: int) -> dict:
        # Ids below 30,000 exist in each vocabulary and are, at random, no prefix of an earlier request.
        ids = [rng.randrange(1000, 30000) for _ in range(prompt_tokens)]
        return {"ids": ids, "max_tokens": max_tokens, "ignore_eos": True, "temperature": 0}

    requests = [request(options.prefill, 8), request(options.prefill, 1), request(1, options.decode + 1)]
    command = [options.quire, "run", "--model", options.model, "--threads", str(options.threads), "--jsonl"]
    command += ["--context", str(max(options.prefill, options.decode) + 64)]
    run = subprocess.run(command, input="".join(json.dumps(r) + "\n" for r in requests), capture_output=True, text=True)
    lines = run.stdout.splitlines()
    if run.returncode != 0 or len(lines) != len(requests):
        fail(f"{' '.join(command)} failed ({run.returncode}): {run.stderr.strip() or run.stdout.strip()}")
    answers = [json.loads(line) for line in lines]
    for answer in answers:
        if "error" in answer:
            fail(f"quire answered: {answer['error']}")
    prefill, decode = (answer["timings"] for answer in answers[1:])
    if prefill["prompt_tokens"] != options.prefill or prefill.get("cached_tokens", 0):
        fail(f"quire did not prefill {options.prefill} tokens: {prefill}")
    if decode["generated_tokens"] != options.decode + 1:
        fail(f"quire did not decode {options.decode} tokens: {decode}")
    # decode_ms runs from the first generated token to the last.
    return options.prefill / prefill["prefill_ms"] * 1000, options.decode / decode["decode_ms"] * 1000


def run_llama(options) -> tuple[float, float]:
    command = [options.llama_bench, "-m", options.model, "-t", str(options.threads), "-fa", "1", "-p", str(options.prefill),
               "-n", str(options.decode), "-r", "1", "-o", "json"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        fail(f"{' '.join(command)} failed: {run.stderr.strip()[-500:]}")
    tests = json.loads(run.stdout)
    prefill = next(test["avg_ts"] for test in tests if test["n_prompt"] and not test["n_gen"])
    decode = next(test["avg_ts"] for test in tests if test["n_gen"] and not test["n_prompt"])
    return prefill, decode


def probe() -> float:
    """GB/s of the best of eight copies of 256 MiB by one core."""
    source, target = bytearray(PROBE_BYTES), bytearray(PROBE_BYTES)
    best = float("inf")
    for _ in range(8):
        began = time.perf_counter()
        target[:] = source
        best = min(best, time.perf_counter() - began)
    return PROBE_BYTES / best / 1e9


def busy_seconds() -> float:
    """CPU seconds that the whole machine has spent, less idle ones."""
    fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure(options) -> tuple[list[Pair], float]:
    """The kept pairs and the foreign load in cores."""
    runners = {"quire": run_quire, "llama.cpp": run_llama}
    pairs: list[Pair] = []
    began, busy, own = time.monotonic(), busy_seconds(), own_seconds()
    for attempt in range(2 * options.pairs):
        before = probe()
        pair = Pair()
        for side in SIDES if attempt % 2 == 0 else reversed(SIDES):
            pair.prefill[side], pair.decode[side] = runners[side](options)
        after = probe()
        change = abs(after - before) / max(after, before)
        kept = change <= MAX_PROBE_CHANGE
        if kept:
            pairs.append(pair)
        figures = "  ".join(f"{side} {pair.prefill[side]:.0f} / {pair.decode[side]:.1f}" for side in SIDES)
        remark = "" if kept else "  dropped: the machine changed"
        print(f"pair {attempt + 1}: {figures}  probes {before:.1f} {after:.1f} GB/s{remark}", file=sys.stderr, flush=True)
        if len(pairs) == options.pairs:
            break
    foreign = (busy_seconds() - busy) - (own_seconds() - own)
    return pairs, max(0.0, foreign / (time.monotonic() - began))


def spread(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare quire with llama.cpp in interleaved runs.")
    parser.add_argument("--model", required=True, help="GGUF file")
    parser.add_argument("--pairs", type=int, default=5, help="pairs to keep (default 5)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prefill", type=int, default=512, help="prompt tokens (default 512)")
    parser.add_argument("--decode", type=int, default=64, help="generated tokens (default 64)")
    parser.add_argument("--quire", default=str(ROOT / "build/release/bin/quire"), help="the program to measure")
    parser.add_argument("--llama-bench", help="default: build it with bench/peers/llama_cpp.sh")
    parser.add_argument("--require-prefill", type=float, default=0, help="exit 1 when the ratio is below this")
    parser.add_argument("--require-decode", type=float, default=0, help="exit 1 when the ratio is below this")
    options = parser.parse_args()
    if not options.llama_bench:
        build = subprocess.run([ROOT / "bench/peers/llama_cpp.sh"], stdout=subprocess.PIPE, text=True)
        if build.returncode != 0:
            fail("llama.cpp could not be built")
        options.llama_bench = f"{build.stdout.strip()}/llama-bench"

    pairs, foreign = measure(options)
    if len(pairs) < options.pairs:
        fail(f"only {len(pairs)} of {2 * options.pairs} pairs ran on a steady machine; try again when it is quiet")
    print(f"{Path(options.model).name}, {options.threads} threads, {len(pairs)} pairs, foreign load {foreign:.2f} cores; tok/s")
    below = False
    for phase, digits, required in (("prefill", 0, options.require_prefill), ("decode", 1, options.require_decode)):
        speeds = {side: [getattr(pair, phase)[side] for pair in pairs] for side in SIDES}
        ratios = [getattr(pair, phase)["quire"] / getattr(pair, phase)["llama.cpp"] for pair in pairs]
        tokens = getattr(options, phase)
        columns = "  ".join(f"{side} {spread(speeds[side], digits)}" for side in SIDES)
        print(f"{phase} {tokens}: {columns}  ratio {spread(ratios, 2)}")
        below |= statistics.median(ratios) < required
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
