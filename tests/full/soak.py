#!/usr/bin/env python3
"""Ten minutes of a server's life: clients that ask, stream, leave, are killed and send junk, all at once.

Afterwards nothing may be left over - no page, request or socket - memory must have stopped growing, and the server's
counters must add up to what its clients saw.

    tests/full/soak.py [--seconds N] [--seed N]
"""

import argparse
import json
import os
import random
import re
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from quire_runner import Skipped  # noqa: E402
from server_runner import Server, default_model  # noqa: E402

CLIENTS = 14
GROWTH_LIMIT_BYTES = 4 << 20  # of anonymous memory between the second and the last quarter
IDLE_LIMIT_S = 30
WORDS = "time river stone light winter market garden letter engine harbour".split()

# A client that is killed while it reads: argv holds port and body.
KILLED_CLIENT = """
import socket, sys
body = sys.argv[2].encode()
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"POST /v1/completions HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Type: application/json\\r\\nContent-Length: "
          + str(len(body)).encode() + b"\\r\\n\\r\\n" + body)
data = b""
while data.count(b"data: ") < 3:
    data += s.recv(4096) or sys.exit(b" 429 " not in data)
print("streams", flush=True)
while s.recv(4096):
    pass
"""


class Tally:
    """What the clients saw."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts = Counter()
        self.problems = []

    def add(self, what: str, amount: int = 1) -> None:
        with self.lock:
            self.counts[what] += amount

    def problem(self, text: str) -> None:
        with self.lock:
            self.problems.append(text)


class Client(threading.Thread):
    def __init__(self, server: Server, tally: Tally, seed: int, end: float):
        super().__init__()
        self.server, self.tally, self.random, self.end = server, tally, random.Random(seed), end

    def run(self):
        actions = [self.ask] * 8 + [self.stream] * 6 + [self.leave] * 4 + [self.send_junk] * 2 + [self.be_killed]
        while time.monotonic() < self.end:
            try:
                self.random.choice(actions)()
            except Exception as error:  # a client that fails is a finding, and the others go on
                self.tally.problem(f"{type(error).__name__}: {error}")
            time.sleep(self.random.expovariate(10))

    def body(self, **more) -> dict:
        # A third of the prompts share a long beginning, so that pages are shared, evicted and found again.
        start = "Once upon a time in the old town by the sea. " * 12 if self.random.random() < 0.33 else ""
        text = " ".join(self.random.choices(WORDS, k=self.random.randrange(2, 150)))
        return {"prompt": start + text, "max_tokens": self.random.randrange(1, 60), "temperature": self.random.choice([0, 1]),
                "n": self.random.choice([1, 1, 1, 2])} | more

    def finished(self, usage: dict) -> None:
        self.tally.add("finished")
        self.tally.add("prompt_tokens", usage["prompt_tokens"])
        self.tally.add("completion_tokens", usage["completion_tokens"])

    def ask(self):
        status, _, answer = self.server.post("/v1/completions", self.body())
        if status == 429:
            return self.tally.add("refused")
        assert status == 200, answer
        self.finished(answer["usage"])

    def open(self, body: dict):
        """A connection whose answer streams; None when the queue was full."""
        connection = self.server.connect()
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status == 429:
            connection.close()
            self.tally.add("refused")
            return None
        assert answer.status == 200, answer.read()
        return connection, answer

    def stream(self):
        opened = self.open(self.body(stream=True, stream_options={"include_usage": True}))
        if opened is None:
            return
        connection, answer = opened
        events = [line[6:] for line in answer.read().decode().split("\n\n") if line.startswith("data: ")]
        connection.close()
        assert events[-1] == "[DONE]", events[-1]
        self.finished(json.loads(events[-2])["usage"])

    def leave(self):
        opened = self.open(self.body(stream=True, max_tokens=600, ignore_eos=True, n=1))
        if opened is None:
            return
        connection, answer = opened
        for _ in range(self.random.randrange(1, 12)):
            answer.readline()
        if self.random.random() < 0.5:  # a reset in place of a goodbye
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        answer.close()
        connection.close()
        self.tally.add("left")

    def be_killed(self):
        body = json.dumps(self.body(stream=True, max_tokens=600, ignore_eos=True, n=1))
        process = subprocess.Popen([sys.executable, "-c", KILLED_CLIENT, str(self.server.port), body], text=True,
                                   stdout=subprocess.PIPE)
        streams = process.stdout.readline() != ""
        process.kill()
        code = process.wait()
        process.stdout.close()
        self.tally.add("left" if streams else "refused")
        assert streams or code == 0, f"the client that was to be killed ended with {code}"

    def send_junk(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as junk:
            junk.sendall(self.random.choice([b"\x16\x03\x01\x02\x00junk\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                                             b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{\"prompt\""]))
            junk.shutdown(socket.SHUT_WR)
            while junk.recv(4096):
                pass
        self.tally.add("junk")


def anonymous_bytes(pid: int) -> int:
    return int(re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def series(server: Server, name: str, label: str = "") -> float:
    """The sum of a metric's series whose labels hold `label`; 0 for one that has none yet."""
    text = server.get("/metrics")[2]
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if re.match(re.escape(name) + r"[{ ]", line) and label in line)


def wait_idle(server: Server) -> None:
    end = time.monotonic() + IDLE_LIMIT_S
    while time.monotonic() < end:
        if series(server, "quire_requests_running") + series(server, "quire_requests_waiting") == 0:
            return
        time.sleep(0.1)


def check(server: Server, tally: Tally, before: int, samples: list) -> list[str]:
    problems = list(dict.fromkeys(tally.problems))
    seen = tally.counts

    def equal(what: str, got: float, wanted: float) -> None:
        if got != wanted:
            problems.append(f"{what}: the server counts {got:.0f}, its clients {wanted:.0f}")

    equal("requests running", series(server, "quire_requests_running"), 0)
    equal("requests waiting", series(server, "quire_requests_waiting"), 0)
    equal("KV slots in use", series(server, "quire_kv_slots", 'state="used"'), 0)
    success = sum(series(server, "quire_requests_total", f'reason="{reason}"') for reason in ("stop", "length"))
    cancelled = series(server, "quire_requests_total", 'reason="cancelled"')
    equal("requests ended", series(server, "quire_requests_total"), seen["finished"] + seen["left"])
    equal("requests finished", success, seen["finished"])
    equal("requests cancelled", cancelled, seen["left"])
    equal("requests refused", series(server, "quire_requests_refused_total"), seen["refused"])
    equal("prompt tokens of finished requests", series(server, "quire_request_prompt_tokens_sum"), seen["prompt_tokens"])
    equal("generated tokens of finished requests", series(server, "quire_request_generation_tokens_sum"),
          seen["completion_tokens"])
    # The connection that asks for the metrics has gone by now, others may be closing.
    end = time.monotonic() + IDLE_LIMIT_S
    while descriptors(server.process.pid) > before and time.monotonic() < end:
        time.sleep(0.1)
    if (after := descriptors(server.process.pid)) > before:
        problems.append(f"{before} open files before, {after} afterwards")
    quarter = len(samples) // 4
    early, late = statistics.median(samples[quarter:2 * quarter]), statistics.median(samples[-quarter:])
    print(f"anonymous memory: {early / 1e6:.1f} MB in the second quarter, {late / 1e6:.1f} MB in the last")
    if late - early > GROWTH_LIMIT_BYTES:
        problems.append(f"anonymous memory grew from {early / 1e6:.1f} to {late / 1e6:.1f} MB")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description="A server under mixed load for a while; then nothing may be left over.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    try:
        model = default_model()
    except Skipped as why:
        print(why)
        return 77
    print(f"seed {options.seed}, {options.seconds:.0f} s", flush=True)
    # A small pool and queue: pages are evicted, requests preempted and refused.
    with Server("--model", model, "--context", 1024, "--max-seqs", 8, "--max-queued", 6, "--kv-memory", 36,
                "--trace-requests", 50) as server:
        before = descriptors(server.process.pid)
        tally = Tally()
        end = time.monotonic() + options.seconds
        clients = [Client(server, tally, options.seed + i, end) for i in range(CLIENTS)]
        for client in clients:
            client.start()
        samples = []
        while time.monotonic() < end and server.process.poll() is None:
            samples.append(anonymous_bytes(server.process.pid))
            time.sleep(min(1.0, options.seconds / 100))
        for client in clients:
            client.join()
        if server.process.poll() is not None:
            print(f"the server ended with {server.process.returncode}")
            return 1
        wait_idle(server)
        print("clients saw: " + ", ".join(f"{name} {count}" for name, count in sorted(tally.counts.items())))
        print(f"preemptions {series(server, 'quire_preemptions_total'):.0f}, evictions "
              f"{series(server, 'quire_prefix_cache_evictions_total'):.0f}, prefix hits "
              f"{series(server, 'quire_prefix_cache_hit_tokens_total'):.0f} tokens")
        problems = check(server, tally, before, samples)
        code, _ = server.end()
        if code != 0:
            problems.append(f"SIGTERM ended it with {code}")
    for problem in problems:
        print(f"FAILED: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
