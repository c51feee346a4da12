#!/usr/bin/env python3
"""Makes a text that no calibration has seen: the Debian Administrator's Handbook and fortunes, in turn, from their Debian
packages, which are not part of this project.

usage: evaluation_text.py OUT      needs apt-get and dpkg-deb; prints the SHA-256 of what it wrote
"""

import hashlib
import html
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = ["debian-handbook", "fortunes"]
PIECE_BYTES = 4000
LIMIT_BYTES = 600_000


def extracted(folder: Path) -> Path:
    subprocess.run(["apt-get", "download", *PACKAGES], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "files"], check=True)
    return folder / "files"


def paragraphs_of_page(page: Path) -> list[str]:
    found = re.findall(r"<div class=\"para\">(.*?)</div>", page.read_text(encoding="utf-8"), re.S)
    texts = (html.unescape(re.sub(r"<[^>]+>", "", text)) for text in found)
    return [text for text in (" ".join(each.split()) for each in texts) if len(text) > 80]


def pieces(paragraphs: list[str]):
    piece: list[str] = []
    for paragraph in paragraphs:
        piece.append(paragraph)
        if sum(map(len, piece)) >= PIECE_BYTES:
            yield "\n\n".join(piece)
            piece = []


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        files = extracted(Path(folder))
        pages = sorted((files / "usr/share/doc/debian-handbook/html/en-US").glob("*.html"))
        handbook = [paragraph for page in pages for paragraph in paragraphs_of_page(page)]
        fortunes = []
        for name in ("science", "wisdom", "people", "computers", "politics", "art", "platitudes", "education"):
            fortunes += (files / "usr/share/games/fortunes" / name).read_text(encoding="utf-8").split("\n%\n")
    mixed = []
    for first, second in zip(pieces(handbook), pieces([text.replace("\t", "    ") for text in fortunes])):
        mixed += [first, second]
    text = "\n\n".join(mixed).encode()[:LIMIT_BYTES].decode(errors="ignore")
    Path(sys.argv[1]).write_text(text, encoding="utf-8")
    print(hashlib.sha256(text.encode()).hexdigest(), len(text.encode()), "bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
