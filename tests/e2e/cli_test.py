#!/usr/bin/env python3
"""Every command of the program as scripts use it: output, exit codes, JSON lines, generation on tiny checkpoints."""

import json
import math
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from quire_runner import LIMIT_S, QUIRE, ROOT, TINY, environment, equal, jsonl, main, quire, refuse, succeed, tensor

COMMANDS = ("run", "inspect", "tokenize", "template", "score", "eval", "pull", "list", "rm", "doctor", "help", "version")
SUPPORTED = ("llama-gqa-llama3rope", "llama-linear-rope-bias", "llama-mha-spm", "llama-mqa-sharded", "llama-yarn",
             "qwen2", "gemma3")
LLAMA = TINY / "llama-mqa-sharded"


def models():
    """Each tiny checkpoint as (name, path): its directory, and its GGUF twin, single or split."""
    for name in SUPPORTED:
        yield name, TINY / name
        twins = sorted((TINY.parent / "tiny-gguf").glob(f"{name}.gguf")) or \
            sorted((TINY.parent / "tiny-gguf").glob(f"{name}-00001-of-*.gguf"))
        assert twins, f"{name} has no GGUF twin"
        yield name, twins[0]


# --- help and flags -------------------------------------------------------------------------------------------

def test_help_and_version():
    overview = succeed("--help").out
    equal(refuse().err, overview, "no command is a mistake, and help for it no answer")
    for command in COMMANDS:
        assert f"\n  {command} " in overview, command
        text = succeed(command, "--help").out
        assert text.startswith(f"usage: quire {command}"), text
        equal(succeed("help", command).out, text)
    equal(succeed("help").out, overview)
    assert succeed("--version").out.startswith("quire 0."), "version"
    equal(succeed("-V").out, succeed("--version").out)
    equal(succeed("version").out, succeed("--version").out)


def test_options_page_is_current():
    equal(succeed("options").out, (ROOT / "docs/options.md").read_text(), "docs/options.md (quire options > docs/options.md)")


def test_bad_flags():
    for arguments, says in [
        (["nonsense"], '"nonsense" is not a command'),
        (["rnu"], "did you mean run?"),
        (["help", "serv"], "did you mean serve?"),
        (["run", "--max-token", "5", "x"], "--max-token is not an option of quire run; did you mean --max-tokens?"),
        (["run", "one", "two", "--top-p", "7", "--nonsense"], "--nonsense is not an option"),
        (["run", "--port", "1"], "it is one of serve and doctor"),
        (["run", "-5 degrees"], "put -- before a text"),
        (["--port", "1", "serve"], "options go behind it"),
        (["run", ""], "the prompt is empty"),
        (["run", "--", "two", "words"], "in quotes"),
        (["run", "smollm2-135m-instruct"], ["run --model smollm2-135m-instruct PROMPT", "run -- smollm2-135m-instruct"]),
        (["run", "-m", "smollm2-135m-instuct", "x"], "did you mean smollm2-135m-instruct?"),
        (["inspect", LLAMA, "-m", LLAMA], "takes one model"),
        (["rm"], "needs the NAME"),
        (["run", "--nonsense", "x"], "--nonsense is not an option of quire run"),
        (["inspect", "--temperature", "1"], "--temperature is not an option of quire inspect"),
        (["run", "two", "words"], "in quotes"),
        (["run", "--top-p", "-1", "x"], "--top-p is -1; it takes a number of 0 to 1"),
        (["run", "--temperature", "-1", "x"], "--temperature is -1"),
        (["run", "--temperature", "nan", "x"], "--temperature is nan"),
        (["run", "--max-tokens", "ten", "x"], '--max-tokens is "ten"; it takes a whole number'),
        (["run", "--max-tokens", "0", "x"], "--max-tokens is 0"),
        (["run", "--seed"], "--seed takes one value"),
        (["run", "--seed", "1", "--seed", "2", "x"], "--seed takes one value"),
        (["run", "--jsonl=1"], "--jsonl takes no value"),
        (["run", "--jsonl", "x"], "leave the prompt on the command line out"),
        (["run", "--stop", "", "-m", LLAMA, "x"], "empty"),
        (["score", "--isa", "sse", "x"], "--isa is \"sse\"; it takes auto, scalar, avx2 or avx512"),
        (["score", "--compute", "f64", "x"], "default or f32"),
        (["score", "--kv-dtype", "q4", "x"], "auto, bf16, f16, int8 or f32"),
        (["score", "-m", LLAMA, "--kv-dtype", "int8", "--attention", "full", "x"], ["bf16 KV only", "--kv-dtype bf16"]),
        (["template", "--template-file", LLAMA / "config.json", "--now", "yesterday", "x"], "2026-01-02T03:04:05"),
        (["pull", "no-such-model"], ["no-such-model", "smollm2-135m-instruct"]),
    ]:
        refuse(*arguments, says=says, within_s=1)


def test_environment_sets_what_flags_leave_open():
    refuse("run", "x", env=environment(QUIRE_TOP_K="many"), says='QUIRE_TOP_K is "many"')
    with_environment = environment(QUIRE_MODEL=LLAMA, QUIRE_CONTEXT=48)
    equal(json.loads(succeed("inspect", "--json", env=with_environment).out)["memory_plan"]["context"], 48)
    flag_wins = succeed("inspect", "--json", "--context", 80, env=with_environment).out
    equal(json.loads(flag_wins)["memory_plan"]["context"], 80)


def test_full_disk_on_standard_output():
    with open("/dev/full", "wb") as full:
        run = subprocess.run([QUIRE, "tokenize", "-m", LLAMA, "some text"], stdout=full, stderr=subprocess.PIPE,
                             env=environment())
    equal(run.returncode, 2)
    assert b"standard output cannot be written" in run.stderr, run.stderr


# --- inspect --------------------------------------------------------------------------------------------------

def test_inspect_names_quantization_and_kernel():
    golden = TINY.parent / "quantized"
    for name, scheme, kernel in [
        ("gptq-4bit-g32-asym-desc-act", "GPTQ 4-bit, groups of 32, asymmetric, act-order", "int4 x int8"),
        ("gptq-3bit-g32-sym", "GPTQ 3-bit, groups of 32, symmetric", "int4 x int8"),
        ("awq-4bit-g32-gemm", "AWQ 4-bit, groups of 32, asymmetric", "int4 x int8"),
        ("ct-w8a16-channel", "compressed-tensors 8-bit, a scale a row, symmetric", "int8 x int8"),
        ("ct-w8a8-dynamic", "compressed-tensors 8-bit, a scale a row, symmetric, int8 activations", "int8 x int8 a token"),
        ("ct-fp8-block", "compressed-tensors FP8, blocks of 128 x 128", "e4m3 x bf16"),
        ("fp8-block-handmade", "FP8, blocks of 128 x 128", "e4m3 x bf16"),
    ]:
        plan = json.loads(succeed("inspect", "-m", golden / name, "--json").out)["memory_plan"]
        lines = [line for line in plan["weights"] if line["type"] == scheme]
        equal([line["tensors"] for line in lines], [14], f"{name}: {[line['type'] for line in plan['weights']]}")
        assert lines[0]["kernel"].endswith(" " + kernel), lines[0]
        equal(sum(line["packed_bytes"] for line in plan["weights"]), plan["packed_weight_bytes"], name)
        text = succeed("inspect", "-m", golden / name).out
        assert scheme in text and lines[0]["kernel"] in text, text


def test_inspect_json_matches_the_config():
    for name in SUPPORTED:
        config = json.loads((TINY / name / "config.json").read_text())
        seen = json.loads(succeed("inspect", "-m", TINY / name, "--json").out)
        for key, name_there in [("layers", "num_hidden_layers"), ("hidden", "hidden_size"), ("vocab_size", "vocab_size"),
                                ("heads", "num_attention_heads"), ("context_length", "max_position_embeddings")]:
            equal(seen[key], config[name_there], f"{name}: {key}")
        plan = seen["memory_plan"]
        equal(sum(line["packed_bytes"] for line in plan["weights"]), plan["packed_weight_bytes"], name)
        equal(sum(group["bytes"] for group in plan["kv_groups"]), plan["kv_bytes"], name)
        equal(sum(group["layers"] for group in plan["kv_groups"]), config["num_hidden_layers"], name)
        parts = ("packed_weight_bytes", "kv_bytes", "workspace_bytes", "tokenizer_bytes")
        equal(sum(plan[part] for part in parts), plan["total_bytes"], name)
        assert plan["available_bytes"] > 0, plan
        assert seen["chat_template"].startswith("{% for m in messages %}"), seen["chat_template"]


def test_inspect_plans_for_context_and_sequences():
    def plan(*arguments):
        return json.loads(succeed("inspect", "-m", LLAMA, "--json", *arguments).out)["memory_plan"]
    one, both, four = plan("--context", 64), plan("--context", 128), plan("--context", 64, "--sequences", 4)
    equal((one["context"], one["sequences"]), (64, 1))
    equal(both["kv_bytes"], 2 * one["kv_bytes"])
    equal(four["kv_bytes"], 4 * one["kv_bytes"])
    for group in one["kv_groups"]:
        equal(group["bytes"], group["bytes_per_token"] * group["tokens_per_sequence"])


def test_inspect_for_people():
    text = succeed("inspect", "-m", TINY / "gemma3").out
    for part in ("gemma3", "window 32", "global", "BF16", "Memory plan: 512 tokens x 1 sequence", "available now"):
        assert part in text, (part, text)
    assert "\x1b" not in text, "colours belong on a terminal"


# --- tokenize -------------------------------------------------------------------------------------------------

def test_tokenize_matches_the_goldens():
    for name, model in models():
        texts = json.loads((TINY / name / "expected.json").read_text())["texts"]
        requests = [{"text": text["text"], "add_special": text["add_special"]} for text in texts]
        answers = jsonl("tokenize", requests, "-m", model)
        for text, answer in zip(texts, answers):
            equal(answer["ids"], text["ids"], f"{model}: {text['text']!r}")


def test_tokenize_flags_are_the_defaults_of_requests():
    plain, special = "a<|user|>b", ["--parse-special"]
    (with_flag,) = jsonl("tokenize", [{"text": plain}], "-m", LLAMA, *special)
    (with_key,) = jsonl("tokenize", [{"text": plain, "parse_special": True}], "-m", LLAMA)
    (without,) = jsonl("tokenize", [{"text": plain, "parse_special": False}], "-m", LLAMA, *special)
    equal(with_flag, with_key)
    assert len(with_flag["ids"]) == 3 < len(without["ids"]), (with_flag, without)
    equal(without["decoded"], plain)


def test_tokenize_for_people():
    text = succeed("tokenize", "-m", LLAMA, "Hi there").out
    piped = succeed("tokenize", "-m", LLAMA, stdin="Hi there").out
    equal(text, piped)
    assert text.rstrip().endswith("tokens"), text


def test_bad_lines_are_answered_and_passed_over():
    deep = '{"text": ' + "[" * 100000 + "]" * 100000 + "}"
    good = {"text": "go on"}
    bad = [("", "not valid JSON"), ("{", "not valid JSON"), ("[]", "one JSON object"), ('{"text": 5}', '"text" must be a text'),
           ("{}", 'no "text"'), ('{"text": "a", "tex": 1}', '"tex"'), ('{"text": "a", "add_special": 1}', '"add_special"'),
           (deep, "nests"), ('{"text": "a", "text": "b"}', '"text" twice'), ('{"text": "\\ud800"}', "not valid JSON")]
    requests = [good] + [line for line, _ in bad] + [good]
    answers = jsonl("tokenize", requests, "-m", LLAMA)
    for (line, says), answer in zip(bad, answers[1:-1]):
        equal(list(answer), ["error"], line[:80])
        assert says in answer["error"], (line[:80], answer)
    equal(answers[0], answers[-1])
    assert "ids" in answers[0], answers[0]


def test_invalid_bytes_in_a_line():
    outcome = succeed("tokenize", "-m", LLAMA, "--jsonl", stdin=b'{"text": "\xff\xfe"}\n{"text": "a"}\n')
    first, second = map(json.loads, outcome.out.splitlines())
    assert "not valid JSON" in first["error"] and second["ids"], outcome


# --- template -------------------------------------------------------------------------------------------------

def test_template_file():
    with tempfile.TemporaryDirectory(prefix="quire-e2e-") as folder:
        path = Path(folder) / "chat.jinja"
        path.write_text("{{ tools is none }}|{{ x | tojson }}|{{ strftime_now('%Y-%m-%d %H:%M:%S') }}|"
                        "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}"
                        "{% if messages | length > 1 %}{{ raise_exception('too many') }}{% endif %}")
        one = {"role": "user", "content": "häy"}
        requests = [
            {"messages": [one], "tools": None, "kwargs": {"x": {"z": 1, "a": [True, None, 1.5]}}},
            {"messages": [one], "tools": [], "kwargs": {"x": 1}},
            {"messages": [one, one], "kwargs": {"x": 1}},
            {"messages": "no list"},
            {"tools": []},
            {"messages": [one], "surprise": 1},
        ]
        answers = jsonl("template", requests, "--template-file", path, "--now", "2026-01-02T03:04:05")
        now = "2026-01-02 03:04:05"
        equal(answers[0], {"text": f'True|{{"z": 1, "a": [true, null, 1.5]}}|{now}|user=häy;'})
        equal(answers[1], {"text": f"False|1|{now}|user=häy;"})
        for answer, says in zip(answers[2:], ("too many", '"messages" must be a list', '"messages"', '"surprise"')):
            assert list(answer) == ["error"] and says in answer["error"], (answer, says)
        path.write_text("a\n{% frobnicate %}")
        refuse("template", "--template-file", path, "x", says=[path, "frobnicate"], within_s=1)


def test_template_of_a_model():
    equal(succeed("template", "-m", LLAMA, "Hello").out, "<|user|>user: Hello\n<|user|>assistant:\n")
    equal(succeed("template", "-m", LLAMA, "--system", "Be brief", "Hello").out,
          "<|user|>system: Be brief\n<|user|>user: Hello\n<|user|>assistant:\n")
    (answer,) = jsonl("template", [{"messages": [{"role": "user", "content": "Hello"}]}], "-m", LLAMA)
    equal(answer, {"text": "<|user|>user: Hello\n"})


# --- score and run on tiny checkpoints ------------------------------------------------------------------------

def test_scores_match_the_goldens():
    for name, model in models():
        golden = TINY / name / "expected.safetensors"
        ids, logits = list(tensor(golden, "ids_40")), tensor(golden, "logits_40")
        vocabulary = len(logits) // len(ids)
        (answer,) = jsonl("score", [{"ids": ids}], "-m", model, "--compute", "f32")
        equal(len(answer["next_logprob"]), len(ids) - 1)
        for i in range(len(ids)):
            row = logits[i * vocabulary:(i + 1) * vocabulary]
            top = max(row)
            total = top + math.log(sum(math.exp(x - top) for x in row))
            if i + 1 < len(ids):
                assert abs(answer["next_logprob"][i] - (row[ids[i + 1]] - total)) < 4e-3, (name, i)
        equal(len(answer["top"]), 20)
        for rank, (token, logprob) in enumerate(answer["top"]):
            assert abs(logprob - (row[token] - total)) < 4e-3, (name, rank)
        assert answer["top"] == sorted(answer["top"], key=lambda pair: -pair[1]), name


def test_greedy_matches_the_goldens():
    for name in SUPPORTED:
        expected = json.loads((TINY / name / "expected.json").read_text())
        ids = list(tensor(TINY / name / "expected.safetensors", "ids_40"))
        sure = next((i for i, gap in enumerate(expected["greedy_gap"]) if gap < 0.01), len(expected["greedy_gap"]))
        request = {"ids": ids, "max_tokens": max(sure, 1), "temperature": 0, "ignore_eos": True}
        (answer,) = jsonl("run", [request], "-m", TINY / name, "--compute", "f32")
        equal(answer["ids"][:sure], expected["greedy_of_40"][:sure], name)
        equal(answer["finish_reason"], "length", name)


def test_recorded_steps_are_replayed():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.bin"
        requests = [{"ids": [5, 6, 7, 8], "max_tokens": 9, "ignore_eos": True, "seed": 3},
                    {"ids": [9, 9], "max_tokens": 4, "temperature": 0, "ignore_eos": True}]
        jsonl("run", requests, "-m", LLAMA, "--context", "64", "--record", path)
        equal(path.stat().st_mode & 0o077, 0, "prompts are private")
        assert "13 steps and 13 tokens came out the same" in succeed("replay", path).out
        refuse("run", "-m", LLAMA, "--context", "64", "--record", path, "--raw", "a", says=["--record", "exists"])
        refuse("replay", path, TINY / "gemma3", says="is not the model that was recorded")
        # The last token of the file is another one.
        changed = bytearray(path.read_bytes())
        changed[-12] ^= 1
        path.write_bytes(changed)
        refuse("replay", path, says=["step 12 comes out otherwise", "sequence 2"])
        path.write_bytes(bytes(changed[:-3]))
        assert "12 steps" in succeed("replay", path).out
    refuse("replay", says="needs the FILE")
    refuse("replay", LLAMA / "config.json", says="is no recording")


def test_every_compute_flag_is_accepted_everywhere():
    flags = ["--compute", "f32", "--isa", "scalar", "--threads", "1", "--context", "64"]
    for command, text in [("inspect", []), ("tokenize", ["a"]), ("template", ["a"]), ("score", ["abc"]),
                          ("run", ["--max-tokens", "2", "a"])]:
        succeed(command, "-m", LLAMA, *flags, *text)


def test_run_requests():
    long = list(range(5, 25))
    requests = [
        {"prompt": "Hello", "max_tokens": 4, "temperature": 0, "ignore_eos": True},
        {"ids": long, "max_tokens": 4, "temperature": 0, "ignore_eos": True},
        {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "temperature": 0, "ignore_eos": True},
        {"ids": long, "max_tokens": 4, "temperature": 1, "seed": 7, "ignore_eos": True},
        {"ids": long, "max_tokens": 4, "temperature": 1, "ignore_eos": True},
        {"ids": long, "max_tokens": 4, "temperature": 0, "ignore_eos": True},
    ]
    answers = jsonl("run", requests, "-m", LLAMA)
    for answer in answers:
        equal(len(answer["ids"]), 4)
        equal(answer["finish_reason"], "length")
        timings = answer["timings"]
        equal(timings["predicted_n"], 4)
        assert 0 < timings["prompt_ms"] <= timings["ttft_ms"] + 1e-6 and timings["predicted_ms"] > 0, timings
    equal(answers[5]["ids"], answers[1]["ids"], "the same request after others")
    equal([answers[i]["timings"]["cache_n"] for i in (1, 5)], [0, 16], "whole pages are reused")
    equal([i for i, answer in enumerate(answers) if "seed" in answer], [4], "a seed is reported where one was drawn")
    (again,) = jsonl("run", [requests[4] | {"seed": answers[4]["seed"]}], "-m", LLAMA)
    equal(again["ids"], answers[4]["ids"], "the reported seed repeats the answer")
    flags = ["--seed", 7, "--temperature", 1, "--max-tokens", 4, "--ignore-eos"]
    (by_flags,) = jsonl("run", [{"ids": long}], "-m", LLAMA, *flags)
    equal(by_flags["ids"], answers[3]["ids"], "flags are the defaults of requests")


def test_the_same_tokens_on_one_and_two_threads():
    request = {"ids": list(range(5, 45)), "max_tokens": 40, "temperature": 0.9, "seed": 3, "ignore_eos": True}
    for name in ("gemma3", "qwen2"):
        one, two = (jsonl("run", [request], "-m", TINY / name, "--threads", n)[0]["ids"] for n in (1, 2))
        equal(one, two, name)


def test_stops():
    base = {"ids": list(range(5, 25)), "temperature": 0, "ignore_eos": True}
    (free,) = jsonl("run", [base | {"max_tokens": 24}], "-m", LLAMA, "--compute", "f32")
    ids, text = free["ids"], free["text"]
    token = ids[5]
    first = ids.index(token)
    stop = text[3:5]
    requests = [base | {"max_tokens": 24, "stop_token_ids": [token]}, base | {"max_tokens": 24, "stop": stop},
                base | {"max_tokens": 24, "stop": ["never to be seen", stop]}, base | {"max_tokens": 24, "stop": [""]},
                base | {"max_tokens": 24, "stop": 5}]
    by_id, by_text, by_list, empty, wrong = jsonl("run", requests, "-m", LLAMA, "--compute", "f32")
    equal((by_id["ids"], by_id["finish_reason"]), (ids[:first], "stop"))
    equal((by_text["text"], by_text["finish_reason"]), (text[:text.index(stop)], "stop"))
    equal(by_list["text"], by_text["text"])
    assert "empty" in empty["error"] and '"stop"' in wrong["error"], (empty, wrong)


def test_run_says_what_is_wrong_with_a_request():
    cases = [
        ({}, "exactly one of"),
        ({"prompt": "a", "ids": [5]}, "exactly one of"),
        ({"ids": []}, "no tokens"),
        ({"ids": [5, 100000]}, "100000"),
        ({"ids": [-1]}, "-1"),
        ({"ids": "a"}, '"ids" must be'),
        ({"prompt": "a", "temperature": "hot"}, '"temperature" is "hot"'),
        ({"prompt": "a", "top_p": 2}, '"top_p" is 2'),
        ({"prompt": "a", "max_tokens": 0}, '"max_tokens" is 0'),
        ({"prompt": "a", "logit_bias": {}}, '"logit_bias"'),
        ({"prompt": "a", "tools": []}, "with \"messages\" only"),
        ({"messages": {}}, '"messages" must be a list'),
        ({"ids": [5] * 70}, "70"),
    ]
    answers = jsonl("run", [request for request, _ in cases] + [{"ids": [5], "max_tokens": 1}], "-m", LLAMA, "--context", 64)
    for (request, says), answer in zip(cases, answers):
        assert list(answer) == ["error"] and says in answer["error"], (request, answer)
    assert "64" in answers[-2]["error"], "the context is named beside the prompt's length"
    assert "ids" in answers[-1], answers[-1]


def test_run_for_people():
    arguments = ["run", "-m", LLAMA, "--seed", 5, "--max-tokens", 8, "--ignore-eos", "--compute", "f32"]
    outcome = succeed(*arguments, "Hello")
    for part in ("memory: weights", "context 512 tokens", "prompt ", "first token after", "prefill", "decode", "--max-tokens"):
        assert part in outcome.err, (part, outcome)
    (answer,) = jsonl("run", [{"messages": [{"role": "user", "content": "Hello"}]}], *arguments[1:])
    equal(outcome.out, answer["text"], "byte for byte")
    raw = succeed(*arguments, "--raw", "Hello").out
    (answer,) = jsonl("run", [{"prompt": "Hello"}], *arguments[1:])
    equal(raw, answer["text"])


# --- what is read, and what is here ---------------------------------------------------------------------------

ONE = ["-m", LLAMA, "--temperature", 0, "--max-tokens", 6, "--ignore-eos", "--compute", "f32"]


def answered(prompt):
    (answer,) = jsonl("run", [{"messages": [{"role": "user", "content": prompt}]}], *ONE)
    return answer["text"]


def test_standard_input_is_one_prompt_or_a_part_of_it():
    both = answered("Look:\n\nfirst\nsecond")
    alone = answered("first\nsecond")
    equal(succeed("run", *ONE, stdin="first\nsecond\n").out, alone)
    equal(succeed("run", *ONE, "-", stdin="first\r\nsecond").out, answered("first\r\nsecond"))
    equal(succeed("run", *ONE, "Look:", stdin="first\nsecond\n").out, both)
    with tempfile.TemporaryFile() as file:
        file.write(b"first\nsecond\n")
        for arguments, expected in ((["Look:"], both), ([], alone), (["-"], alone)):
            file.seek(0)
            run = subprocess.run([QUIRE, "run", *map(str, ONE), *arguments], stdin=file, capture_output=True, env=environment())
            equal((run.returncode, run.stdout.decode()), (0, expected), run.stderr)
    equal(succeed("run", *ONE, "--", "-", stdin="").out, answered("-"))
    equal(succeed("run", *ONE, "--", "--max-tokens", stdin="").out, answered("--max-tokens"))
    refuse("run", *ONE, says="no prompt was given")
    refuse("run", *ONE, "-", stdin=" \n", says="no prompt was given")
    refuse("run", *ONE, "x", stdin=b"\xff\xfe", says=["standard input", "UTF-8"])
    refuse("run", *ONE, "x", stdin=b"a" * (17 << 20), says=["standard input has more than", "limit"])


def test_a_silent_pipe_is_named():
    held, end = os.pipe()
    program = subprocess.Popen([QUIRE, "run", *map(str, ONE), "Hello"], stdin=held, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=environment())
    os.close(held)
    equal(program.stderr.readline().decode().strip(),
          "waiting for standard input to end; where there is none to read, add </dev/null")
    os.close(end)
    out, _ = program.communicate(timeout=LIMIT_S)
    equal((program.returncode, out.decode()), (0, answered("Hello")))


def test_closed_descriptors():
    def shell(redirections, *arguments):
        command = " ".join(shlex.quote(str(word)) for word in (QUIRE, *arguments))
        return subprocess.run(["sh", "-c", f"exec {command} {redirections}"], capture_output=True, env=environment(),
                              timeout=LIMIT_S)
    equal(shell("<&-", "run", *ONE, "Hello").stdout.decode(), answered("Hello"))
    equal(shell("<&- 2>&-", "run", *ONE, "Hello").stdout.decode(), answered("Hello"))
    nothing = shell("<&-", "run", *ONE)
    equal((nothing.returncode, nothing.stdout), (2, b""), nothing.stderr)
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "steps.bin"
        closed = shell(">&-", "run", *ONE, "--record", record, "Hello")
        equal(closed.returncode, 2)
        assert b"standard output cannot be written" in closed.stderr, closed.stderr
        assert b"Hello" not in record.read_bytes()[:64] and record.read_bytes(), "the answer went into another file"
    equal(shell("<&- >&- 2>&-", "run", *ONE, "Hello").returncode, 2)


def test_models_in_the_cache_have_names():
    with tempfile.TemporaryDirectory(prefix="quire-e2e-") as cache:
        models = Path(cache) / "models"
        shutil.copytree(LLAMA, models / "small-llama")
        flags = ["--cache", cache]
        equal(succeed("list", *flags, "--json").out.count("\n"), 1)
        model = json.loads(succeed("list", *flags, "--json").out)
        size = sum(path.stat().st_size for path in LLAMA.iterdir())
        equal((model["name"], model["path"], model["bytes"]), ("small-llama", str(models / "small-llama"), size))
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", model["modified"]), model
        assert "small-llama" in succeed("list", *flags).out
        equal(succeed("run", *ONE[2:], "-m", "small-llama", *flags, "Hello").out, answered("Hello"))
        equal(succeed("inspect", "small-llama", *flags).out, succeed("inspect", "-m", models / "small-llama", *flags).out)
        refuse("run", *flags, "small-llama", says="is the name of a model")
        refuse("run", *flags, "./absent.gguf", says="is the name of a model")
        refuse("rm", *flags, "small-lama", says=["did you mean small-llama?"])
        refuse("rm", *flags, "../models/small-llama", says="is not in")
        assert "removed small-llama" in succeed("rm", *flags, "small-llama").out
        equal(list(models.iterdir()), [])
        assert "no models" in succeed("list", *flags).err
        refuse("rm", *flags, "small-llama", says="nothing is")


def test_doctor():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        free = str(taken.getsockname()[1])
    report = succeed("doctor", LLAMA, "--port", free, "--json")
    checks = {check["name"]: check for check in json.loads(report.out)["checks"]}
    equal(set(checks), {"program", "processor", "kernels", "threads", "cgroup", "memory", "huge pages", "bandwidth", "port",
                        "cache", "model"})
    assert re.match(r"[\d.]+ GB/s", checks["bandwidth"]["text"]), checks
    screen = succeed("doctor", LLAMA, "--port", free).out
    assert len(screen.splitlines()) == len(checks) < 24, screen
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        stopped = quire("doctor", LLAMA, "--port", taken.getsockname()[1])
    equal(stopped.code, 2)
    assert "cannot be listened on" in stopped.out and "would not start here: see port" in stopped.err, stopped
    stopped = quire("doctor", "/no/such/model", "--port", free)
    assert stopped.code == 2 and "see model" in stopped.err, stopped


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")])
