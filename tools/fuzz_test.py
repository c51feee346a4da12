#!/usr/bin/env python3
"""Proves that fuzz.py takes no failure for success and says what to do with what it found."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import fuzz


class FuzzTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def outcome(self, script: str, seconds: int = 1) -> fuzz.Outcome:
        """Of a target that is this shell script."""
        program = self.folder / "target"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        return fuzz.run_target("quire_x_fuzz", program, seconds, self.folder)

    def test_every_target_has_inputs_and_a_line_in_the_documentation(self):
        documentation = (fuzz.ROOT / "docs/testing.md").read_text()
        self.assertTrue(fuzz.target_names())
        for name in fuzz.target_names():
            self.assertTrue(any((fuzz.ROOT / "tests/fuzz/inputs" / name).iterdir()), name)
            self.assertIn(f"`{name}`", documentation)

    def test_a_target_that_ends_well_passes_with_its_count(self):
        outcome = self.outcome("echo stat::number_of_executed_units: 42")
        self.assertEqual((outcome.verdict, outcome.text), ("passed", "42 inputs, 0 kept"))

    def test_a_finding_is_named_with_what_to_do(self):
        (self.folder / "findings/quire_x_fuzz").mkdir(parents=True)
        (self.folder / "findings/quire_x_fuzz/crash-old").write_text("x")
        outcome = self.outcome('for a in "$@"; do case $a in -artifact_prefix=*) echo y > "${a#*=}crash-new";; esac; done\n'
                               "echo stack trace; exit 77\n")
        self.assertEqual(outcome.verdict, "failed")
        self.assertIn("stack trace", outcome.text)
        self.assertIn(f"reproduce: {self.folder}/target {self.folder}/findings/quire_x_fuzz/crash-new", outcome.text)
        self.assertIn("tests/fuzz/inputs/quire_x_fuzz/", outcome.text)
        self.assertNotIn("crash-old", outcome.text)

    def test_a_failure_without_an_input_is_one(self):
        outcome = self.outcome("exit 1")
        self.assertEqual(outcome.verdict, "failed")
        self.assertIn("no input was left", outcome.text)

    def test_the_time_and_the_folders_are_passed_on(self):
        for seconds, length in (7, "-max_total_time=7"), (0, "-runs=0"):
            outcome = self.outcome('echo "$@"; exit 1', seconds)
            self.assertIn(f"{length} ", outcome.text)
            self.assertIn(f"{self.folder}/corpus/quire_x_fuzz {fuzz.ROOT}/tests/fuzz/inputs/quire_x_fuzz", outcome.text)

    def test_a_compiler_that_is_not_there_is_a_reason(self):
        self.assertEqual(fuzz.lacks("0"), "clang-0 is not installed")


if __name__ == "__main__":
    unittest.main()
