#!/usr/bin/env python3
"""What is left of one stream's speed when other programs want the cores, and how soon all of it is back.

    bench/neighbours.py MODEL [--quire PROGRAM] [--llama-bench PROGRAM] [--threads N] [--seconds S]

One answer streams from `quire serve` while busy loops of equal priority come and go: none, one, two, none. Speeds are
tokens a second of each stretch; the last one begins a second after the loops ended. With --llama-bench, the same for
its decode of 64 tokens, run anew under each load. As many loops as cores leave a fair half.
"""

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

from serving import ROOT, Server, ids

SETTLE_S = 1.0  # of each stretch, not counted


class Loops:
    """Programs that only compute."""

    def __init__(self, count: int):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


class Stream(threading.Thread):
    """Follows one answer and remembers when each token came."""

    def __init__(self, server: Server):
        super().__init__(daemon=True)
        self.server, self.times = server, []

    def run(self):
        # Short answers after one another, so that the context stays short and the speed comparable.
        while True:
            try:
                with self.server.complete(ids(8), 200, stream=True) as answer:
                    for line in answer:
                        if line.startswith(b"data: {"):
                            self.times.append(time.monotonic())
            except OSError:
                return

    def rate(self, begin: float, end: float) -> float:
        return sum(begin <= at < end for at in self.times) / (end - begin)


def measure_quire(options) -> list[float]:
    rates = []
    with Server(options.quire, options.model, "mixed", "--threads", str(options.threads)) as server:
        stream = Stream(server)
        stream.start()
        time.sleep(2)
        for loops in (0, 1, 2, 0):
            with Loops(loops):
                begin = time.monotonic()
                time.sleep(options.seconds)
                end = time.monotonic()
            rates.append(stream.rate(begin + SETTLE_S, end))
        metrics = urllib.request.urlopen(server.url + "/metrics").read().decode()
        retreats = next(line.split()[-1] for line in metrics.splitlines() if line.startswith("quire_thread_retreats_total"))
        print(f"quire took fewer threads {float(retreats):.0f} times")
    return rates


def measure_llama(options) -> list[float]:
    command = [options.llama_bench, "-m", options.model, "-t", str(options.threads), "-fa", "1", "-p", "0", "-n", "64", "-r", "1",
               "-o", "json"]
    rates = []
    for loops in (0, 1, 2, 0):
        with Loops(loops):
            runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]["avg_ts"] for _ in range(3)]
        rates.append(statistics.median(runs))
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--quire", default=str(ROOT / "build/release/bin/quire"))
    parser.add_argument("--llama-bench")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6)
    options = parser.parse_args()
    sides = {"quire": measure_quire} | ({"llama.cpp": measure_llama} if options.llama_bench else {})
    print("| tok/s | alone | one loop | two loops | after them |\n|---|---|---|---|---|")
    for name, measure in sides.items():
        rates = measure(options)
        shares = [f"{rate:.1f} ({rate / rates[0]:.2f})" for rate in rates]
        print(f"| {name} | " + " | ".join(shares) + " |", flush=True)


if __name__ == "__main__":
    main()
