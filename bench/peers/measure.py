"""Runs quire and its peers side by side on one model file; table.py says what to run and prints it.

A machine that is shared drifts, so only ratios of runs made side by side count. Each round runs every side once, in
alternating order, with nothing else in between; a copy of memory before and after it probes the bandwidth, and a round
whose two probes differ by more than 15 % is thrown away and run again.

A figure is one of
  prefill:N   tokens a second of a prompt of N random tokens,
  decode:N    tokens a second of one answer after N tokens (0: an empty context, which is one token for quire),
  batch:N     tokens a second of N answers at a time, each after 128 random tokens of its own; the prompts do not count.
Every side loads the model and does a first run of the kind before its clock starts.
"""

import dataclasses
import json
import os
import random
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
BATCH_PROMPT = 128
PROBE_BYTES = 256 << 20
MAX_PROBE_CHANGE = 0.15
LIMIT_S = 900  # of one run of one side

Figures = dict[str, float]


class RunError(Exception):
    """A side could not be measured; the text says why."""


@dataclass(frozen=True)
class Setup:
    threads: int
    tokens: int  # generated, that decode and batch count
    quire: str
    baseline: str = ""  # another build of quire
    llama: str = ""  # folders of programs
    ik: str = ""
    openvino: str = ""  # a Python


def sizes(figures: list[str], kind: str) -> list[int]:
    return [int(figure.split(":")[1]) for figure in figures if figure.startswith(kind + ":")]


def execute(command: list, stdin: str = "") -> subprocess.CompletedProcess:
    """Runs it in a folder of its own, because some peers leave log files where they run."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = subprocess.run([str(word) for word in command], input=stdin, capture_output=True, text=True,
                                 errors="replace", cwd=folder, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise RunError(f"{command[0]} took more than {LIMIT_S} s") from None
    if run.returncode != 0:
        said = (run.stderr.strip() or run.stdout.strip())[-500:]
        raise RunError(f"{' '.join(map(str, command))} failed ({run.returncode}): {said}")
    return run


def random_ids(count: int) -> list[int]:
    # Ids below 30,000 exist in each vocabulary and are, at random, no prefix of an earlier request.
    return [random.randrange(1000, 30000) for _ in range(count)]


# --- quire ----------------------------------------------------------------------------------------------------


def run_quire(model: Path, figures: list[str], setup: Setup) -> Figures:
    result = {}
    if single := [figure for figure in figures if not figure.startswith("batch:")]:
        result |= quire_single(model, single, setup)
    if batches := sizes(figures, "batch"):
        result |= quire_batches(model, batches, setup)
    return result


def run_baseline(model: Path, figures: list[str], setup: Setup) -> Figures:
    return run_quire(model, figures, dataclasses.replace(setup, quire=setup.baseline))


def quire_single(model: Path, figures: list[str], setup: Setup) -> Figures:
    """One process that answers a warm-up and a request for each figure."""
    def request(prompt_tokens: int, max_tokens: int) -> dict:
        return {"ids": random_ids(prompt_tokens), "max_tokens": max_tokens, "ignore_eos": True, "temperature": 0}

    prefills, depths = sizes(figures, "prefill"), sizes(figures, "decode")
    requests = [request(max(prefills + [128]), 8)]
    requests += [request(n, 1) for n in prefills] + [request(max(1, n), setup.tokens + 1) for n in depths]
    context = max(prefills + depths + [128]) + setup.tokens + 16
    command = [setup.quire, "run", "--model", model, "--threads", setup.threads, "--jsonl", "--context", context]
    lines = execute(command, "".join(json.dumps(r) + "\n" for r in requests)).stdout.splitlines()
    answers = [json.loads(line) for line in lines]
    errors = [answer["error"] for answer in answers if "error" in answer]
    if errors or len(answers) != len(requests):
        raise RunError(f"quire answered {len(answers)} of {len(requests)} requests; errors: {errors}")
    result = {}
    for figure, answer in zip([f"prefill:{n}" for n in prefills] + [f"decode:{n}" for n in depths], answers[1:]):
        kind, size = figure.split(":")
        timings = answer["timings"]
        wanted = (max(1, int(size)), 1 if kind == "prefill" else setup.tokens + 1)
        if "prompt_n" not in timings:  # a build before these names
            timings = {"prompt_n": timings["prompt_tokens"] - timings["cached_tokens"], "prompt_ms": timings["prefill_ms"],
                       "predicted_n": timings["generated_tokens"], "predicted_ms": timings["decode_ms"]}
        if (timings["prompt_n"], timings["predicted_n"]) != wanted:
            raise RunError(f"{figure}: wanted {wanted} tokens, got {timings}")
        # predicted_ms runs from the first generated token to the last.
        tokens, ms = (int(size), timings["prompt_ms"]) if kind == "prefill" else (setup.tokens, timings["predicted_ms"])
        result[figure] = 1e3 * tokens / ms
    return result


def quire_batches(model: Path, batches: list[int], setup: Setup) -> Figures:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Prompts first, so that all answers run together for most of their length, as in the peers' benchmarks.
    command = [setup.quire, "serve", "--model", model, "--threads", setup.threads, "--port", port, "--log-file", "none",
               "--policy", "continuous", "--max-seqs", max(batches), "--context", BATCH_PROMPT + setup.tokens + 16]
    with tempfile.TemporaryFile() as said:
        server = subprocess.Popen([str(word) for word in command], stdout=said, stderr=said)
        try:
            if not wait_ready(server, port):
                said.seek(0)
                raise RunError(f"quire serve was not ready: {said.read().decode(errors='replace').strip()[-500:]}")
            stream_batch(port, max(batches), 8)
            return {f"batch:{n}": batch_speed(port, stream_batch(port, n, setup.tokens), n, setup.tokens) for n in batches}
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def wait_ready(server: subprocess.Popen, port: int) -> bool:
    limit = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < limit:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=10).close()
            return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    return False


def stream_batch(port: int, count: int, tokens: int) -> str:
    """Streams `count` answers at once, to their ends; the id of one of them."""
    received: dict[socket.socket, bytearray] = {}
    with selectors.DefaultSelector() as selector:
        for _ in range(count):
            body = json.dumps({"prompt": random_ids(BATCH_PROMPT), "max_tokens": tokens, "temperature": 0,
                               "ignore_eos": True, "stream": True})
            client = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
            client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                           f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            received[client] = bytearray()
            selector.register(client, selectors.EVENT_READ)
        while selector.get_map():
            if not (ready := selector.select(LIMIT_S)):
                raise RunError(f"quire serve sent nothing for {LIMIT_S} s")
            for key, _ in ready:
                if part := key.fileobj.recv(1 << 16):
                    received[key.fileobj] += part
                else:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
    for answer in received.values():
        if b"data: [DONE]" not in answer:
            raise RunError(f"quire serve did not end an answer: {bytes(answer[-300:])!r}")
    return re.search(rb'"id":"([^"]+)"', answer)[1].decode()


def batch_speed(port: int, request: str, count: int, tokens: int) -> float:
    """Tokens a second of the steps that generated one token for each of `count` answers and nothing else.

    By the server's timeline, because a client cannot count: tokens without text, as control tokens, send no event.
    """
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/requests/{request}/trace", timeout=60) as answer:
        events = json.load(answer)["events"]
    starts = [event["ms"] for event in events
              if event["event"] == "step" and event["step_rows"] == event["step_sequences"] == count]
    if len(starts) <= tokens // 2:
        raise RunError(f"{count} answers ran together for only {len(starts)} of {tokens} steps")
    return 1e3 * count * (len(starts) - 1) / (starts[-1] - starts[0])


# --- the peers ------------------------------------------------------------------------------------------------


def run_llama(model: Path, figures: list[str], setup: Setup) -> Figures:
    depths = ",".join(map(str, sizes(figures, "decode"))) or "0"
    return run_llama_bench(setup.llama, model, figures, setup, ["-d", depths], [])


def run_ik(model: Path, figures: list[str], setup: Setup, repack: bool) -> Figures:
    # Its llama-bench has no -d; -gp times the generation after a prompt alone.
    bench = ["-rtr", int(repack)]
    for depth in sizes(figures, "decode"):
        if depth:
            bench += ["-gp", f"{depth},{setup.tokens}"]
    return run_llama_bench(setup.ik, model, figures, setup, bench, ["-rtr"] if repack else [])


def run_llama_bench(programs: str, model: Path, figures: list[str], setup: Setup, bench: list, batched: list) -> Figures:
    """What llama.cpp and its fork share; `bench` and `batched` are the arguments that differ."""
    prefills, depths, batches = (sizes(figures, kind) for kind in ("prefill", "decode", "batch"))
    result = {}
    if prefills or depths:
        # The first repetition warms up: ik's own warm-up is one token. Deep contexts take long and are warm by themselves.
        command = [f"{programs}/llama-bench", "-m", model, "-t", setup.threads, "-fa", 1, "-r", 1 if any(depths) else 2,
                   "-p", ",".join(map(str, prefills)) or 0, "-n", setup.tokens if depths else 0, "-o", "json"]
        for test in json.loads(execute(command + bench).stdout):
            speed, prompt, depth = test["samples_ts"][-1], test["n_prompt"], test.get("n_depth", 0)
            if test["n_gen"]:
                result[f"decode:{depth or prompt}"] = speed
            elif not depth:
                result[f"prefill:{prompt}"] = speed
    if batches:
        context = max(batches) * 256  # each sequence gets its part of it in units of 256
        command = [f"{programs}/llama-batched-bench", "-m", model, "-t", setup.threads, "-fa", "on", "-c", context,
                   "-npp", BATCH_PROMPT, "-ntg", setup.tokens, "-npl", ",".join(map(str, batches))]
        run = execute(command + batched)
        for line in (run.stdout + run.stderr).splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 10 and cells[2].isdigit():
                result[f"batch:{cells[2]}"] = float(cells[7])  # S_TG t/s
    return checked("llama-bench", result, figures)


def run_openvino(model: Path, figures: list[str], setup: Setup) -> Figures:
    command = [setup.openvino, HERE / "openvino_bench.py", model, "--threads", setup.threads, "--tokens", setup.tokens]
    return checked("OpenVINO", json.loads(execute(command + figures).stdout.splitlines()[-1]), figures)


def checked(side: str, result: Figures, figures: list[str]) -> Figures:
    if missing := [figure for figure in figures if not result.get(figure)]:
        raise RunError(f"{side} did not give {', '.join(missing)}")
    return {figure: result[figure] for figure in figures}


# --- rounds ---------------------------------------------------------------------------------------------------

Runner = Callable[[Path, list[str], Setup], Figures]
# Side -> its ways of running. Of several the better counts.
SIDES: dict[str, dict[str, Runner]] = {
    "quire": {"quire": run_quire},
    "baseline": {"baseline": run_baseline},
    "llama.cpp": {"llama.cpp": run_llama},
    "ik": {"ik -rtr 0": lambda *arguments: run_ik(*arguments, repack=False),
           "ik -rtr 1": lambda *arguments: run_ik(*arguments, repack=True)},
    "OpenVINO": {"OpenVINO": run_openvino},
}


@dataclass
class Session:
    """The rounds of one model and its figures."""
    model: str
    figures: list[str]
    rounds: list[dict[str, Figures]] = field(default_factory=list)  # way of running -> figures
    dropped: int = 0
    failures: dict[str, str] = field(default_factory=dict)  # way of running -> why it was left out from then on
    foreign_cores: float = 0  # load of other programs


def probe() -> float:
    """GB/s of the best of eight copies of 256 MiB by one core."""
    source, target = bytearray(b"\1") * PROBE_BYTES, bytearray(b"\1") * PROBE_BYTES
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


def measure(model: Path, figures: list[str], sides: list[str], rounds: int, setup: Setup) -> Session:
    """Runs until `rounds` are kept, but at most twice as many; reports each on standard error."""
    session = Session(model.name, figures)
    ways = {way: runner for side in sides for way, runner in SIDES[side].items()}
    print(f"{model.name}: {' '.join(figures)}", file=sys.stderr, flush=True)
    began, busy, own = time.monotonic(), busy_seconds(), own_seconds()
    while len(session.rounds) < rounds and len(session.rounds) + session.dropped < 2 * rounds:
        number = len(session.rounds) + session.dropped
        before, results = probe(), {}
        for way in list(ways) if number % 2 == 0 else list(ways)[::-1]:
            if way in session.failures:
                continue
            try:
                results[way] = ways[way](model.resolve(), figures, setup)
            except RunError as error:
                session.failures[way] = str(error)
                print(f"  {way} is left out: {error}", file=sys.stderr, flush=True)
        after = probe()
        kept = abs(after - before) <= MAX_PROBE_CHANGE * max(after, before)
        if kept:
            session.rounds.append(results)
        else:
            session.dropped += 1
        said = "; ".join(f"{way} " + " ".join(f"{value:.1f}" for value in got.values()) for way, got in results.items())
        remark = "" if kept else ", dropped: the machine changed"
        print(f"  round {number + 1}: {said}; probes {before:.1f} {after:.1f} GB/s{remark}", file=sys.stderr, flush=True)
        if not results:
            break
    foreign = (busy_seconds() - busy) - (own_seconds() - own)
    session.foreign_cores = max(0.0, foreign / (time.monotonic() - began))
    return session
