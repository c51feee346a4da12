#!/usr/bin/env python3
"""Honest clients beside hostile ones: the honest hear, byte for byte, what they hear alone, and about as fast.

First each honest request is asked alone. Then for a while hostile clients leave large bodies behind, smuggle, stay silent,
ask for what costs much, flood the queue and reset, while honest ones ask on. At the end the server's memory must not have
grown, nothing may be left over, and its log must hold whole lines.

    tests/full/abuse.py [--seconds N] [--seed N] [--gap-factor F]

QUIRE_BIN may be a build with sanitizers; their reports end the server, which is a failure here.
"""

import argparse
import contextlib
import json
import random
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from quire_runner import Skipped  # noqa: E402
from server_runner import Server, default_model  # noqa: E402
from soak import anonymous_bytes, descriptors, series, wait_idle  # noqa: E402

HONEST = 2
HOSTILE = 6
GROWTH_LIMIT_BYTES = 24 << 20
MIB = 1 << 20


def honest_requests() -> list[tuple[str, dict]]:
    """Whole answers with log-probabilities, and streams: what a byte more or less would show in."""
    requests = []
    for i in range(8):
        body = {"max_tokens": 24 + 8 * i, "temperature": i % 2, "seed": 1000 + i, "n": 1 + i % 3, "logprobs": 2}
        requests.append(("/v1/completions", body | {"prompt": f"Story number {i}: " + "once upon a time " * (3 * i)}))
    for i in range(4):
        messages = [{"role": "user", "content": f"Tell me {i + 2} things about rivers."}]
        requests.append(("/v1/chat/completions", {"messages": messages, "max_tokens": 40, "temperature": 0.8, "seed": i,
                                                  "stop": ["\n\n"]}))
    return requests


def choices_of(server: Server, path: str, body: dict) -> str:
    while True:
        status, _, text = server.request("POST", path, body)
        if status == 200:
            return json.dumps(json.loads(text)["choices"])
        assert status in (429, 503), f"{status}: {text[:300]}"  # told to come again
        time.sleep(0.2)


# A process of its own, so that the hostile clients' interpreter does not slow its clock. argv: port, seconds.
GAP_CLIENT = """
import http.client, json, sys, time
gaps, end, seed = [], time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < end:
    seed += 1
    body = {"prompt": "Count: one, two,", "max_tokens": 60, "temperature": 1, "seed": seed, "ignore_eos": True, "stream": True}
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            time.sleep(0.2)
            continue
        times = []
        while line := answer.readline():
            if line.startswith(b"data: {"):
                times.append(time.monotonic())
        gaps += [after - before for before, after in zip(times, times[1:])]
    except OSError:
        time.sleep(0.2)
json.dump(gaps, sys.stdout)
"""


class GapClient:
    """Seconds between the events of streams, one after the other, for a while."""

    def __init__(self, server: Server, seconds: float):
        self.process = subprocess.Popen([sys.executable, "-c", GAP_CLIENT, str(server.port), str(seconds)],
                                        stdout=subprocess.PIPE, text=True)

    def gaps(self) -> list[float]:
        return json.loads(self.process.communicate()[0] or "[]")


class Tally:
    def __init__(self):
        self.lock = threading.Lock()
        self.counts, self.problems = Counter(), []

    def add(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1

    def problem(self, text: str) -> None:
        with self.lock:
            self.problems.append(text)


class HonestClient(threading.Thread):
    def __init__(self, server, tally, seed, end, alone):
        super().__init__()
        self.server, self.tally, self.random, self.end, self.alone = server, tally, random.Random(seed), end, alone

    def run(self):
        while time.monotonic() < self.end:
            try:
                (path, body), wanted = self.random.choice(self.alone)
                heard = choices_of(self.server, path, body)
                self.tally.add("honest answers")
                if heard != wanted:
                    self.tally.problem(f"a wrong answer to {body}: {heard[:300]} is not {wanted[:300]}")
            except Exception as error:  # it is a finding, and the others go on
                self.tally.problem(f"honest: {type(error).__name__}: {error}")
                time.sleep(0.5)


class HostileClient(threading.Thread):
    def __init__(self, server, tally, seed, end):
        super().__init__()
        self.server, self.tally, self.random, self.end = server, tally, random.Random(seed), end
        self.silent = []

    def run(self):
        kinds = [self.leave_a_body, self.smuggle, self.be_silent, self.stop_short, self.ask_dearly, self.flood, self.reset,
                 self.send_junk, self.nest, self.rotate_logs, self.read_traces]
        while time.monotonic() < self.end:
            kind = self.random.choice(kinds)
            with contextlib.suppress(OSError):
                kind()
            self.tally.add(kind.__name__)
            time.sleep(self.random.expovariate(20))
        for client in self.silent:
            client.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=20)

    def post(self, client, path, body, length=None):
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length or len(body)}\r\n\r\n".encode() + body)

    def path(self) -> str:
        return self.random.choice(["/v1/completions", "/tokenize", "/v1/chat/completions"])

    def leave_a_body(self):
        with self.connect() as client:
            self.post(client, self.path(), json.dumps({"prompt": "a" * self.random.randrange(MIB, 15 * MIB)}).encode())

    def smuggle(self):
        coding = self.random.choice(["xchunked", "gzip, chunked", "identity", "chunked, chunked", ""])
        with self.connect() as client:
            inner = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
            client.sendall(f"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: {coding}\r\n\r\n".encode() + inner)
            client.shutdown(socket.SHUT_WR)
            seen = b""
            while part := client.recv(4096):
                seen += part
            if seen.count(b"HTTP/1.1 ") > 1:
                self.tally.problem(f"smuggled by {coding!r}")

    def be_silent(self):
        self.silent += [self.connect() for _ in range(self.random.randrange(1, 60))]
        while len(self.silent) > 200:
            self.silent.pop(0).close()

    def stop_short(self):
        client = self.connect()
        self.silent.append(client)
        self.post(client, self.path(), b"x" * self.random.randrange(1, 4 * MIB), 16 * MIB)

    def ask_dearly(self):
        body = {"prompt": "Hello", "max_tokens": 2} | self.random.choice([
            {"stop": ["x" * 50_000] * 64, "n": 32},
            {"logit_bias": {str(i): 1 for i in range(self.random.randrange(49_152))}, "n": 8},
            {"logit_bias": {"0" * i + "7": 1 for i in range(2000)}},
            {"stop_token_ids": list(range(40_000)) * 4, "n": 8},
            {"bad_words": ["w" * i for i in range(1, 400)]},
            {"prompt": ["x"] * 1024},
        ])
        self.server.request("POST", "/v1/completions", body)

    def flood(self):
        for _ in range(30):
            client = self.connect()
            self.post(client, "/v1/completions", b'{"prompt":"x","max_tokens":400,"ignore_eos":true,"stream":true}')
            client.close()

    def reset(self):
        with self.connect() as client:
            self.post(client, "/v1/completions", b'{"prompt":"x","max_tokens":400,"n":4,"ignore_eos":true,"stream":true}')
            client.recv(200)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def send_junk(self):
        with self.connect() as client:
            client.sendall(self.random.randbytes(self.random.randrange(1, 5000)) + b"\r\n\r\n")
            client.recv(1000)

    def nest(self):
        self.server.request("POST", self.path(), b"[" * self.random.randrange(10, 100_000))

    def rotate_logs(self):
        self.server.process.send_signal(self.random.choice([signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]))

    def read_traces(self):
        for target in ("/metrics", "/v1/engine", "/v1/requests/none/trace", "/v1/models/" + "x" * 3000):
            self.server.get(target)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def check(server: Server, tally: Tally, descriptors_before: int, samples: list) -> list[str]:
    problems = list(dict.fromkeys(tally.problems))
    wait_idle(server)
    for name in ("quire_requests_running", "quire_requests_waiting", "quire_request_memory_bytes"):
        if (left := series(server, name)) != 0:
            problems.append(f"{name} is {left:.0f} at the end")
    end = time.monotonic() + 30
    while descriptors(server.process.pid) > descriptors_before and time.monotonic() < end:
        time.sleep(0.1)
    if (after := descriptors(server.process.pid)) > descriptors_before:
        problems.append(f"{descriptors_before} open files before, {after} afterwards")
    half = len(samples) // 2
    early, late = statistics.median(samples[half // 2:half]), statistics.median(samples[-half // 2:])
    print(f"anonymous memory: {early / 1e6:.0f} MB in the second quarter, {late / 1e6:.0f} MB in the last, peak {max(samples) / 1e6:.0f} MB")
    if late - early > GROWTH_LIMIT_BYTES:
        problems.append(f"anonymous memory grew from {early / 1e6:.0f} to {late / 1e6:.0f} MB")
    for number, line in enumerate(Path(server.log.name).read_text().splitlines(), 1):
        try:
            json.loads(line)
        except ValueError:
            problems.append(f"line {number} of the log is no JSON: {line[:100]}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--gap-factor", type=float, default=0, help="fail when the p99 gap between tokens is more than so many times that beside honest clients alone; 0: only print")
    options = parser.parse_args()
    try:
        model = default_model()
    except Skipped as why:
        print(why)
        return 77
    print(f"seed {options.seed}, {options.seconds:.0f} s", flush=True)
    # One compute thread leaves a core to the clients; KV for everybody, so that honest prompts stay in the cache.
    with Server("--model", model, "--context", 1024, "--threads", 1, "--max-seqs", 8, "--kv-memory", 192, "--max-queued", 64,
                "--request-memory", 128, "--trace-requests", 50) as server:
        alone = [(request, choices_of(server, *request)) for request in honest_requests()]
        before_abuse = Tally()
        calm_s = min(30.0, options.seconds / 4)
        watch = GapClient(server, calm_s)
        run([HonestClient(server, before_abuse, i, time.monotonic() + calm_s, alone) for i in range(HONEST)], server, [])
        calm = percentile(watch.gaps(), 0.99)
        descriptors_before = descriptors(server.process.pid)
        tally, samples = Tally(), []
        end = time.monotonic() + options.seconds
        clients = [HonestClient(server, tally, options.seed + i, end, alone) for i in range(HONEST)]
        clients += [HostileClient(server, tally, options.seed - 1 - i, end) for i in range(HOSTILE)]
        watch = GapClient(server, options.seconds)
        run(clients, server, samples)
        abused = percentile(watch.gaps(), 0.99)
        if server.process.poll() is not None:
            print(f"the server ended with {server.process.returncode}")
            return 1
        problems = before_abuse.problems + check(server, tally, descriptors_before, samples)
        print("seen: " + ", ".join(f"{name} {count}" for name, count in sorted(tally.counts.items())))
        print(f"p99 gap between tokens: {calm * 1e3:.1f} ms beside honest clients, {abused * 1e3:.1f} ms beside hostile ones")
        if options.gap_factor > 0 and abused > options.gap_factor * calm:
            problems.append(f"the p99 gap is {abused / calm:.1f} times that of calm")
        code, _ = server.end()
        if code != 0:
            problems.append(f"SIGTERM ended it with {code}")
    for problem in problems[:20]:
        print(f"FAILED: {problem}")
    print(f"{len(problems)} problems")
    return 1 if problems else 0


def run(clients: list, server: Server, samples: list) -> None:
    for client in clients:
        client.start()
    while any(client.is_alive() for client in clients) and server.process.poll() is None:
        samples.append(anonymous_bytes(server.process.pid))
        time.sleep(0.5)
    for client in clients:
        client.join()


if __name__ == "__main__":
    sys.exit(main())
