#!/usr/bin/env python3
"""Runs every test of the project on what './dev' has built, and closes with one line 'N passed, N failed'.

Suites: the checks of the sources (tools/), the unit tests (ctest, each TEST counted), the end-to-end scripts
(tests/e2e) and, with --full, the slow scripts (tests/full), the unit tests under the sanitizers, and the fuzz targets
for a minute each (tools/fuzz.py). --quick keeps to
the checks and to the unit tests that SLOW_TESTS does not name.
A script passes with exit status 0 and is skipped with 77; one that closes with a line 'N passed, N failed' of its own
is counted by that line. Scripts find the program in QUIRE_BIN and the models in the folder QUIRE_MODELS.
What was skipped is listed before the closing line, by reason: that of GTEST_SKIP, a script's lines 'skipped NAME: REASON',
or else a script's last line.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

import fuzz

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
SCRIPT_LIMIT_S = {False: 600, True: 3600}  # by --full
CTEST_JOBS = 2
OWN_COUNT = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
SKIPPED_LINE = re.compile(r"^skipped(?: (\S+))?: (.+)$", re.M)
GTEST_SKIPPED = re.compile(r"^\S+:\d+: Skipped\n(.+)$", re.M)

# Beginnings of unit tests' names that the quick tier leaves out: together they take most of the time.
SLOW_TESTS = [
    "AwqScaling.", "Connection.", "Files/GgufTokenizerExport.", "Golden/RealLogits.", "Lifecycle.", "Limits.", "Linear.Avx",
    "Models/RealTokenizer.", "QuantizeJob.", "QuantizedFiles.", "QuantizedWeights.", "Rate.", "Real/", "SchedulerSimulation.",
    "Sizes/InverseFactor.", "Splitter.EqualsThePatterns", "Tiny/LongInvariance.", "Tiny/TinyEquality.",
    "Tokenizer.LinearOnAMegabyteOfTheSame", "Types/Invariance.", "WrittenCheckpoints.",
]


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reasons: list[tuple[str, str]] = field(default_factory=list)  # (reason, test) of those skipped

    def add(self, other: "Tally") -> None:
        self.reasons += other.reasons
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")


def announce(name: str, tally: Tally, began: float) -> None:
    verdict = "FAILED" if tally.failed else "ok"
    print(f"[{verdict}] {name} ({tally}; {time.monotonic() - began:.1f} s)", flush=True)


def script_reasons(name: str, output: str, skipped: int) -> list[tuple[str, str]]:
    """Why the tests of a script were skipped, from what it printed."""
    if not skipped:
        return []
    found = [(reason, f"{name} {test}".rstrip()) for test, reason in SKIPPED_LINE.findall(output)]
    lines = [line for line in output.splitlines() if line.strip() and not OWN_COUNT.match(line)]
    return found or [(lines[-1] if lines else "it gave no reason", name)]


def list_skipped(tally: Tally) -> None:
    tests: dict[str, list[str]] = {}
    for reason, test in tally.reasons:
        tests.setdefault(reason, []).append(test)
    for reason, names in sorted(tests.items()):
        print(f"[skipped] {reason}:")
        for name in dict.fromkeys(names):
            print(f"  {name}")


def quote(output: str) -> None:
    """Prints a program's output so that no line of it can pass for ours."""
    for line in output.rstrip().splitlines():
        print(f"  | {line}")


def run_script(name: str, command: list, environment: dict, limit_s: int) -> Tally:
    began = time.monotonic()
    # A group of its own, so that what the script started ends with it.
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit_s)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output, code = f"{output}\nstopped after {limit_s} s", 1
    if counted := OWN_COUNT.findall(output):
        tally = Tally(*(int(number or 0) for number in counted[-1]))
        if code not in (0, SKIPPED) and tally.failed == 0:
            tally.failed = 1
    else:
        tally = Tally(int(code == 0), int(code not in (0, SKIPPED)), int(code == SKIPPED))
    tally.reasons = script_reasons(name, output, tally.skipped)
    if tally.failed:
        quote(output)
    announce(name, tally, began)
    return tally


def checks(environment: dict) -> Tally:
    tally = Tally()
    commands = {
        "layers and layout": [sys.executable, "tools/check_layers.py"],
        "format": [sys.executable, "tools/format.py", "--check"],
        "map of the folders": [sys.executable, "tools/draw_map.py", "--check"],
        "shell syntax": ["bash", "-n", "dev", ".ci/run", *sorted(map(str, ROOT.glob("*/**/*.sh")))],
    }
    for test in sorted(ROOT.glob("tools/*_test.py")):
        commands[test.name] = [sys.executable, str(test)]
    for name, command in commands.items():
        tally.add(run_script(name, command, environment, SCRIPT_LIMIT_S[False]))
    return tally


def report_spills() -> None:
    """Says what check_spills.py finds in the release objects; it does not decide over the result yet."""
    objects = sorted(ROOT.glob("build/release/**/avx*.o"))
    if objects:
        run = subprocess.run([sys.executable, ROOT / "tools/check_spills.py", *objects], capture_output=True, text=True)
        print("[info] vector registers in hot loops: " + run.stdout.splitlines()[-1], flush=True)


def read_results(suite: ElementTree.Element, preset: str) -> Tally:
    """The tally of a JUnit file of ctest."""
    total, failed = int(suite.get("tests")), int(suite.get("failures"))
    tally = Tally(failed=failed)
    for case in suite.iter("testcase"):
        if case.find("skipped") is not None or case.get("status") == "disabled":
            tally.skipped += 1
            said = GTEST_SKIPPED.search(case.findtext("system-out", ""))
            tally.reasons.append((said[1] if said else "it gave no reason", f"{case.get('name')} ({preset})"))
    tally.passed = total - failed - tally.skipped
    return tally


def unknown_slow_tests(build: Path) -> list[str]:
    """Names in SLOW_TESTS that no test has any more."""
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only"], capture_output=True, text=True).stdout
    names = re.findall(r"^ *Test +#\d+: (\S+)", listing, re.M)
    return [slow for slow in SLOW_TESTS if not any(name.startswith(slow) for name in names)]


def unit_tests(preset: str, environment: dict, quick: bool = False) -> Tally:
    """ctest on build/PRESET; what passes is silent, what fails shows its output."""
    began = time.monotonic()
    build = ROOT / "build" / preset
    if unknown := unknown_slow_tests(build):
        print(f"SLOW_TESTS names no test of {preset}: {', '.join(unknown)}")
        return Tally(failed=1)
    exclude = ["--exclude-regex", "^(" + "|".join(map(re.escape, SLOW_TESTS)) + ")"] if quick else []
    results = build / "ctest.xml"
    results.unlink(missing_ok=True)
    ctest = subprocess.Popen(
        ["ctest", "--test-dir", build, "-j", str(CTEST_JOBS), "--output-on-failure", "--output-junit", results, *exclude],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    for line in ctest.stdout:
        if not re.match(r"\s*Start +\d+: |.*\.{3} +Passed +[\d.]+ sec$|.*\*{3}Skipped", line.rstrip()):
            quote(line)
    ctest.wait()
    if not results.exists():
        tally = Tally(failed=1)
    else:
        tally = read_results(ElementTree.parse(results).getroot(), preset)
        if not tally.passed + tally.failed + tally.skipped:
            tally.failed = 1
            print(f"no unit test in {build}")
    announce(f"unit tests, {preset}", tally, began)
    return tally


def scripts(folder: str, environment: dict, limit_s: int) -> Tally:
    """Runs the folder's scripts; a file that does not begin with '#!' is a module of theirs."""
    tally = Tally()
    for path in sorted(ROOT.glob(f"{folder}/*")):
        if path.is_file() and path.read_bytes().startswith(b"#!"):
            command = [sys.executable if path.suffix == ".py" else "bash", path]
            tally.add(run_script(str(path.relative_to(ROOT)), command, environment, limit_s))
    return tally


def fuzzing(seconds: int) -> Tally:
    """Each fuzz target with each compiler; what happened is said as it happens."""
    total = Tally()
    print(f"[info] fuzzing: {len(fuzz.target_names())} targets, {seconds} s each, {fuzz.AT_A_TIME} at a time", flush=True)

    def tell(outcome: fuzz.Outcome, took: float) -> None:
        tally = Tally(**{outcome.verdict: 1})
        if outcome.verdict == "skipped":
            tally.reasons.append((outcome.text, outcome.name))
        if outcome.verdict == "failed":
            quote(outcome.text)
        said = f"fuzz: {outcome.name}" + (f", {outcome.text}" if outcome.verdict == "passed" else "")
        announce(said, tally, time.monotonic() - took)
        total.add(tally)

    fuzz.run_all(seconds, tell)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the project's tests.")
    parser.add_argument("--fuzz-seconds", type=int, default=fuzz.seconds_by_default(),
                        help="with --full: for each fuzz target (60, or QUIRE_FUZZ_SECONDS)")
    tier = parser.add_mutually_exclusive_group()
    tier.add_argument("--full", action="store_true", help="also the slow scripts and the sanitizer builds")
    tier.add_argument("--quick", action="store_true", help="only the checks of the sources and the fast unit tests")
    tier.add_argument("--checks-only", action="store_true", help="only the checks of the sources")
    arguments = parser.parse_args()

    environment = os.environ | {"QUIRE_BIN": str(ROOT / "build/release/bin/quire"), "PYTHONDONTWRITEBYTECODE": "1"}
    total = checks(environment)
    if not arguments.checks_only:
        if not arguments.quick:
            report_spills()
        total.add(unit_tests("release", environment, arguments.quick))
    if not arguments.checks_only and not arguments.quick:
        total.add(scripts("tests/e2e", environment, SCRIPT_LIMIT_S[arguments.full]))
    if arguments.full:
        total.add(scripts("tests/full", environment, SCRIPT_LIMIT_S[True]))
        # The sanitizers slow a real model too much; its tests skip without the folder of models.
        without_models = {name: value for name, value in environment.items() if name != "QUIRE_MODELS"}
        for preset in ("asan", "tsan"):
            total.add(unit_tests(preset, without_models))
        total.add(fuzzing(arguments.fuzz_seconds))
    list_skipped(total)
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
