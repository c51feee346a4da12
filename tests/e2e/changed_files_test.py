#!/usr/bin/env python3
"""Files that change under a running program, and pack caches that cannot be used: an error or a note with the file's name,
and never a signal or another answer. On tiny checkpoints; loading is truncated on the default model."""

import json
import os
import random
import resource
import shutil
import tempfile
import time
from pathlib import Path

from quire_runner import TINY, equal, main, quire, succeed
from server_runner import SMALL, Server, default_model

PROMPT = {"prompt": "The capital of France is", "max_tokens": 8, "temperature": 0, "ignore_eos": True}
GGUF = TINY.parent / "tiny-gguf/qwen2.gguf"
TRUNCATED = "was truncated while it was in use"


class Folder:
    """A folder of its own with a copy of a model."""

    def __init__(self, model=GGUF):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.model = self.path / model.name
        if model.is_dir():
            shutil.copytree(model, self.model)
        else:
            shutil.copy(model, self.model)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


# --- a model file that changes ----------------------------------------------------------------------------------

def served_then(change, says):
    """Requests after the change get 500 with the file's name, and the server lives."""
    with Folder() as folder, Server("--model", folder.model) as server:
        equal(server.post("/v1/completions", PROMPT)[0], 200)
        change(folder.model)
        for body in (PROMPT, PROMPT | {"prompt": "Another one"}, PROMPT | {"n": 2}):
            status, _, answer = server.post("/v1/completions", body)
            equal(status, 500, answer)
            assert str(folder.model) in answer["error"]["message"] and says in answer["error"]["message"], answer
        equal(server.get("/health")[0], 200)
        equal(server.end()[0], 0)


def test_truncated_while_served():
    size = GGUF.stat().st_size
    for left in (0, 1, size // 2, size - 1):
        served_then(lambda path: os.truncate(path, left), TRUNCATED)


def test_overwritten_while_served():
    def overwrite(path):
        time.sleep(0.01)
        shutil.copyfile(TINY.parent / "tiny-gguf/llama-gqa-llama3rope.gguf", path)
    served_then(overwrite, "while it was in use")


def test_replaced_or_removed_while_served():
    with Folder() as folder, Server("--model", folder.model) as server:
        before = server.post("/v1/completions", PROMPT)[2]["choices"]
        other = folder.path / "other"
        other.write_bytes(b"another file")
        other.rename(folder.model)
        equal(server.post("/v1/completions", PROMPT)[2]["choices"], before)
        folder.model.unlink()
        equal(server.post("/v1/completions", PROMPT)[2]["choices"], before)


def stream_that_is_cut(folder, server, body):
    """(text, errors) of a stream, after whose first event the model is truncated."""
    connection, answer = server.open_stream(body)
    os.truncate(folder.model, 0)
    lines = [line.removeprefix("data: ") for line in answer.read().decode().splitlines() if line.startswith("data: ")]
    connection.close()
    events = [json.loads(line) for line in lines if line != "[DONE]"]
    text = "".join(event["choices"][0]["text"] for event in events if event.get("choices"))
    return text, [event["error"]["message"] for event in events if "error" in event]


def test_truncated_within_an_answer():
    """The text ends with an error, and what came before it is the right text."""
    body = PROMPT | {"max_tokens": 400}
    for _ in range(20):
        with Folder() as folder, Server("--model", folder.model, "--prefix-cache", "off") as server:
            whole = server.post("/v1/completions", body)[2]["choices"][0]["text"]
            text, errors = stream_that_is_cut(folder, server, body)
            assert text in whole, (text, whole)
            equal(server.post("/v1/completions", PROMPT)[0], 500)
            if errors:
                assert len(errors) == 1 and str(folder.model) in errors[0] and TRUNCATED in errors[0], errors
                return
    raise AssertionError("each of 20 answers was at its end before the file was truncated")


def test_truncated_shard():
    """Of several files the one at fault is named, whether or not it holds what a step reads."""
    for shard in sorted(SMALL.glob("model-*.safetensors")):
        with Folder(SMALL) as folder, Server("--model", folder.model) as server:
            equal(server.post("/v1/completions", PROMPT)[0], 200)
            os.truncate(folder.model / shard.name, 10)
            status, _, answer = server.post("/v1/completions", PROMPT)
            equal(status, 500, answer)
            assert str(folder.model / shard.name) in answer["error"]["message"], answer


def test_truncated_while_loading():
    """At any moment of any command: success, or an error that names the file; never a signal, and no output."""
    model = default_model()
    refused = 0
    for command, *arguments in [("inspect",), ("run", "--max-tokens", 1, "Hello"), ("score", "Hello there"),
                                ("eval", "--tokens", 512), ("quantize",)] * 4:
        with Folder(model) as folder:
            out = folder.path / "out.gguf"
            if command == "quantize":
                arguments = [folder.model, out, "--scheme", "rtn", "--type", "q8_0", "--proof-tokens", 0]
            else:
                arguments = ["--model", folder.model, *arguments]
            delay = random.uniform(0, 0.06 if command == "inspect" else 0.25)
            truncating = os.fork()
            if truncating == 0:
                time.sleep(delay)
                os.truncate(folder.model, random.choice((0, 1 << 20, 50_000_001)))
                os._exit(0)
            outcome = quire(command, *arguments)
            os.waitpid(truncating, 0)
            assert outcome.code in (0, 2), outcome
            if outcome.code == 2:
                refused += 1
                assert str(folder.model) in outcome.err, outcome
                assert not out.exists(), "a model of zeros was written"
    assert refused > 0, "no command was truncated in time"


def is_ready(server):
    try:
        return server.get("/ready")[0] == 200
    except OSError:  # it has ended, or is about to
        return False


def test_truncated_while_the_server_loads():
    model = default_model()
    for delay in (0.0, 0.01, 0.03, 0.05):
        with Folder(model) as folder, Server("--model", folder.model, wait=False) as server:
            time.sleep(delay)
            os.truncate(folder.model, 1 << 20)
            while server.process.poll() is None and not is_ready(server):
                assert time.monotonic() - server.began < 60, "neither ready nor ended"
                time.sleep(0.01)
            if server.process.poll() is None:
                status, _, answer = server.post("/v1/completions", PROMPT)
                equal(status, 500, answer)
                assert str(folder.model) in answer["error"]["message"], answer
            else:
                equal(server.process.returncode, 2)


# --- the pack cache ---------------------------------------------------------------------------------------------

def answers(model, *arguments, **options):
    outcome = succeed("run", "--model", model, "--max-tokens", 12, "--temperature", 0, *arguments, "Hello", **options)
    return outcome.out, outcome.err


def test_pack_cache_that_is_damaged():
    with Folder() as folder:
        cache = folder.path / "cache"
        want = answers(folder.model)[0]
        out, err = answers(folder.model, "--pack-cache", cache)
        assert out == want and "packed weights kept in" in err, err
        (packed,) = cache.iterdir()
        whole = packed.read_bytes()
        for at in (3, 5000, len(whole) // 2, len(whole) - 1):
            damaged = bytearray(whole)
            damaged[at] ^= 16
            packed.write_bytes(damaged)
            out, err = answers(folder.model, "--pack-cache", cache)
            equal(out, want)
            assert f"{packed}: is damaged" in err and "packed weights kept in" in err, err
            equal(packed.read_bytes(), whole)
        out, err = answers(folder.model, "--pack-cache", cache)
        assert out == want and "weights copied from" in err, err


def test_pack_cache_that_cannot_be():
    with Folder() as folder:
        want = answers(folder.model)[0]
        in_the_way = folder.path / "file"
        in_the_way.write_text("")
        for cache in (in_the_way, in_the_way / "below", Path("/proc/quire")):
            out, err = answers(folder.model, "--pack-cache", cache)
            equal(out, want)
            assert str(cache) in err and "going on without a pack cache" in err, err
        made = folder.path / "not/yet/there"
        assert "packed weights kept in" in answers(folder.model, "--pack-cache", made)[1]

        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        full = folder.path / "full"
        out, err = answers(folder.model, "--pack-cache", full, preexec_fn=small_files)
        equal(out, want)
        assert str(full) in err and "going on without a pack cache" in err, err
        equal(list(full.iterdir()), [])


def test_server_without_a_usable_pack_cache():
    with Folder() as folder, Server("--model", folder.model, "--pack-cache", "/proc/quire") as server:
        equal(server.post("/v1/completions", PROMPT)[0], 200)
        equal(server.end()[0], 0)


def test_parts_of_killed_programs():
    with Folder() as folder:
        cache = folder.path / "cache"
        cache.mkdir()
        for name in ("qwen2.packed.part1", "other.packed.part4194000"):
            (cache / name).write_bytes(b"half")
        answers(folder.model, "--pack-cache", cache)
        equal([path.name for path in cache.iterdir()], ["qwen2.packed"])


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")])
