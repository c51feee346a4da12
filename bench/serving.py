#!/usr/bin/env python3
"""Two figures of a running server: what a shared prefix saves, and what a long prompt costs the streams beside it.

    bench/serving.py MODEL [--quire PROGRAM]

Starts `quire serve` on a free port and sends random token ids. First: prompts that share 1,500 tokens and end in 50 of
their own, the time to the first token cold, warm, and warm while the request that computed the prefix still streams.
Then, under each of the policies mixed and continuous (prompts first): a 3,000-token prompt that arrives amid 8 streams,
the gaps between their tokens before and during it, and its time to the first token beside the one alone.
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
    def __init__(self, quire: str, model: str, policy: str, *arguments: str):
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            [quire, "serve", "--model", model, "--policy", policy, "--port", self.url.rsplit(":")[-1], *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(self.url + "/ready")
                break
            except urllib.error.URLError:
                if self.process.poll() is not None:
                    raise SystemExit("quire serve ended before it was ready")
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def complete(self, prompt: list[int], tokens: int, stream: bool = False, **more):
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": stream} | more
        request = urllib.request.Request(self.url + "/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        return urllib.request.urlopen(request, timeout=300)

    def timings(self, prompt: list[int], tokens: int) -> dict:
        with self.complete(prompt, tokens) as answer:
            return json.load(answer)["timings"]


def ids(count: int) -> list[int]:
    return [RANDOM.randrange(1000, 40000) for _ in range(count)]


def shared_prefix(server: Server) -> None:
    cold, warm, beside = [], [], []
    for _ in range(4):
        prefix = ids(1500)
        for turn in range(5):
            (cold if turn == 0 else warm).append(server.timings(prefix + ids(50), 2))
        prefix = ids(1500)
        with server.complete(prefix + ids(50), 1500, stream=True) as first:
            first.readline()
            for _ in range(4):
                beside.append(server.timings(prefix + ids(50), 2))
            assert b"[DONE]" not in first.peek(), "the first request ended too early"
    before = statistics.median(t["ttft_ms"] for t in cold)
    print(f"shared prefix of 1,500 tokens: first token after {before:.0f} ms cold")
    for name, group in (("warm", warm), ("while the first request streams", beside)):
        after = statistics.median(t["ttft_ms"] for t in group)
        print(f"  {name}: {after:.0f} ms ({before / after:.1f} times less), at most "
              f"{max(t['prompt_n'] for t in group)} rows computed")


def follow(server: Server, gaps: list) -> None:
    last = None
    # Log-probabilities, so that a token which is half a character sends an event of its own as well.
    for line in server.complete(ids(40), 400, stream=True, logprobs=0):
        if line.startswith(b"data: {"):
            now = time.monotonic()
            if last is not None:
                gaps.append((now, now - last))
            last = now


def long_prompt(server: Server, policy: str) -> None:
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
    during = sorted(gap for at, gap in gaps if begin <= at and at - gap <= end)
    p99 = during[len(during) * 99 // 100]
    print(f"{policy}: a 3,000-token prompt amid 8 streams: their gap {1e3 * before:.1f} ms before (median), {1e3 * p99:.1f} ms "
          f"p99 and {1e3 * during[-1]:.1f} ms at most during it ({p99 / before:.1f} times); its first token after "
          f"{amid:.0f} ms, alone {alone:.0f} ms ({amid / alone:.2f} times)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--quire", default=str(ROOT / "build/release/bin/quire"))
    options = parser.parse_args()
    with Server(options.quire, options.model, "mixed") as server:
        shared_prefix(server)
    for policy in ("mixed", "continuous"):
        with Server(options.quire, options.model, policy) as server:
            long_prompt(server, policy)


if __name__ == "__main__":
    main()
