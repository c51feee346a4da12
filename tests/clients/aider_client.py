"""aider in its ask mode, on a folder without git."""

import subprocess
import sys
from pathlib import Path

from client import BASE, FOLDER, KEY, MODEL, main, said


def ask(*more):
    Path(FOLDER, "colour.py").write_text("colour = 'red'\n")
    run = subprocess.run(
        [Path(sys.executable).parent / "aider", "--model", f"openai/{MODEL}", "--openai-api-base", BASE,
         "--openai-api-key", KEY, "--chat-mode", "ask", "--no-git", "--map-tokens", "0", "--yes-always", "--no-pretty",
         "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--analytics-disable", "--no-detect-urls",
         "--message", "What is the colour?", *more, "colour.py"],
        cwd=FOLDER, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stderr
    assert "Error" not in run.stdout and "Tokens:" in run.stdout, run.stdout
    said(run.stdout)


def whole():
    """ask mode"""
    ask("--no-stream")


def stream():
    """streams"""
    ask("--stream")


main(whole, stream)
