#!/usr/bin/env python3
"""Proves that run_tests.py counts what scripts report, and that no failure passes for success."""

import contextlib
import io
import os
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import run_tests


def run(code: str, limit_s: int = 20) -> tuple[str, str]:
    """The tally of a Python script, and what was printed about it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        tally = run_tests.run_script("script", [sys.executable, "-c", code], dict(os.environ), limit_s)
    return str(tally), printed.getvalue()


class RunTestsTest(unittest.TestCase):
    def test_a_script_without_a_count_is_one_test(self):
        self.assertEqual(run("")[0], "1 passed, 0 failed")
        self.assertEqual(run("raise SystemExit(3)")[0], "0 passed, 1 failed")
        self.assertEqual(run("raise SystemExit(77)")[0], "0 passed, 0 failed, 1 skipped")

    def test_a_script_with_a_closing_count_is_counted_by_it(self):
        self.assertEqual(run("print('1 passed, 0 failed'); print('12 passed, 0 failed, 3 skipped')")[0],
                         "12 passed, 0 failed, 3 skipped")
        self.assertEqual(run("print('12 passed, 2 failed'); raise SystemExit(1)")[0], "12 passed, 2 failed")

    def test_a_failing_status_fails_whatever_was_counted(self):
        self.assertEqual(run("print('12 passed, 0 failed'); raise SystemExit(1)")[0], "12 passed, 1 failed")

    def test_scripts_say_why_they_skip(self):
        def reasons(code: str) -> list:
            with contextlib.redirect_stdout(io.StringIO()):
                return run_tests.run_script("script", [sys.executable, "-c", code], dict(os.environ), 20).reasons

        self.assertEqual(reasons("print('noise'); print('needs root'); raise SystemExit(77)"), [("needs root", "script")])
        self.assertEqual(reasons("raise SystemExit(77)"), [("it gave no reason", "script")])
        self.assertEqual(reasons("print('skipped test_a: no model\\nskipped test_b: no net\\n1 passed, 0 failed, 2 skipped')"),
                         [("no model", "script test_a"), ("no net", "script test_b")])
        self.assertEqual(reasons("print('skipped test_a: not counted\\n1 passed, 0 failed')"), [])

    def test_results_of_ctest_name_what_was_skipped(self):
        said = "[ RUN ]\nsrc/a_test.cc:7: Skipped\nQUIRE_MODELS is not set\n\n[  SKIPPED ] A.B\n"
        suite = ElementTree.fromstring(
            '<testsuite tests="4" failures="1"><testcase name="A.A" status="run"/><testcase name="A.F" status="fail"/>'
            f'<testcase name="A.B" status="notrun"><skipped/><system-out>{said}</system-out></testcase>'
            '<testcase name="A.C" status="notrun"><skipped/></testcase></testsuite>')
        tally = run_tests.read_results(suite, "asan")
        self.assertEqual(str(tally), "1 passed, 1 failed, 2 skipped")
        self.assertEqual(tally.reasons, [("QUIRE_MODELS is not set", "A.B (asan)"), ("it gave no reason", "A.C (asan)")])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            run_tests.list_skipped(tally)
        self.assertIn("[skipped] QUIRE_MODELS is not set:\n  A.B (asan)\n", printed.getvalue())

    def test_too_long_is_a_failure(self):
        # The child that the script starts holds its output open; it has to end too.
        tally, printed = run("import os, time; os.fork(); print('begun', flush=True); time.sleep(60)", limit_s=1)
        self.assertEqual(tally, "0 passed, 1 failed")
        self.assertIn("begun", printed)
        self.assertIn("stopped after 1 s", printed)

    def test_quoted_output_does_not_look_like_the_closing_line(self):
        _, printed = run("print('12 passed, 2 failed'); raise SystemExit(1)")
        self.assertNotRegex(printed, r"(?m)^\d+ passed, \d+ failed$")
        self.assertIn("12 passed, 2 failed", printed)


if __name__ == "__main__":
    unittest.main()
