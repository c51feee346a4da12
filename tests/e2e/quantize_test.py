#!/usr/bin/env python3
"""quire quantize as a program: every scheme and format loads again, stopped runs go on, and mistakes are named."""

import hashlib
import json
import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from quire_runner import LIMIT_S, QUIRE, TINY, Skipped, environment, equal, main, quire, refuse, succeed

LLAMA, QWEN, GEMMA = TINY / "llama-gqa-llama3rope", TINY / "qwen2", TINY / "gemma3"
TWIN = TINY.parent / "tiny-gguf/gemma3.gguf"
SMALL = ["--calibration-sequences", 2, "--calibration-length", 32]
SMOLLM2 = "smollm2-135m-instruct-q4_1.gguf"


def in_folder(test):
    def run():
        with tempfile.TemporaryDirectory(prefix="quire-e2e-") as folder:
            test(Path(folder))

    run.__name__ = test.__name__
    return run


def digest(path):
    """Of a file, or of the names and files of a directory."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files)).hexdigest()


def weights_of(path):
    plan = json.loads(succeed("inspect", "-m", path, "--json").out)["memory_plan"]
    return {line["type"]: line["tensors"] for line in plan["weights"]}


def loads(path):
    return succeed("run", "-m", path, "--temperature", 0, "--ignore-eos", "--max-tokens", 3, "Hello").out


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


# --- what is written ------------------------------------------------------------------------------------------

@in_folder
def test_every_scheme_and_format_loads_again(folder):
    cases = []
    for scheme in ("rtn", "gptq", "awq"):
        for output_format, words in [("gptq", "GPTQ v2 4-bit"), ("awq", "AWQ 4-bit"), ("compressed-tensors", "compressed-tensors 4-bit")]:
            cases.append(([*("--scheme", scheme, "--format", output_format, "--group", 32)], f"{words}, groups of 32, symmetric"))
            cases.append(([*("--scheme", scheme, "--format", output_format, "--group", 32), "--asym"], f"{words}, groups of 32, asymmetric"))
        for kind in ("q4_0", "q4_1", "q8_0"):
            cases.append((["--scheme", scheme, "--type", kind], kind.upper()))
    cases += [(["--bits", 8, "--group", 32], "GPTQ v2 8-bit, groups of 32, symmetric"),
              (["--act-order", "--group", 32], "GPTQ v2 4-bit, groups of 32, symmetric, act-order"),
              (["--act-order", "--static-groups", "--group", 32], "GPTQ v2 4-bit, groups of 32, symmetric"),
              (["--group", -1], "GPTQ v2 4-bit, a scale a row, symmetric"),
              (["--scheme", "rtn", "--type", "q4_0", "--importance", "off"], "Q4_0")]
    models = [LLAMA, QWEN, GEMMA]
    for i, (arguments, words) in enumerate(cases):
        out = folder / (f"{i}.gguf" if "--type" in arguments else str(i))
        model = models[i % len(models)]
        said = succeed("quantize", *SMALL, *arguments, model, out)
        assert said.out.startswith(f"{out}: "), said
        linears = 7 * json.loads((model / "config.json").read_text())["num_hidden_layers"]
        found = weights_of(out)
        assert found.get(words, 0) >= linears, f"{words}: {linears} are not in {found} of {said}"
        loads(out)
        equal([name for name in left_in(folder) if not name.split(".")[0].isdigit() or name.endswith((".work", ".partial"))], [])


@in_folder
def test_plain_values(folder):
    for arguments, out, source in [([], "a", TWIN), ([], "b.gguf", QWEN), (["--format", "safetensors"], "c", LLAMA)]:
        succeed("quantize", "--bits", 16, *arguments, source, folder / out)
        equal(loads(folder / out), loads(source), out)


@in_folder
def test_a_gguf_from_a_directory_and_back(folder):
    succeed("quantize", *SMALL, QWEN, folder / "a.gguf", "--type", "q8_0")
    succeed("quantize", *SMALL, folder / "a.gguf", folder / "b", "--bits", 8, "--group", 32)
    loads(folder / "b")


@in_folder
def test_results_do_not_depend_on_threads(folder):
    for scheme in ("gptq", "awq"):
        for threads in (1, 3):
            succeed("quantize", *SMALL, GEMMA, folder / f"{scheme}{threads}", "--scheme", scheme, "--threads", threads)
        equal(digest(folder / f"{scheme}1"), digest(folder / f"{scheme}3"), scheme)


@in_folder
def test_a_real_model(folder):
    models = os.environ.get("QUIRE_MODELS")
    if not models or not (Path(models) / SMOLLM2).exists():
        raise Skipped(f"no {SMOLLM2} in the folder QUIRE_MODELS")
    source = Path(models) / SMOLLM2
    for arguments, out in [
        (["--scheme", "gptq", "--calibration-sequences", 4, "--calibration-length", 64], "gptq"),
        (["--scheme", "rtn", "--asym"], "rtn"),
        (["--scheme", "rtn", "--type", "q4_0", "--importance", "off"], "rtn.gguf"),
    ]:
        succeed("quantize", *arguments, source, folder / out)
        answer = succeed("run", "-m", folder / out, "--temperature", 0, "--max-tokens", 12, "The capital of France is")
        assert "Paris" in answer.out, answer


# --- stopped runs ---------------------------------------------------------------------------------------------

SLOW = ["--calibration-sequences", 24, "--calibration-length", 500, "--isa", "scalar", "--threads", 1]


def stopped_after_a_layer(work, *arguments):
    """Interrupts a run as soon as its folder of unfinished work holds a layer; returns what it printed."""
    program = subprocess.Popen([QUIRE, "quantize", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    end = time.monotonic() + LIMIT_S
    while not (work / "layer-0.safetensors").exists():
        assert time.monotonic() < end and program.poll() is None, program.communicate()
        time.sleep(0.005)
    program.send_signal(signal.SIGINT)
    said, err = (text.decode() for text in program.communicate(timeout=LIMIT_S))
    equal(program.returncode, 130, err)
    return said, err


@in_folder
def test_a_stopped_run_goes_on_with_the_same_bytes(folder):
    succeed("quantize", *SLOW, GEMMA, folder / "whole")
    out, work = folder / "out", folder / "out.work"
    said, err = stopped_after_a_layer(work, *SLOW, GEMMA, out)
    assert f"the same command goes on from {work}" in err, err
    equal(said, "")
    equal(left_in(folder), ["out.work", "whole"])

    refuse("quantize", *SLOW, GEMMA, out, "--damp", "0.02",
           says=[work, "other settings", "GPTQ, 4-bit", "remove the folder"])
    done = succeed("quantize", *SLOW, GEMMA, out)
    assert "of an earlier run" in done.err, done
    equal(digest(out), digest(folder / "whole"))
    equal(left_in(folder), ["out", "whole"])


@in_folder
def test_a_changed_source_is_not_gone_on_with(folder):
    source, work = folder / "model.gguf", folder / "out.work"
    source.write_bytes(TWIN.read_bytes())
    stopped_after_a_layer(work, *SLOW, source, folder / "out")
    source.write_bytes(TWIN.read_bytes())  # the same name and size, another time of change
    refuse("quantize", *SLOW, source, folder / "out", says=[work, "another input", "remove the folder"])


@in_folder
def test_files_of_others_are_neither_used_nor_removed(folder):
    (folder / "out.work").mkdir()
    (folder / "out.work/thesis.txt").write_text("years")
    refuse("quantize", *SMALL, GEMMA, folder / "out", says=[folder / "out.work/thesis.txt", "another output"])
    equal(left_in(folder), ["out.work"])
    equal((folder / "out.work/thesis.txt").read_text(), "years")


@in_folder
def test_calibration_reads_all_of_a_text(folder):
    """Two texts that begin alike leave different weights."""
    weights = {}
    for name, end in [("prose", "The rest of the book is prose.\n"), ("code", "for (int i = 0; i < n; ++i) { sum += x[i]; }\n")]:
        text = folder / f"{name}.txt"
        text.write_text("It begins with the same words.\n" * 200 + end * 200)
        out = folder / name
        succeed("quantize", "--scheme", "gptq", "--group", 32, *SMALL, "--proof-tokens", 0, "--calibration", text, QWEN, out)
        weights[name] = b"".join(file.read_bytes() for file in sorted(out.glob("*.safetensors")))
    equal(weights["prose"] == weights["code"], False)


# --- mistakes -------------------------------------------------------------------------------------------------

@in_folder
def test_calibration_texts(folder):
    short, binary = folder / "short.txt", folder / "binary.txt"
    short.write_text("Only a few words.")
    binary.write_bytes(b"good\nbad \xff\xfe here\n" + b"x" * 5000)
    for arguments, says in [
        (["--calibration", short], [short, "tokens", "65,536", "--calibration-sequences"]),
        (["--calibration", binary], [binary, "UTF-8", "byte 9"]),
        (["--calibration", folder / "none.txt"], [folder / "none.txt"]),
        (["--calibration", folder], [folder]),
        (["--calibration-length", 8], ["--calibration-length is 8"]),
        (["--calibration-length", 600, "--calibration-sequences", 1], ["600", "512", "--calibration-length"]),
    ]:
        refuse("quantize", *arguments, QWEN, folder / "out", says=says)
        equal(left_in(folder), ["binary.txt", "short.txt"])


@in_folder
def test_outputs_that_cannot_be_written(folder):
    (folder / "file").write_text("mine")
    (folder / "full").mkdir()
    (folder / "full/file").write_text("mine")
    for out, says in [
        (folder / "file", [folder / "file", "exists"]),
        (folder / "full", [folder / "full", "exists already"]),
        (folder / "none/out", [folder / "none"]),
        (folder / "none/out.gguf", [folder / "none"]),
        (folder / "file/out", [folder / "file"]),
    ]:
        outcome = quire("quantize", *SMALL, QWEN, out, *(["--type", "q4_0"] if out.suffix else []))
        assert outcome.code in (1, 2) and outcome.out == "", outcome
        assert all(str(part) in outcome.err for part in says), outcome
        equal(left_in(folder), ["file", "full"])
        equal(left_in(folder / "full"), ["file"])
        equal((folder / "file").read_text(), "mine")


@in_folder
def test_a_full_disk_leaves_no_half_file(folder):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    for out in ("out", "out.gguf"):
        outcome = quire("quantize", *SMALL, QWEN, folder / out, preexec_fn=limited)
        assert outcome.code in (1, 2) and outcome.out == "", outcome
        assert str(folder / out) in outcome.err, outcome
        equal([name for name in left_in(folder) if name != f"{out}.work"], [])


@in_folder
def test_flags(folder):
    out = folder / "out"
    for arguments, says in [
        ([], "quire quantize IN OUT"),
        ([QWEN], "quire quantize IN OUT"),
        ([folder / "none", out], str(folder / "none")),
        ([QWEN, out, "--bits", 5], "--bits 5"),
        ([QWEN, out, "--bits", 3], "--bits is 3"),
        ([QWEN, out, "--group", 48], "48"),
        ([QWEN, out, "--group", 16], "16"),
        ([QWEN, out, "--group", 64], ["--group 64", "96 columns", "blk.0.ffn_down.weight"]),
        ([QWEN, out, "--group", -2], "--group is -2"),
        ([QWEN, out, "--type", "q4_0"], ["--type", "GGUF"]),
        ([QWEN, out, "--type", "q5_0"], ["--type", "q4_0, q4_1, q8_0, q4_k or q6_k"]),
        ([QWEN, out, "--scheme", "magic"], ["--scheme", "rtn, gptq or awq"]),
        ([QWEN, out, "--damp", 0], "--damp is 0"),
        ([QWEN, out, "--scheme", "rtn", "--act-order"], ["--act-order", "--scheme gptq"]),
        ([QWEN, out.with_suffix(".gguf"), "--group", 32], ["--group", "GGUF"]),
        ([QWEN, out, "--format", "gguf"], [".gguf", out]),
        ([TINY / "mixtral", out], "mixtral"),
    ]:
        refuse("quantize", *SMALL, *arguments, says=says)
        equal(left_in(folder), [], arguments)


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")])
