#!/usr/bin/env python3
"""Builds the fuzz targets of tests/fuzz with the Clang versions of Debian 12 and runs them, two at a time.

The newest compiler that is there fuzzes each target for --seconds; with the others each target goes once through what is
kept. What reaches new code stays in .cache/fuzz/corpus/NAME, so every run goes on where the last one ended. What breaks a
target lands in .cache/fuzz/findings/NAME; the message says how to run it again and what to do with it.

usage: fuzz.py [--seconds N] [NAME...]      e.g. fuzz.py --seconds 600 quire_http_fuzz
Exit status 1 where a target fails or does not build; 77 (skipped) where there is no compiler. QUIRE_FUZZ_SECONDS is the
default of --seconds.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache/fuzz"
VERSIONS = ("16", "14")  # of Clang; the first that is there fuzzes
AT_A_TIME = 2
SKIPPED = 77
SLOWEST_INPUT_S = 25
MEMORY_MIB = 3072
# A finding of UBSan stops the target as one of ASan does.
SANITIZER_OPTIONS = {"ASAN_OPTIONS": "abort_on_error=0", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


@dataclass
class Outcome:
    name: str     # "quire_gguf_fuzz (clang 16)"
    verdict: str  # "passed", "failed" or "skipped"
    text: str     # what was done, what broke, or why it was skipped


def seconds_by_default() -> int:
    return int(os.environ.get("QUIRE_FUZZ_SECONDS", "60"))


def target_names() -> list[str]:
    return re.findall(r"^quire_fuzz\((\w+)", (ROOT / "tests/CMakeLists.txt").read_text(), re.M)


def lacks(version: str) -> str:
    """Why this Clang cannot build fuzz targets; empty: it can."""
    try:
        run = subprocess.run([f"clang++-{version}", "-fsanitize=fuzzer,address,undefined", "-x", "c++", "-", "-o", "/dev/null"],
                             input='extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }',
                             capture_output=True, text=True)
    except FileNotFoundError:
        return f"clang-{version} is not installed"
    return f"clang-{version} has no libFuzzer: install libclang-rt-{version}-dev" if run.returncode else ""


def build(version: str, names: list[str]) -> str:
    """Builds the targets, and no more than they need. What it said where that fails, or empty."""
    tree = ROOT / f"build/fuzz-clang-{version}"
    environment = os.environ | {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    commands = [["nice", "ninja", "-C", tree, "-j", os.environ.get("JOBS", str(os.cpu_count())), "--quiet", *names]]
    if not (tree / "build.ninja").exists():
        commands.insert(0, [
            "cmake", "-B", tree, "-S", ROOT, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER=clang++-{version}", "-DQUIRE_FUZZ=ON",
            "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DQUIRE_SANITIZE=address;undefined;fuzzer-no-link"])
    for command in commands:
        run = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace")
        if run.returncode:
            return "\n".join(run.stdout.splitlines()[-40:])
    return ""


def ages(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.iterdir()}


def broken(name: str, program: Path, findings: Path, before: dict[Path, int], output: str) -> str:
    """What to say of a target that failed. What it found before it may have found again."""
    lines = ["\n".join(output.splitlines()[-60:])]
    new = [path for path, age in sorted(ages(findings).items()) if before.get(path) != age]
    for path in new:
        lines += [f"input:     {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}",
                  f"reproduce: {program.relative_to(ROOT) if program.is_relative_to(ROOT) else program} {path}"]
    lines.append(f"to do:     mend the source, then copy the input to tests/fuzz/inputs/{name}/ under a name that says what it "
                 "is: from then on it is a test" if new else "no input was left: the output says all there is")
    return "\n".join(lines)


def run_target(name: str, program: Path, seconds: int, cache: Path = CACHE) -> Outcome:
    """Fuzzes for `seconds`; 0: goes through what is kept, once."""
    corpus, findings = cache / "corpus" / name, cache / "findings" / name
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    before = ages(findings)
    length = [f"-max_total_time={seconds}"] if seconds else ["-runs=0"]
    environment = os.environ | SANITIZER_OPTIONS
    if os.access("/dev/shm", os.W_OK):
        environment["TMPDIR"] = "/dev/shm"  # for those that write files
    command = ["nice", program, *length, f"-timeout={SLOWEST_INPUT_S}", f"-rss_limit_mb={MEMORY_MIB}", "-print_final_stats=1",
               f"-artifact_prefix={findings}/", corpus, ROOT / "tests/fuzz/inputs" / name]
    try:
        # Beyond its time a target reads the corpus and finishes one input.
        run = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds + 600)
    except subprocess.TimeoutExpired as expired:
        said = expired.stdout or b""
        output = said.decode(errors="replace") if isinstance(said, bytes) else said
        return Outcome(name, "failed", broken(name, program, findings, before, f"{output}\ndid not end by itself"))
    if run.returncode:
        return Outcome(name, "failed", broken(name, program, findings, before, run.stdout))
    runs = re.findall(r"stat::number_of_executed_units: *(\d+)", run.stdout)
    return Outcome(name, "passed", f"{runs[-1] if runs else '?'} inputs, {sum(1 for _ in corpus.iterdir())} kept")


def run_all(seconds: int, tell: Callable[[Outcome, float], None], names: list[str] | None = None) -> None:
    """Tells of each target with each compiler as it ends, with the time it took."""
    names = names or target_names()
    fuzzed = False
    for version in VERSIONS:
        began = time.monotonic()
        if reason := lacks(version):
            tell(Outcome(f"fuzz targets (clang {version})", "skipped", reason), 0)
            continue
        if said := build(version, names):
            tell(Outcome(f"fuzz targets (clang {version})", "failed", f"the build failed:\n{said}"), time.monotonic() - began)
            continue
        length, fuzzed = (0 if fuzzed else seconds), True
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            runs = [pool.submit(timed, name, ROOT / f"build/fuzz-clang-{version}/bin/{name}", length) for name in names]
            for run in as_completed(runs):
                outcome, took = run.result()
                outcome.name += f" (clang {version})"
                tell(outcome, took)


def timed(name: str, program: Path, seconds: int) -> tuple[Outcome, float]:
    began = time.monotonic()
    outcome = run_target(name, program, seconds)
    return outcome, time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description="Build and run the fuzz targets.")
    parser.add_argument("--seconds", type=int, default=seconds_by_default(), help="for each target (60)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="targets; all where none is named")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(target_names()):
        parser.error(f"no fuzz target: {', '.join(sorted(unknown))}; there are {', '.join(target_names())}")
    verdicts = []

    def tell(outcome: Outcome, took: float) -> None:
        verdicts.append(outcome.verdict)
        print(f"[{outcome.verdict}] {outcome.name} ({took:.0f} s): {outcome.text}", flush=True)

    run_all(arguments.seconds, tell, arguments.names)
    if "failed" in verdicts:
        return 1
    return 0 if "passed" in verdicts else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
