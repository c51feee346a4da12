"""Checkpoints that say a thing twice, or in a way of their own: what quire makes of them, and what it says of it.

Each test edits a tiny checkpoint of the repository. Expected values are transformers 5.24's (f32) for the same files.
"""

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from quire_runner import TINY, equal, jsonl, main, quire, refuse, succeed
from server_runner import Server, default_model

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 1234\n"


@contextmanager
def edited(base, **changes):
    """A copy of a tiny checkpoint; `changes` are functions by file name, dots as underscores."""
    with tempfile.TemporaryDirectory(prefix="quire-readings-") as path:
        folder = Path(path) / "model"
        shutil.copytree(TINY / base, folder)
        for name, change in changes.items():
            file = folder / f"{name}.json"
            value = json.loads(file.read_text()) if file.exists() else {}
            change(value)
            file.write_text(json.dumps(value))
        yield folder


def remarks(folder):
    return json.loads(succeed("inspect", "--model", folder, "--json").out)["remarks"]


def test_rope_scaling_beside_rope_parameters():
    def change(config):
        theta = config.pop("rope_theta", 10000.0)
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}
        config["rope_scaling"] = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}

    with edited("llama-mqa-sharded", config=change) as folder:
        ids = [1, 5, 87, 261, 100, 200, 33, 44, 250, 12]
        (answer,) = jsonl("score", [{"ids": ids}], "--model", folder, "--threads", 1, "--compute", "f32")
        wanted = [-4.08634, -10.20687, -6.98178, -12.82259]
        for value, expected in zip(answer["next_logprob"], wanted):
            assert abs(value - expected) < 2e-4, (answer["next_logprob"], wanted)


def test_added_tokens_outside_tokenizer_json():
    token = dict(content="<zip>", single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    request = {"text": "a<zip>b", "parse_special": True}
    with edited("llama-gqa-llama3rope", tokenizer_config=lambda c: c.update(added_tokens_decoder={"296": token})) as folder:
        equal(jsonl("tokenize", [request], "--model", folder)[0]["ids"], [68, 296, 69])
    with edited("llama-gqa-llama3rope", added_tokens=lambda c: c.update({"<zip>": 296})) as folder:
        equal(jsonl("tokenize", [request], "--model", folder)[0]["ids"], [68, 296, 69])
    user = dict(token, content="<|user|>", rstrip=True)
    with edited("llama-gqa-llama3rope", tokenizer_config=lambda c: c.update(added_tokens_decoder={"3": user})) as folder:
        answer = jsonl("tokenize", [{"text": "<|user|>  a", "parse_special": True}], "--model", folder)[0]
        equal(answer["ids"], [3, 68])


def test_a_penalty_of_the_model_is_obeyed():
    change = lambda config: config.update(do_sample=True, temperature=0.7, repetition_penalty=3.0, min_p=1.0)
    with edited("llama-gqa-llama3rope", generation_config=change) as folder:
        with Server("--model", folder, "--threads", 1) as server:
            body = {"prompt": "the hat that hat the hat", "max_tokens": 12, "temperature": 0}
            texts = [json.loads(server.request("POST", "/v1/completions", body | more)[2])["choices"][0]["text"]
                     for more in ({}, {"repetition_penalty": 3.0}, {"repetition_penalty": 1.0})]
        equal(texts[0], texts[1])
        assert texts[0] != texts[2], "the penalty changes the answer"


def test_a_model_that_says_it_is_greedy_is():
    with edited("llama-gqa-llama3rope", generation_config=lambda c: c.update(do_sample=False, temperature=0.9)) as folder:
        answers = jsonl("run", [{"prompt": "the hat", "max_tokens": 8}, {"prompt": "the hat", "max_tokens": 8, "temperature": 0}],
                        "--model", folder)
        equal(answers[0]["text"], answers[1]["text"])
        assert "seed" not in answers[0], "nothing was drawn"


def test_template_files_know_the_models_tokens():
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
        template.write("{{ bos_token }}|{{ eos_token }}|")
        template.flush()
        outcome = succeed("template", "--model", default_model(), "--template-file", template.name, "hi")
        equal(outcome.out, "<|im_start|>|<|im_end|>|\n")
        outcome = succeed("template", "--model", "no-such-model", "--template-file", template.name, "hi")
        equal(outcome.out, "||\n")
        assert "no-such-model is not here" in outcome.err, outcome


def test_templates_see_further_special_tokens():
    change = lambda config: config.update(
        chat_template="{{ image_token }}|{{ boi_token }}|", image_token="<img>", extra_special_tokens={"boi_token": "<boi>"})
    with edited("llama-gqa-llama3rope", tokenizer_config=change) as folder:
        equal(succeed("template", "--model", folder, "hi").out, "<img>|<boi>|\n")


def test_git_lfs_pointers_are_named():
    for name in ("model.safetensors", "config.json"):
        with edited("llama-gqa-llama3rope") as folder:
            (folder / name).write_text(POINTER)
            refuse("inspect", "--model", folder, says=[name, "is a Git LFS pointer", "git lfs pull"])


def test_a_folder_with_one_gguf_is_that_model():
    gguf = next((TINY.parent / "tiny-gguf").glob("*.gguf"))
    with tempfile.TemporaryDirectory() as path:
        shutil.copy(gguf, path)
        assert json.loads(succeed("inspect", "--model", path, "--json").out)["format"].startswith("GGUF")
        shutil.copy(gguf, Path(path) / "second.gguf")
        refuse("inspect", "--model", path, says=["holds 2 GGUF models", "second.gguf"])


def test_tokenizers_in_older_forms():
    texts = ["hello world", " a  b", "é日 the hat"]

    def ids(folder):
        return [a["ids"] for a in jsonl("tokenize", [{"text": t, "add_special": True} for t in texts], "--model", folder)]

    with edited("llama-mha-spm") as folder:
        wanted = ids(folder)
        os.unlink(folder / "tokenizer.json")
        equal(ids(folder), wanted, "tokenizer.model alone")
    with edited("llama-gqa-llama3rope", tokenizer_config=lambda c: c.update(tokenizer_class="GPT2Tokenizer")) as folder:
        wanted = ids(folder)
        model = json.loads((folder / "tokenizer.json").read_text())["model"]
        (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
        merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
        (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
        os.unlink(folder / "tokenizer.json")
        equal(ids(folder), wanted, "vocab.json and merges.txt")


def test_remarks_reach_whoever_starts_the_model():
    with edited("llama-gqa-llama3rope", config=lambda c: c.update(sliding_window=99, no_such_key=1)) as folder:
        assert any("no_such_key" in each for each in remarks(folder)), remarks(folder)
        for command in (["run", "--max-tokens", 1, "a"], ["tokenize", "a"], ["score", "a b"]):
            outcome = quire(*command, "--model", folder)
            assert '"sliding_window": 99 has no effect on a llama model' in outcome.err, outcome
    with edited("llama-gqa-llama3rope") as folder:
        equal(remarks(folder), [], "an ordinary checkpoint")


if __name__ == "__main__":
    main([value for name, value in list(globals().items()) if name.startswith("test_")])
