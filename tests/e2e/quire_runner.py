"""What the end-to-end scripts share: running the program, counting checks, reading golden tensors.

The program is named by QUIRE_BIN (default: the release build). Standard library only.
"""

import json
import os
import struct
import subprocess
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
QUIRE = os.environ.get("QUIRE_BIN", str(ROOT / "build/release/bin/quire"))
TINY = ROOT / "tests/golden/tiny"
LIMIT_S = 300


class Skipped(Exception):
    """Raised by a test that this machine cannot run; the text says why."""


def environment(**extra):
    """The caller's environment without options of quire, so that a user's settings do not change the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}
    return kept | {name: str(value) for name, value in extra.items()}


class Outcome:
    def __init__(self, arguments, code, out, err, seconds):
        self.arguments, self.code, self.out, self.err, self.seconds = arguments, code, out, err, seconds

    def __str__(self):
        return f"quire {' '.join(map(str, self.arguments))}: exit {self.code} in {self.seconds:.2f} s\n" \
               f"  stdout: {self.out[-600:]!r}\n  stderr: {self.err[-600:]!r}"


def quire(*arguments, stdin="", env=None, **options):
    """Runs quire; text in, text out."""
    began = time.monotonic()
    run = subprocess.run(
        [QUIRE, *map(str, arguments)], input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True, env=env or environment(), timeout=LIMIT_S, **options)
    return Outcome(arguments, run.returncode, run.stdout.decode(errors="replace"), run.stderr.decode(errors="replace"),
                   time.monotonic() - began)


def succeed(*arguments, **options):
    outcome = quire(*arguments, **options)
    assert outcome.code == 0, outcome
    return outcome


def refuse(*arguments, says=(), within_s=None, **options):
    """The command must exit 2, print nothing on standard output, and name each of `says` on standard error."""
    outcome = quire(*arguments, **options)
    if within_s is not None and outcome.seconds > within_s:
        outcome = quire(*arguments, **options)  # a busy machine may stall a process once
        assert outcome.seconds <= within_s, f"took longer than {within_s} s: {outcome}"
    assert outcome.code == 2, outcome
    assert outcome.out == "", outcome
    for part in [says] if isinstance(says, str) else says:
        assert str(part) in outcome.err, f"{part!r} is not said by {outcome}"
    return outcome


def jsonl(command, requests, *arguments, **options):
    """Sends requests (objects, or strings as they are) as lines; returns one parsed answer for each."""
    lines = [request if isinstance(request, str) else json.dumps(request) for request in requests]
    outcome = succeed(command, *arguments, "--jsonl", stdin="".join(line + "\n" for line in lines), **options)
    answers = [json.loads(line) for line in outcome.out.splitlines()]
    assert len(answers) == len(requests), outcome
    return answers


def tensor(path, name):
    """A tensor of a safetensors file as a flat tuple."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(size))[name]
        begin, end = entry["data_offsets"]
        file.seek(8 + size + begin)
        data = file.read(end - begin)
    letter = {"I64": "q", "F32": "f"}[entry["dtype"]]
    return struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data)


def equal(actual, expected, what=""):
    assert actual == expected, f"{what}: {actual!r} is not {expected!r}"


def main(tests):
    """Runs the functions, prints what fails, and closes with the count that tools/run_tests.py reads."""
    if not Path(QUIRE).exists():
        sys.exit(f"{QUIRE} does not exist: build it, or name the program in QUIRE_BIN")
    passed, failed, skipped = 0, 0, 0
    for test in tests:
        try:
            test()
            passed += 1
        except Skipped as reason:
            skipped += 1
            print(f"skipped {test.__name__}: {reason}")
        except Exception:
            failed += 1
            print(f"FAILED {test.__name__}\n{traceback.format_exc()}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed else 0)
