#!/usr/bin/env python3
"""Compares the logits of two builds of quire, bit by bit, over checkpoints.

    tools/compare_logits.py OLD [NEW] [--models FOLDER]

OLD and NEW are programs `quire_logits_dump` (tests/model/logits_dump.cc) of the two builds, or files with what such a
program printed. NEW is this checkout's program unless it is given. The checkpoints are those in tests/golden/tiny, and
the GGUF files and checkpoint directories in FOLDER. For a checkout that lacks the program, copy its source and its
lines of tests/CMakeLists.txt there. Exits with 1 where something differs.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix == ".gguf" or (path / "config.json").exists())


def dump(source: Path, files: list[Path]) -> dict[str, str]:
    """'MODEL WAY' -> hash, of a program or of what one printed; without models that it does not load."""
    if os.access(source, os.X_OK):
        run = subprocess.run([source, *files], stdout=subprocess.PIPE, text=True, check=True)
        text = run.stdout
    else:
        text = source.read_text()
    return {f"{name} {way}": value for name, way, value in (line.split(" ", 2) for line in text.splitlines())
            if not value.startswith("not loaded")}


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the logits of two builds of quire, bit by bit.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="?", default=ROOT / "build/release/bin/quire_logits_dump")
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="more checkpoints")
    options = parser.parse_args()
    files = checkpoints(ROOT / "tests/golden/tiny")
    if options.models:
        files += checkpoints(options.models)
    old, new = dump(options.old, files), dump(options.new, files)
    names = {file.name for file in files}
    keys = [key for key in old if key.split(" ")[0] in names]
    different = [key for key in keys if old[key] != new.get(key)]
    for key in different:
        print(f"{key}: {old[key]} became {new.get(key, 'not loaded')}")
    print(f"{len(keys) - len(different)} equal, {len(different)} different; "
          f"{len(new.keys() - old.keys())} only in the new build")
    return 1 if different or not keys else 0


if __name__ == "__main__":
    sys.exit(main())
