#!/usr/bin/env python3
"""Formats the C++ sources with clang-format, or with --check fails on those that it would change.

Other versions of clang-format lay some constructs out differently, so only version 14 (Debian 12) does; with another
one, or none, the exit status is 77 (skipped).
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = "14"
SKIPPED = 77
SOURCES = ["src/*.cc", "src/*.h", "tests/*.cc", "tests/*.h", "bench/*.cc"]


def clang_format() -> str | None:
    """The program of the wanted version."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        try:
            version = subprocess.run([name, "--version"], capture_output=True, text=True).stdout
        except FileNotFoundError:
            continue
        if re.search(rf"version {VERSION}\.", version):
            return name
    return None


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print("usage: format.py [--check]", file=sys.stderr)
        return 2
    program = clang_format()
    if program is None:
        print(f"clang-format {VERSION} is not installed")
        return SKIPPED
    files = subprocess.run(["git", "ls-files", "--", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in files.stdout.split() if (ROOT / name).exists()]

    def formatted(name: str) -> str:
        return subprocess.run([program, name], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(formatted, names))
    unformatted = 0
    for name, after in zip(names, results):
        path = ROOT / name
        before = path.read_text()
        if before == after:
            continue
        if check:
            unformatted += 1
            pairs = enumerate(zip(before.splitlines() + [""], after.splitlines() + [""]), 1)
            print(f"{name}:{next((number for number, (a, b) in pairs if a != b), 1)}: not formatted: run './dev fmt'")
        else:
            path.write_text(after)
            print(f"formatted {name}")
    return 1 if unformatted else 0


if __name__ == "__main__":
    sys.exit(main())
