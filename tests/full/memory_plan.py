#!/usr/bin/env python3
"""Holds the memory a loaded model takes against the plan that `quire inspect` computes from its headers alone.

Final anonymous memory must be within 5 % of the plan at three contexts; its peak may exceed packed weights and KV by
the largest tensor and 64 MB. Loading 1.1 GB takes at most 3 s once the file is in the page cache.

usage: memory_plan.py [MODEL ...]      models other than those of QUIRE_MODELS
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
QUIRE = os.environ.get("QUIRE_BIN", str(ROOT / "build/release/bin/quire"))
MODELS = Path(os.environ.get("QUIRE_MODELS", ""))
NAMES = ("smollm2-135m-instruct-q4_1", "gemma3-270m-q4_k_m", "qwen2.5-coder-0.5b-instruct-q4_k_m",
         "qwen2.5-coder-1.5b-instruct-q4_k_m")
CONTEXTS = (1024, 4096, 8192)
SLACK_BYTES = 64 << 20
LOAD_LIMIT_S = 3.0


def anonymous_bytes(pid: int) -> int:
    try:
        match = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(match[1]) * 1024 if match else 0
    except OSError:
        return 0


class Peak(threading.Thread):
    """Samples a process's anonymous memory until told to stop."""

    def __init__(self, pid: int):
        super().__init__()
        self.pid, self.bytes, self.stopping = pid, 0, threading.Event()

    def run(self):
        while not self.stopping.wait(0.001):
            self.bytes = max(self.bytes, anonymous_bytes(self.pid))


def plan_of(model: Path, context: int) -> tuple[dict, int]:
    out = subprocess.run([QUIRE, "inspect", "--json", "--model", model, "--context", str(context)], check=True,
                         capture_output=True, text=True).stdout
    report = json.loads(out)
    largest = max(line["file_bytes"] / line["tensors"] for line in report["memory_plan"]["weights"])
    return report["memory_plan"], int(largest)


def measure(model: Path, context: int) -> list[str]:
    plan, largest = plan_of(model, context)
    began = time.monotonic()
    process = subprocess.Popen([QUIRE, "run", "--jsonl", "--model", model, "--context", str(context)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    peak = Peak(process.pid)
    peak.start()
    request = {"ids": [7], "max_tokens": 1, "temperature": 0}
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    loaded_s = time.monotonic() - began
    final = anonymous_bytes(process.pid)
    peak.stopping.set()
    peak.join()
    process.stdin.close()
    process.wait()

    problems = [] if "ids" in answer else [f"answered {answer}"]
    total = plan["total_bytes"]
    allowed_peak = plan["packed_weight_bytes"] + plan["kv_bytes"] + largest + SLACK_BYTES
    if abs(final / total - 1) > 0.05:
        problems.append(f"takes {final} bytes, planned {total}")
    if peak.bytes > allowed_peak:
        problems.append(f"peaks at {peak.bytes} bytes, allowed {allowed_peak}")
    if model.stat().st_size > 1_000_000_000 and context == CONTEXTS[-1] and loaded_s > LOAD_LIMIT_S:
        problems.append(f"took {loaded_s:.2f} s to load")
    print(f"{model.name:42} {context:5} tokens: planned {total / 1e6:7.1f} MB, final {final / 1e6:7.1f} MB "
          f"({100 * (final / total - 1):+.1f} %), peak {peak.bytes / 1e6:7.1f} MB, first token after {loaded_s:.2f} s")
    return problems


def main() -> int:
    models = [Path(argument) for argument in sys.argv[1:]]
    if not models:
        models = [MODELS / f"{name}.gguf" for name in NAMES if (MODELS / f"{name}.gguf").is_file()]
    if not models:
        print("no model in QUIRE_MODELS")
        return 77
    passed = failed = 0
    for model in models:
        for context in CONTEXTS:
            problems = measure(model, context)
            passed, failed = passed + (not problems), failed + bool(problems)
            for problem in problems:
                print(f"  FAILED {model.name}, {context} tokens: {problem}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
