#!/usr/bin/env python3
"""Clients that people use against `quire serve` on the default model: `./dev test --clients [NAME...]`.

Each client has its packages, all pinned in requirements/NAME.txt, in an environment of its own under .cache/clients, made
on first use; nothing else is fetched. A script NAME_client.py runs with that environment's Python, and prints a line
'works: FEATURE' or 'FAILED: FEATURE' for each of its features. `browser` needs no packages but Chromium.
The program is named by QUIRE_BIN, the folder of models by QUIRE_MODELS. Closes with a table and the line that
tools/run_tests.py prints. docs/clients.md says what the clients are.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests/e2e"), str(HERE)]

import browser  # noqa: E402
from quire_runner import QUIRE, Skipped  # noqa: E402
from server_runner import Server, default_model  # noqa: E402

# In the order of the table. The package whose version is shown, where its name is not the client's.
CLIENTS = {
    "openai": "openai", "litellm": "litellm", "langchain-openai": "langchain-openai",
    "llama-index": "llama-index-llms-openai-like", "instructor": "instructor", "openai-agents": "openai-agents",
    "pydantic-ai": "pydantic-ai-slim", "dspy": "dspy", "smolagents": "smolagents", "llm": "llm", "aider": "aider-chat",
    "lm-eval": "lm_eval",
}
WITHOUT_KEY = {"lm-eval"}  # which then needs no further setting
KEY = "sk-clients"
OPTIONS = ["--max-tokens", "64", "--served-model-name", "smollm2"]
LIMIT_S = 900


def environment_of(name):
    """The folder of the client's environment, made where it is not there or its pins have changed."""
    pins = HERE / "requirements" / f"{name}.txt"
    folder = ROOT / ".cache/clients" / name
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_bytes() == pins.read_bytes():
        return folder
    print(f"clients: installing {name}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement", pins],
                   check=True, stdout=sys.stderr)
    shutil.copy(pins, stamp)
    return folder


def version_of(name):
    pins = (HERE / "requirements" / f"{name}.txt").read_text()
    return re.search(rf"^{re.escape(CLIENTS[name])}==(\S+)$", pins, re.M)[1]


def megabytes(folder):
    return sum(path.lstat().st_size for path in folder.rglob("*")) / 1e6


def offline(home):
    """Nothing of the user's settings, and no way out: whatever is not on this machine fails at once."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    nowhere = "http://127.0.0.1:9"
    return kept | {
        "HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
        "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "http_proxy": nowhere, "https_proxy": nowhere,
        "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "DSPY_CACHEDIR": f"{home}/dspy", "PYTHONDONTWRITEBYTECODE": "1"}


class Row:
    def __init__(self, name, version):
        self.name, self.version, self.works, self.failed, self.seconds, self.mb = name, version, [], [], 0.0, 0.0
        self.output = ""


def run_client(name, server, model):
    row = Row(name, version_of(name))
    folder = environment_of(name)
    row.mb = megabytes(folder)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="quire-client-") as home:
        own = Path(home, "own")
        own.mkdir()
        settings = offline(home) | {
            "QUIRE_URL": server.url, "QUIRE_MODEL_NAME": "smollm2", "QUIRE_KEY": KEY, "QUIRE_FOLDER": str(own),
            "QUIRE_BIN": QUIRE, "QUIRE_MODEL_FILE": str(model), "PYTHONPATH": str(HERE)}
        script = HERE / f"{name.replace('-', '_')}_client.py"
        try:
            run = subprocess.run([folder / "bin/python", script], env=settings, cwd=own, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=LIMIT_S)
            row.output, code = run.stdout, run.returncode
        except subprocess.TimeoutExpired as late:
            row.output, code = f"{late.stdout}\nstopped after {LIMIT_S} s", 1
    row.seconds = time.monotonic() - began
    row.works = re.findall(r"^works: (.+)$", row.output, re.M)
    row.failed = re.findall(r"^FAILED: (.+)$", row.output, re.M)
    if code != 0 and not row.failed:
        row.failed = ["it does not run"]
    return row


def run_browser(model):
    if not browser.Browser().program:
        raise Skipped("there is no chromium (./dev test --clients installs it)")
    row = Row("browser", "")
    began = time.monotonic()
    try:
        row.version, row.works = browser.main(model, OPTIONS)
    except Exception as error:
        row.failed, row.output = ["a page of another port"], repr(error)
    row.seconds = time.monotonic() - began
    return row


def print_table(rows):
    cells = [["client", "version", "works", "does not", "s", "MB"]]
    cells += [[row.name, row.version, "; ".join(row.works), "; ".join(row.failed), f"{row.seconds:.0f}", f"{row.mb:.0f}"] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    print(f"together {sum(row.seconds for row in rows):.0f} s, {sum(row.mb for row in rows):.0f} MB")


def main():
    parser = argparse.ArgumentParser(description="Run clients against quire serve.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*CLIENTS, 'browser'])}; all")
    names = parser.parse_args().names or [*CLIENTS, "browser"]
    if unknown := set(names) - {*CLIENTS, "browser"}:
        parser.error(f"there is no client {', '.join(sorted(unknown))}")
    model = default_model()
    rows, skipped = [], []
    clients = [name for name in CLIENTS if name in names]
    if clients:
        with Server("--model", model, *OPTIONS) as open_server, \
                Server("--model", model, *OPTIONS, env=dict(os.environ, QUIRE_API_KEY=KEY)) as keyed_server:
            for name in clients:
                rows.append(run_client(name, open_server if name in WITHOUT_KEY else keyed_server, model))
                print(f"[{'FAILED' if rows[-1].failed else 'ok'}] {name} ({rows[-1].seconds:.1f} s)", flush=True)
                if rows[-1].failed:
                    print("".join(f"  | {line}\n" for line in rows[-1].output.splitlines()), end="", flush=True)
    if "browser" in names:
        try:
            rows.append(run_browser(model))
            if rows[-1].failed:
                print(f"  | {rows[-1].output}")
        except Skipped as reason:
            skipped.append(str(reason))
            print(f"skipped browser: {reason}")
    print_table(rows)
    passed, failed = sum(len(row.works) for row in rows), sum(len(row.failed) for row in rows)
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
