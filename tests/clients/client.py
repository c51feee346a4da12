"""What the scripts of single clients share: where the server is, and how they say what works.

Each is run by run.py with the Python of its own environment. A feature is a function; its docstring is its name.
"""

import os
import sys
import traceback

URL = os.environ["QUIRE_URL"]  # http://127.0.0.1:PORT
BASE = f"{URL}/v1"
MODEL = os.environ["QUIRE_MODEL_NAME"]
KEY = os.environ["QUIRE_KEY"]
FOLDER = os.environ["QUIRE_FOLDER"]  # empty, the client's own
QUESTION = "Name a colour."


def said(text, what="an answer"):
    assert isinstance(text, str) and text.strip(), f"no text in {what}: {text!r}"


def main(*features):
    failed = 0
    for feature in features:
        try:
            feature()
            print(f"works: {feature.__doc__}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED: {feature.__doc__}\n{traceback.format_exc()}", flush=True)
    sys.exit(1 if failed else 0)
