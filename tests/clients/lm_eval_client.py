"""lm-eval's `local-completions` with nothing but a model and an address, on tasks of its own: its log-probabilities
against those of `quire score`, and generation up to a stop text."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from client import BASE, FOLDER, MODEL, URL, main, said

TOLERANCE = 1e-5
# The last two end where the model would end: the one token that lm-eval has generated is then EOS.
PAIRS = [
    ("The capital of France is", " Paris"),
    ("One, two, three,", " four, five, six"),
    ("", "Once upon a time there was a king."),
    ("Ä ö ü, naïve", " café – 日本語"),
    ("def add(a, b):\n", "    return a + b\n"),
    ("<|im_start|>user\nSay yes.<|im_end|>\n<|im_start|>assistant\n", "Yes."),
    ("<|im_start|>user\nWhat is 1 + 1?<|im_end|>\n<|im_start|>assistant\nThe answer", " is 2."),
]
SCORED = """task: quire_scored
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: loglikelihood
doc_to_text: "{{{{context}}}}"
doc_to_target: "{{{{continuation}}}}"
target_delimiter: ""
metric_list: [{{metric: acc}}]
"""
GENERATED = """task: quire_generated
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{context}}}}"
doc_to_target: "{{{{continuation}}}}"
generation_kwargs: {{until: ["\\n"], max_gen_toks: 16}}
metric_list: [{{metric: exact_match}}]
"""


def evaluate(task, text, pairs):
    """The samples that lm-eval logs for the task."""
    folder = Path(FOLDER, task)
    folder.mkdir()
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps({"context": context, "continuation": rest}) + "\n" for context, rest in pairs))
    (folder / "task.yaml").write_text(text.format(data=data))
    run = subprocess.run(
        [Path(sys.executable).parent / "lm_eval", "run", "--model", "local-completions", "--model_args",
         f"model={MODEL},base_url={BASE}/completions", "--tasks", task, "--include_path", folder, "--output_path",
         folder / "out", "--log_samples"],
        capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = next((folder / "out").rglob("samples_*.jsonl")).read_text().splitlines()
    samples = sorted((json.loads(line) for line in lines), key=lambda sample: sample["doc_id"])
    assert len(samples) == len(pairs), samples
    return samples


def tokens_of(text):
    body = json.dumps({"prompt": text, "add_special_tokens": False}).encode()
    request = urllib.request.Request(f"{URL}/tokenize", body, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))["tokens"]


def expected():
    """By `quire score`: the sum over the tokens behind the context, for each pair."""
    info = json.load(urllib.request.urlopen(f"{URL}/tokenizer_info"))
    prefix = tokens_of(info["bos_token"] or info["eos_token"])[:1]
    lines, begins = [], []
    for context, continuation in PAIRS:
        # lm-eval moves white space at the end of a context into the continuation.
        kept = context.rstrip()
        context, continuation = kept, context[len(kept):] + continuation
        ids = tokens_of(context + continuation) if context else prefix + tokens_of(continuation)
        begins.append(len(tokens_of(context)) if context else 1)
        lines.append(json.dumps({"ids": ids}))
    run = subprocess.run(
        [os.environ["QUIRE_BIN"], "score", "--model", os.environ["QUIRE_MODEL_FILE"], "--jsonl"],
        input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=300, check=True)
    scores = [json.loads(line)["next_logprob"] for line in run.stdout.splitlines()]
    return [sum(score[begin - 1:]) for score, begin in zip(scores, begins, strict=True)]


def loglikelihood():
    """log-probabilities as `quire score`"""
    for sample, wanted in zip(evaluate("quire_scored", SCORED, PAIRS), expected(), strict=True):
        got = float(sample["filtered_resps"][0][0] if isinstance(sample["filtered_resps"][0], list) else sample["filtered_resps"][0])
        assert abs(got - wanted) <= TOLERANCE, f"{sample['doc']}: {got}, by quire score {wanted}"


def generation():
    """generation"""
    asked = [pair for pair in PAIRS if pair[0]]  # this model has no token to begin a text with
    answers = [sample["filtered_resps"][0] for sample in evaluate("quire_generated", GENERATED, asked)]
    said("".join(answers))
    assert not any("\n" in answer for answer in answers), answers


main(loglikelihood, generation)
