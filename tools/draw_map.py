#!/usr/bin/env python3
"""Draws docs/map.svg: the folders of src/ and what each may include, from the DEPS lists of their CMakeLists.txt.

A folder stands above everything that it may include. An arrow that others imply is left out.

usage: draw_map.py [--check]      with --check, exit 1 where the file is not what it would draw
"""

import sys
from pathlib import Path

from check_layers import read_folder

ROOT = Path(__file__).resolve().parent.parent
MAP = ROOT / "docs/map.svg"
CONTROL = {"cache", "cost", "sched"}
COMPUTE = {"tensor", "formats", "device", "model", "quantize"}
COLOURS = {"control": "#dbeafe", "compute": "#dcfce7", "neither": "#f3f4f6"}
BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 96, 34, 22, 46, 20


def read_dependencies() -> dict[str, set[str]]:
    return {path.parent.name: set(read_folder(path.parent).deps) for path in sorted(ROOT.glob("src/*/CMakeLists.txt"))}


def everything_below(folder: str, deps: dict[str, set[str]]) -> set[str]:
    below = set()
    for other in deps[folder]:
        below |= {other} | everything_below(other, deps)
    return below


def direct_arrows(deps: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Without those that a longer way implies."""
    arrows = []
    for folder, lower in deps.items():
        implied = set().union(*(everything_below(other, deps) for other in lower)) if lower else set()
        arrows += [(folder, other) for other in sorted(lower - implied)]
    return arrows


def levels_of(deps: dict[str, set[str]]) -> list[list[str]]:
    def level(folder: str) -> int:
        return 1 + max((level(other) for other in deps[folder]), default=-1)

    levels: dict[int, list[str]] = {}
    for folder in deps:
        levels.setdefault(level(folder), []).append(folder)
    return [sorted(levels[i]) for i in sorted(levels)]


def places_of(levels: list[list[str]], arrows: list[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """The upper left corner of each box; within a level, boxes stand near what they stand on."""
    width = max(len(level) for level in levels) * (BOX_WIDTH + GAP_X)
    places: dict[str, tuple[float, float]] = {}
    for depth, level in enumerate(levels):
        def wish(folder: str) -> float:
            below = [places[to][0] for origin, to in arrows if origin == folder]
            return sum(below) / len(below) if below else 0.0

        y = MARGIN + (len(levels) - 1 - depth) * (BOX_HEIGHT + GAP_Y)
        step = width / len(level)
        for place, folder in enumerate(sorted(level, key=lambda name: (wish(name), name))):
            places[folder] = (MARGIN + step * place + (step - BOX_WIDTH) / 2, y)
    return places


def draw(deps: dict[str, set[str]]) -> str:
    arrows, levels = direct_arrows(deps), levels_of(deps)
    places = places_of(levels, arrows)
    width = int(max(x for x, _ in places.values()) + BOX_WIDTH + MARGIN)
    height = int(max(y for _, y in places.values()) + BOX_HEIGHT + MARGIN)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
           '<rect width="100%" height="100%" fill="white"/>']
    for origin, to in arrows:
        (x1, y1), (x2, y2) = places[origin], places[to]
        begin, end, middle = y1 + BOX_HEIGHT, y2, (y1 + BOX_HEIGHT + y2) / 2
        x1, x2 = x1 + BOX_WIDTH / 2, x2 + BOX_WIDTH / 2
        out.append(f'<path d="M{x1:.0f} {begin:.0f} C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {end:.0f}" '
                   'fill="none" stroke="#9ca3af"/>')
    for folder, (x, y) in places.items():
        column = "control" if folder in CONTROL else "compute" if folder in COMPUTE else "neither"
        out.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5" '
                   f'fill="{COLOURS[column]}" stroke="#4b5563"/>')
        out.append(f'<text x="{x + BOX_WIDTH / 2:.0f}" y="{y + 22:.0f}" text-anchor="middle">{folder}/</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def main() -> int:
    drawn = draw(read_dependencies())
    if sys.argv[1:] == ["--check"]:
        if MAP.exists() and MAP.read_text() == drawn:
            return 0
        print("docs/map.svg is not what the DEPS lists say; run tools/draw_map.py")
        return 1
    if sys.argv[1:]:
        print(__doc__)
        return 2
    MAP.write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
