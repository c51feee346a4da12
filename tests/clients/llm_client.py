"""The command-line program `llm`."""

import json
import os
import subprocess
import sys
from pathlib import Path

from client import BASE, FOLDER, KEY, MODEL, QUESTION, main, said

os.environ["LLM_USER_PATH"] = FOLDER
Path(FOLDER, "extra-openai-models.yaml").write_text(f"""
- {{model_id: quire, model_name: {MODEL}, api_base: "{BASE}", api_key_name: quire}}
- {{model_id: quire-text, model_name: {MODEL}, api_base: "{BASE}", completion: true, api_key_name: quire}}
""")
# What `llm keys set quire` writes. Without api_key_name, llm sends no key of its user to an api_base, --key or not.
Path(FOLDER, "keys.json").write_text(json.dumps({"quire": KEY}))


def llm(*arguments):
    run = subprocess.run([Path(sys.executable).parent / "llm", *arguments], capture_output=True, text=True, timeout=120,
                         stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stderr
    return run.stdout


def chat():
    """chat, and the conversation continued"""
    said(llm("-m", "quire", "-s", "Be brief.", "-o", "max_tokens", "8", "--no-stream", QUESTION))
    said(llm("-c", "-o", "max_tokens", "8", "--no-stream", "Another."))


def stream():
    """streams"""
    said(llm("-m", "quire", "-o", "max_tokens", "8", QUESTION))


def completions():
    """completions"""
    said(llm("-m", "quire-text", "-o", "max_tokens", "8", "One, two,"))


main(chat, stream, completions)
