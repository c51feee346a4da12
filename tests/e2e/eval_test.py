#!/usr/bin/env python3
"""quire eval as people and scripts use it: figures, references, tables, JSON, errors, Ctrl-C."""

import hashlib
import json
import math
import os
import pty
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from quire_runner import QUIRE, ROOT, Skipped, environment, equal, jsonl, main, refuse, succeed

QUANTIZED = ROOT / "tests/golden/quantized"
TINY = ROOT / "tests/golden/tiny"
BASE = QUANTIZED / "base"
FAST = ("--window", 64, "--tokens", 1024)


def real_model():
    path = Path(os.environ.get("QUIRE_MODELS", "")) / "smollm2-135m-instruct-q4_1.gguf"
    if not os.environ.get("QUIRE_MODELS") or not path.exists():
        raise Skipped("QUIRE_MODELS names no folder with smollm2-135m-instruct-q4_1.gguf")
    return path


def evaluate(*arguments):
    return json.loads(succeed("eval", "--json", *arguments).out)


def close(actual, expected, relative):
    assert abs(actual / expected - 1) <= relative, f"{actual} is not within {relative} of {expected}"


def test_shipped_text_is_named_by_its_hash():
    report = evaluate("-m", BASE, *FAST)
    data = (ROOT / "data/evaluation.txt").read_bytes()
    equal(report["text"]["sha256"], hashlib.sha256(data).hexdigest())
    equal(report["text"]["bytes"], len(data))
    readme = (ROOT / "data/README.md").read_text()
    for name in ("evaluation.txt", "calibration.txt"):
        assert hashlib.sha256((ROOT / "data" / name).read_bytes()).hexdigest() in readme, f"{name} is not what README.md says"
    equal([report[key] for key in ("window", "windows", "tokens_read", "tokens_scored")], [64, 16, 1024, 16 * 31])
    equal(report["reference"], None)
    assert "kl" not in report["models"][0], report
    assert report["models"][0]["perplexity_error"] > 0


def test_the_exact_model_does_not_diverge_from_itself():
    report = evaluate("-m", BASE, "--reference", "plain", "--compute", "f32", *FAST)
    (model,) = report["models"]
    equal([model[key] for key in ("kl", "kl_error", "same_top", "perplexity_ratio", "logprob_rms", "logit_max")],
          [0, 0, 1, 1, 0, 0])
    equal(model["perplexity"], report["reference"]["perplexity"])
    assert "f32 activations, f32 KV" in report["reference"]["compute"], report


def test_options_hold_for_models_and_not_for_the_reference():
    options = ("-m", BASE, "--reference", "plain", *FAST)
    exact = evaluate(*options, "--compute", "f32")["reference"]
    default, int8 = evaluate(*options), evaluate(*options, "--kv-dtype", "int8")
    equal(default["reference"], exact)
    equal(int8["reference"], exact)
    assert "int8 KV" in int8["models"][0]["compute"], int8
    assert 0 < default["models"][0]["kl"] < int8["models"][0]["kl"] < 1, (default, int8)


def test_candidates_are_judged_beside_each_other():
    names = ["ct-w8a16-channel", "gptq-4bit-g32-sym", "gptq-3bit-g32-sym"]
    paths = [QUANTIZED / name for name in names]
    together = evaluate("-m", paths[0], "--also", f"{paths[1]},{paths[2]}", "--reference", BASE, *FAST)
    equal([Path(model["model"]).name for model in together["models"]], names)
    kl = [model["kl"] for model in together["models"]]
    assert kl[0] < kl[1] < kl[2], kl
    for model in together["models"][1:]:
        ratio = model["kl_ratio_to_first"]
        close(ratio["value"], model["kl"] / kl[0], 1e-9)
        assert 1 < ratio["low"] < ratio["value"] < ratio["high"], ratio
    alone = evaluate("-m", paths[1], "--reference", BASE, *FAST)["models"][0]
    equal({key: value for key, value in together["models"][1].items() if key != "kl_ratio_to_first"}, alone)
    again = evaluate("-m", paths[0], "--also", paths[1], "--also", paths[2], "--reference", BASE, *FAST)
    equal(again["models"], together["models"])
    table = succeed("eval", "-m", paths[0], "--also", f"{paths[1]},{paths[2]}", "--reference", BASE, *FAST).out
    for part in [*names, "sha256", "16 windows of 64", "KL, nats", "95 % interval", "f32 activations", "int4"]:
        assert part in table, f"{part!r} is not in\n{table}"


def test_windows_are_scored_as_the_model_scores_their_tokens():
    # llama.cpp's windows by hand: BOS in place of the first token of each, and the second half scored.
    model, window = TINY / "llama-mha-spm", 64
    text = (ROOT / "data/evaluation.txt").read_text()
    (tokens,) = jsonl("tokenize", [{"text": text[:4000], "add_special": True}], "-m", model)
    ids = tokens["ids"]
    windows = [[ids[0], *ids[at + 1:at + window]] for at in range(0, 3 * window, window)]
    assert windows[1] != ids[window:2 * window], "the model adds no BOS"
    answers = jsonl("score", [{"ids": window_ids} for window_ids in windows], "-m", model, "--compute", "f32")
    scored = [logprob for answer in answers for logprob in answer["next_logprob"][window // 2:]]
    report = evaluate("-m", model, "--compute", "f32", "--window", window, "--tokens", 3 * window + 5)
    equal((report["windows"], report["tokens_scored"]), (3, len(scored)))
    close(report["models"][0]["perplexity"], math.exp(-sum(scored) / len(scored)), 1e-5)


def test_perplexity_of_a_real_model():
    # tests/golden/ppl: log-probabilities of another program, in one window of 2,000 tokens; their mean over tokens 1,001 to
    # 1,999, which are those in the second half.
    golden = json.loads((ROOT / "tests/golden/ppl/smollm2.json").read_text())
    text = ROOT / "tests/golden/ppl/passage.txt"
    report = evaluate("-m", real_model(), "--text", text, "--window", 2000, "--tokens", 2000, "--compute", "f32")
    scored = golden["next_logprob"][1000:]
    equal(report["tokens_scored"], len(scored))
    close(report["models"][0]["perplexity"], math.exp(-sum(scored) / len(scored)), 5e-4)
    default = evaluate("-m", real_model(), "--reference", "plain", "--tokens", 1024)["models"][0]
    assert 1e-4 < default["kl"] < 0.01 and default["same_top"] > 0.9, default


def test_errors():
    with tempfile.TemporaryDirectory() as folder:
        bad, short, empty = Path(folder, "bad.txt"), Path(folder, "short.txt"), Path(folder, "empty.txt")
        bad.write_bytes(b"caf\xe9 au lait")
        short.write_text("Only a few words.")
        empty.write_text("")
        for arguments, says in [
            (["--text", bad], [f"{bad}: not UTF-8 at byte 3", "iconv"]),
            (["--text", short], [str(short), "of its", "a window takes 512"]),
            (["--text", empty], "0 of its 0 tokens"),
            (["--text", Path(folder, "none.txt")], "none.txt"),
            (["--window", 63], "even"),
            (["--window", 2], "--window is 2"),
            (["--window", 65536], ["a window of 65536 tokens", "trained for at most"]),
            (["--tokens", 100], ["100 of its", "a window takes 512"]),
            (["--reference", "no-such-model"], "no-such-model"),
            (["--reference", TINY / "llama-mha-spm", *FAST], ["296 and 360 tokens", "cannot be compared"]),
            (["--also", TINY / "llama-mha-spm", *FAST], ["360 and 296 tokens", "cannot be compared"]),
            (["--head", "q9"], "--head"),
        ]:
            refuse("eval", "-m", BASE, *arguments, says=says, within_s=5)


def test_interrupt_ends_it_cleanly():
    terminal, other_end = pty.openpty()  # progress tells when it can be interrupted
    process = subprocess.Popen([QUIRE, "eval", "-m", str(BASE), "--compute", "f32", "--isa", "scalar", "--window", "128"],
                               env=environment(TERM="xterm"), stdout=subprocess.PIPE, stderr=other_end, text=True)
    os.close(other_end)
    seen = ""
    while not re.search(r"left, \d+ %", seen):
        seen += os.read(terminal, 4096).decode()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    os.close(terminal)
    equal((process.returncode, out), (130, ""))


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")])
