#!/usr/bin/env python3
"""Compares quire with llama.cpp, ik_llama.cpp and OpenVINO GenAI on this machine, in one Markdown table.

    bench/peers/table.py [--rows REGEX] [--rounds N] [--peers llama,ik,openvino] [--json FILE]
    bench/peers/table.py --model FILE ...      prefill and decode of these files instead of the table's rows
    bench/peers/table.py --model FILE --baseline PROGRAM [--peers none]      quire beside another build of it

The peers are built or installed on first use (llama_cpp.sh, ik_llama_cpp.sh, openvino.sh), and models.sh makes the files
of one type. Speeds are medians (lowest to highest) of interleaved rounds, in tokens a second; the ratio is the median of
each round's ratio of quire to the fastest peer of that round. A baseline, another program `quire`, runs right before or
after quire in each round and has a ratio of its own; it is no peer. llama.cpp and ik run with flash attention; ik with and
without its repacking at load, of which the better counts; OpenVINO where it reads the file. See measure.py for the rest.
"""

import argparse
import dataclasses
import json
import os
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import measure
from measure import HERE, SIDES, Figures, Session, Setup

ROOT = HERE.parent.parent
PEERS = {"llama": "llama.cpp", "ik": "ik", "openvino": "OpenVINO"}
OPENVINO_READS = ("q4_0", "q8_0")  # files whose name ends so; it knows no Q5_0 and no K types
MODELS = {
    "Qwen-0.5B Q4_0": "qwen2.5-coder-0.5b-instruct-q4_0",
    "Qwen-0.5B Q4_K_M": "qwen2.5-coder-0.5b-instruct-q4_k_m",
    "Qwen-1.5B Q4_0": "qwen2.5-coder-1.5b-instruct-q4_0",
    "Qwen-1.5B Q4_K_M": "qwen2.5-coder-1.5b-instruct-q4_k_m",
    "SmolLM2 Q4_0": "smollm2-135m-instruct-q4_0",
    "Gemma-3-270M Q4_K_M": "gemma3-270m-q4_k_m",
}


@dataclass(frozen=True)
class Row:
    """One line of the table. `required` is a bound for `bound`: the ratio to the best peer, or quire's own value."""
    work: str
    model: str
    figures: tuple[str, ...]
    bound: str = "ratio"  # or "share" (second figure over the first, at least) or "cost" (of a step, at most)
    required: float = 0  # 0: none

    @property
    def group(self) -> str:
        """Rows of one model and group are measured in the same runs: short ones, so that rounds are short."""
        if self.figures[0].startswith("batch:"):
            return "batch"
        return "deep" if "decode:4096" in self.figures else "single"

    def value(self, got: Figures) -> float | None:
        if any(figure not in got for figure in self.figures):
            return None
        values = [got[figure] for figure in self.figures]
        if self.bound == "share":
            return values[1] / values[0]
        if self.bound == "cost":
            rows = [int(figure.split(":")[1]) for figure in self.figures]
            return (rows[1] / values[1]) / (rows[0] / values[0])
        return values[0]

    def best(self, values: list[float]) -> float:
        return min(values) if self.bound == "cost" else max(values)

    def text(self, value: float) -> str:
        if self.bound == "share":
            return f"{100 * value:.0f} %"
        return f"{value:.2f}" if self.bound == "cost" else f"{value:.{0 if value >= 100 else 1}f}"

    def requirement(self) -> str:
        if not self.required:
            return ""
        if self.bound == "share":
            return f">= {100 * self.required:.0f} %"
        return f"<= {self.required:g}" if self.bound == "cost" else f">= {self.required:g}x"

    def met(self, ratio: float, own: float) -> bool:
        if self.bound == "cost":
            return own <= self.required
        return (own if self.bound == "share" else ratio) >= self.required


def table_rows() -> list[Row]:
    prefill = {"Qwen-0.5B Q4_0": 1.25, "Qwen-0.5B Q4_K_M": 1.5, "Qwen-1.5B Q4_0": 1.5, "Qwen-1.5B Q4_K_M": 1.4,
               "SmolLM2 Q4_0": 1.25, "Gemma-3-270M Q4_K_M": 1.4}
    decode = {"Qwen-0.5B Q4_0": 1.1, "Qwen-0.5B Q4_K_M": 1.1, "Qwen-1.5B Q4_0": 0, "Qwen-1.5B Q4_K_M": 1.1,
              "SmolLM2 Q4_0": 1.25, "Gemma-3-270M Q4_K_M": 1.2}
    batches = {("Qwen-0.5B Q4_0", 4): 1.7, ("Qwen-0.5B Q4_0", 8): 2.0, ("Qwen-0.5B Q4_0", 16): 2.0,
               ("Qwen-0.5B Q4_0", 32): 2.0, ("SmolLM2 Q4_0", 8): 2.0, ("SmolLM2 Q4_0", 32): 1.8}
    rows = [Row("prefill 512", model, ("prefill:512",), required=required) for model, required in prefill.items()]
    rows += [Row("prefill 2048", model, ("prefill:2048",), required=1.3) for model in ("Qwen-0.5B Q4_0", "Qwen-0.5B Q4_K_M")]
    rows += [Row("decode, B = 1", model, ("decode:0",), required=required) for model, required in decode.items()]
    rows += [Row("decode after 4096 tokens", "Qwen-0.5B Q4_K_M", ("decode:4096",), required=1.3),
             Row("the same, share of an empty context's", "Qwen-0.5B Q4_K_M", ("decode:0", "decode:4096"), "share", 0.85)]
    rows += [Row(f"batched decode, B = {size}", model, (f"batch:{size}",), required=required)
             for (model, size), required in batches.items()]
    rows += [Row("cost of a decode step of 8 rows over 1", model, ("batch:1", "batch:8"), "cost", 1.25)
             for model in ("Qwen-1.5B Q4_0", "Qwen-1.5B Q4_K_M")]
    return rows


def fail(message: str):
    print(f"table.py: {message}", file=sys.stderr)
    sys.exit(2)


def script(name: str) -> str:
    """Runs a script that makes something on first use and prints where it lies."""
    run = subprocess.run([HERE / name], stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        fail(f"{name} failed")
    return run.stdout.strip()


def cache_folder() -> Path:
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quire"
    return Path(os.environ.get("QUIRE_CACHE") or default)


def find_models(names: list[str]) -> dict[str, Path]:
    """Model -> file, of those that are there; makes the files of one type where they lack."""
    folders = [Path(os.environ.get("QUIRE_MODELS") or cache_folder() / "models")]
    if any(MODELS[name].endswith(OPENVINO_READS) for name in names):
        folders.append(Path(script("models.sh")))
    found = {}
    for name in names:
        files = [folder / f"{MODELS[name]}.gguf" for folder in folders]
        if there := [file for file in files if file.exists()]:
            found[name] = there[0]
        else:
            print(f"table.py: {name} is left out: there is no {files[0]}", file=sys.stderr)
    return found


def line(row: Row, session: Session, sides: list[str], columns: list[str]) -> tuple[list[str], dict]:
    """The cells of the row, and the same for --json. `columns` are the sides of the whole table."""
    def value(side: str, got: dict[str, Figures]) -> float | None:
        values = [v for way in SIDES[side] if (v := row.value(got.get(way, {}))) is not None]
        return row.best(values) if values else None

    values = {side: [value(side, got) for got in session.rounds] for side in sides}

    def ratios_to(others: list[str]) -> list[float]:
        found = []
        for i, own in enumerate(values["quire"]):
            there = [values[side][i] for side in others if values[side][i] is not None]
            if own is not None and there:
                found.append(own / row.best(there))
        return found

    ratios = ratios_to([side for side in sides if side in PEERS.values()])
    baseline_ratios = ratios_to([side for side in sides if side == "baseline"])

    def spread(numbers: list[float], text) -> str:
        if not numbers:
            return "-"
        middle = text(statistics.median(numbers))
        return middle if len(numbers) == 1 else f"{middle} ({text(min(numbers))}-{text(max(numbers))})"

    numbers = {side: [v for v in values.get(side, []) if v is not None] for side in columns}
    own = numbers["quire"]
    known = own and (ratios or row.bound != "ratio")
    met = None
    if known and row.required:
        met = row.met(statistics.median(ratios) if ratios else 0, statistics.median(own))
    cells = [row.work, row.model, *(spread(numbers[side], row.text) for side in columns)]
    if "baseline" in columns:
        cells.append(spread(baseline_ratios, lambda r: f"{r:.3f}"))
    if any(side in PEERS.values() for side in columns):
        cells += [spread(ratios, lambda r: f"{r:.2f}"), row.requirement(), {True: "yes", False: "no", None: ""}[met]]
    cells.append(f"{session.foreign_cores:.2f}")
    return cells, {**dataclasses.asdict(row), "values": values, "ratios": ratios, "baseline_ratios": baseline_ratios,
                   "met": met}


def processor() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return found[1] if found else "unknown processor"


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare quire with its peers in interleaved runs.")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only rows whose work and model match it")
    parser.add_argument("--list", action="store_true", help="print the rows and stop")
    parser.add_argument("--model", action="append", default=[], metavar="FILE",
                        help="GGUF file to measure instead of the table's rows; may be given again")
    parser.add_argument("--prefill", type=int, default=512, help="of --model: prompt tokens (default 512)")
    parser.add_argument("--baseline", metavar="PROGRAM", help="another build's quire, measured beside this one")
    parser.add_argument("--peers", help="of llama,ik,openvino, or none (default: all; with --model: llama; "
                        "with --baseline: none)")
    parser.add_argument("--rounds", type=int, help="rounds to keep (default 5; with --baseline 7)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64, help="generated tokens that decode counts (default 64)")
    parser.add_argument("--quire", default=str(ROOT / "build/release/bin/quire"), help="the program to measure")
    parser.add_argument("--json", metavar="FILE", help="write everything measured")
    options = parser.parse_args()
    options.rounds = options.rounds or (7 if options.baseline else 5)
    usual = "none" if options.baseline else "llama" if options.model else ",".join(PEERS)
    options.peers = [peer for peer in (options.peers or usual).split(",") if peer != "none"]
    if unknown := set(options.peers) - set(PEERS):
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}")
    return options


def main() -> int:
    options = parse_options()
    own_files = {Path(file).stem: Path(file) for file in options.model}
    rows = table_rows()
    if own_files:
        works = {f"prefill {options.prefill}": f"prefill:{options.prefill}", "decode, B = 1": "decode:0"}
        rows = [Row(work, name, (figure,)) for name in own_files for work, figure in works.items()]
    rows = [row for row in rows if re.search(options.rows, f"{row.work} {row.model}", re.I)]
    if options.list or not rows:
        print("\n".join(f"{row.work}: {row.model} {row.requirement()}" for row in rows) or "no row matches")
        return 0 if rows else 2
    names = list(dict.fromkeys(row.model for row in rows))
    for file in [Path(options.quire), *([Path(options.baseline)] if options.baseline else []), *own_files.values()]:
        if not file.exists():
            fail(f"there is no {file}")
    files = own_files or find_models(names)
    setup = Setup(options.threads, options.tokens, str(Path(options.quire).resolve()),
                  baseline=str(Path(options.baseline).resolve()) if options.baseline else "",
                  llama=script("llama_cpp.sh") if "llama" in options.peers else "",
                  ik=script("ik_llama_cpp.sh") if "ik" in options.peers else "",
                  openvino=script("openvino.sh") if "openvino" in options.peers else "")

    own_sides = ["quire", "baseline"] if options.baseline else ["quire"]
    columns = own_sides + [PEERS[peer] for peer in PEERS if peer in options.peers]
    sessions: dict[tuple[str, str], Session] = {}
    sides_of: dict[str, list[str]] = {}
    for row in rows:
        if row.model not in files or (row.model, row.group) in sessions:
            continue
        file = files[row.model]
        figures = dict.fromkeys(figure for other in rows if (other.model, other.group) == (row.model, row.group)
                                for figure in other.figures)
        sides_of[row.model] = own_sides + [PEERS[peer] for peer in PEERS if peer in options.peers and
                                           (peer != "openvino" or file.stem.lower().endswith(OPENVINO_READS))]
        sessions[row.model, row.group] = measure.measure(file, list(figures), sides_of[row.model], options.rounds, setup)

    print(f"{processor()}, {options.threads} threads; tokens a second, medians of {options.rounds} rounds\n")
    head = ["work", "model", *columns, *(["ratio to the baseline"] if options.baseline else []),
            *(["ratio to the best peer", "required", "met"] if options.peers else []), "foreign cores"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    records, complete = [], True
    for row in rows:
        session = sessions.get((row.model, row.group))
        if session is None:
            complete = False
            continue
        cells, record = line(row, session, sides_of[row.model], columns)
        records.append(record)
        print(f"| {' | '.join(cells)} |")
    for session in sessions.values():
        if len(session.rounds) < options.rounds or session.failures:
            complete = False
            left_out = f"; left out: {', '.join(session.failures)}" if session.failures else ""
            print(f"\n{session.model} ({' '.join(session.figures)}): {len(session.rounds)} rounds kept, "
                  f"{session.dropped} dropped because the machine changed{left_out}")
    if options.json:
        report = {"processor": processor(), "threads": options.threads, "rounds": options.rounds, "tokens": options.tokens,
                  "rows": records, "sessions": [dataclasses.asdict(session) for session in sessions.values()]}
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
