"""aider in its ask mode, on a folder without git."""

import re
import subprocess
import sys
from pathlib import Path

from client import BASE, FOLDER, KEY, MODEL, main


def ask(*more):
    Path(FOLDER, "colour.py").write_text("colour = 'red'\n")
    run = subprocess.run(
        [Path(sys.executable).parent / "aider", "--model", f"openai/{MODEL}", "--openai-api-base", BASE,
         "--openai-api-key", KEY, "--chat-mode", "ask", "--no-git", "--map-tokens", "0", "--yes-always", "--no-pretty",
         "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--analytics-disable", "--no-detect-urls",
         "--message", "What is the colour?", *more, "colour.py"],
        cwd=FOLDER, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stderr
    # The list of prices, which it cannot fetch here, is an error of its own.
    assert re.search(r"^Tokens: \d+ sent, [1-9]\d* received", run.stdout, re.M), run.stdout
    assert "APIError" not in run.stdout and "APIConnectionError" not in run.stdout, run.stdout


def whole():
    """ask mode"""
    ask("--no-stream")


def stream():
    """streams"""
    ask("--stream")


main(whole, stream)
