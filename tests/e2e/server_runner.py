"""Starts `quire serve` for the end-to-end scripts of the server, and talks to it. Standard library only."""

import http.client
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from quire_runner import QUIRE, TINY, Skipped, environment

LIMIT_S = 120
SMALL = TINY / "llama-mqa-sharded"


def default_model():
    """The default model's file; skips where the folder of models is not there."""
    path = Path(os.environ.get("QUIRE_MODELS", "")) / "smollm2-135m-instruct-q4_1.gguf"
    if not os.environ.get("QUIRE_MODELS") or not path.exists():
        raise Skipped("QUIRE_MODELS names no folder with smollm2-135m-instruct-q4_1.gguf")
    return path


class Server:
    """`with Server("--model", ...) as server:` waits until it is ready, and ends it at the end."""

    def __init__(self, *arguments, port=0, env=None, wait=True):
        self.log = tempfile.NamedTemporaryFile(suffix=".log")
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [QUIRE, "serve", "--port", str(port), "--log-file", self.log.name, *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env or environment())
        self.first_line = self.process.stdout.readline()
        if not self.first_line:
            raise AssertionError(f"quire serve ended: {self.process.communicate()[1]}")
        # What it says later must not fill the pipes.
        for pipe in (self.process.stdout, self.process.stderr):
            threading.Thread(target=pipe.read, daemon=True).start()
        self.url = self.first_line.split()[0]
        self.port = int(self.url.rsplit(":", 1)[1])
        if wait:
            self.wait_ready()

    def wait_ready(self):
        while self.get("/ready")[0] != 200:
            assert self.process.poll() is None, "the server ended while loading"
            assert time.monotonic() - self.began < LIMIT_S, "not ready"
            time.sleep(0.01)
        self.ready_s = time.monotonic() - self.began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)

    def request(self, method, path, body=None, headers=None):
        """(status, headers, body) of one request; `body` may be an object or bytes."""
        connection = self.connect()
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json"} | (headers or {}))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), text

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, **headers):
        status, fields, text = self.request("POST", path, body, headers)
        return status, fields, json.loads(text)

    def open_stream(self, body, path="/v1/completions"):
        """A connection whose answer streams, after its first event."""
        connection = self.connect()
        connection.request("POST", path, json.dumps(body | {"stream": True}).encode(), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.readline()
        return connection, answer

    def metric(self, name):
        """The sum of a metric's series."""
        text = self.get("/metrics")[2]
        values = [line.rsplit(" ", 1)[1] for line in text.splitlines() if line.split("{")[0].split(" ")[0] == name]
        assert values, f"no metric {name}"
        return sum(map(float, values))

    def end(self, signal_number=signal.SIGTERM):
        """Signals, and returns (exit code, seconds it took)."""
        began = time.monotonic()
        self.process.send_signal(signal_number)
        return self.process.wait(LIMIT_S), time.monotonic() - began
