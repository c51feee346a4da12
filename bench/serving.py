#!/usr/bin/env python3
"""Two figures of a running server: what a shared prefix saves, and what a long prompt costs the streams beside it.

    bench/serving.py MODEL [--quire PROGRAM]

Starts `quire serve` on a free port and sends random token ids. First: prompts that share 1,500 tokens and end in 50 of
their own, the time to the first token cold and warm. Then: a 3,000-token prompt that arrives amid 8 streams, the gaps
between their tokens before and during it, and its time to the first token beside the one alone.
"""

import argparse
import json
import random
import socket
import statistics
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RANDOM = random.Random(1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, quire: str, model: str):
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen([quire, "serve", "--model", model, "--port", self.url.rsplit(":")[-1]],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(self.url + "/ready")
                break
            except urllib.error.URLError:
                if self.process.poll() is not None:
                    raise SystemExit("quire serve ended before it was ready")
                time.sleep(0.05)

    def complete(self, prompt: list[int], tokens: int, stream: bool = False):
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": stream}
        request = urllib.request.Request(self.url + "/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        return urllib.request.urlopen(request, timeout=300)

    def timings(self, prompt: list[int], tokens: int) -> dict:
        return json.load(self.complete(prompt, tokens))["timings"]


def ids(count: int) -> list[int]:
    return [RANDOM.randrange(1000, 40000) for _ in range(count)]


def shared_prefix(server: Server) -> None:
    cold, warm = [], []
    for _ in range(4):
        prefix = ids(1500)
        for turn in range(5):
            (cold if turn == 0 else warm).append(server.timings(prefix + ids(50), 2))
    before, after = (statistics.median(t["ttft_ms"] for t in group) for group in (cold, warm))
    print(f"shared prefix of 1,500 tokens: first token after {before:.0f} ms cold, {after:.0f} ms warm "
          f"({before / after:.1f} times less); at most {max(t['prompt_n'] for t in warm)} rows computed warm")


def follow(server: Server, gaps: list) -> None:
    last = None
    for line in server.complete(ids(40), 400, stream=True):
        if line.startswith(b"data: {"):
            now = time.monotonic()
            if last is not None:
                gaps.append((now, now - last))
            last = now


def long_prompt(server: Server) -> None:
    alone = min(server.timings(ids(3000), 1)["ttft_ms"] for _ in range(2))
    gaps = []
    streams = [threading.Thread(target=follow, args=(server, gaps)) for _ in range(8)]
    for stream in streams:
        stream.start()
    time.sleep(4)
    begin = time.monotonic()
    amid = server.timings(ids(3000), 1)["ttft_ms"]
    end = time.monotonic()
    for stream in streams:
        stream.join()
    before = statistics.median(gap for at, gap in gaps if at < begin)
    during = sorted(gap for at, gap in gaps if begin <= at <= end)
    p99 = during[len(during) * 99 // 100]
    print(f"3,000-token prompt amid 8 streams: their gap {1e3 * before:.1f} ms before (median), {1e3 * p99:.1f} ms p99 and "
          f"{1e3 * during[-1]:.1f} ms at most during it ({p99 / before:.1f} times); its first token after {amid:.0f} ms, "
          f"alone {alone:.0f} ms ({amid / alone:.2f} times)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--quire", default=str(ROOT / "build/release/bin/quire"))
    options = parser.parse_args()
    server = Server(options.quire, options.model)
    try:
        shared_prefix(server)
        long_prompt(server)
    finally:
        server.process.terminate()
        server.process.wait()


if __name__ == "__main__":
    main()
