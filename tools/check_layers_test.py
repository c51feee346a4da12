#!/usr/bin/env python3
"""Proves that check_layers.py finds each kind of violation, and nothing in a tree that has none."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).parent / "check_layers.py"

GOOD = {
    "docs/architecture.md": "| folder | may include |\n|---|---|\n| `base/` | nothing |\n| `text/` | base |\n| `cli/` | base, text |\n",
    "src/base/CMakeLists.txt": "# comment (with parentheses)\nquire_library(base\n  SOURCES a.cc\n  TESTS a_test.cc)\n",
    "src/base/a.h": "// A.\n#pragma once\n#include <vector>\n",
    "src/base/a.cc": '#include "base/a.h"\n#include <nlohmann/json.hpp>\n',
    "src/base/a_test.cc": '#include "base/a.h"\n#include <gtest/gtest.h>\n',
    "src/text/CMakeLists.txt": "quire_library(text\n  DEPS base\n  SOURCES t.cc)\n",
    "src/text/t.h": "// T.\n#pragma once\n",
    "src/text/t.cc": '#include "text/t.h"\n\n#include "base/a.h"\n',
    "src/cli/CMakeLists.txt": "quire_library(cli DEPS base text SOURCES c.cc)\nadd_executable(quire main.cc)\n",
    "src/cli/c.cc": '#include "text/t.h"\n',
    "src/cli/main.cc": "int main() {\n  return 0;\n}\n",
    "tests/CMakeLists.txt": "quire_test(x DEPS cli SOURCES x_test.cc)\n",
    "tests/support/s.h": "// S.\n#pragma once\n",
    "tests/x_test.cc": '#include "support/s.h"\n#include "text/t.h"\n',
}


def violations_of(changes: dict[str, str]) -> tuple[int, str]:
    """Runs the check on GOOD with `changes` applied ("" removes a file)."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (GOOD | changes).items():
            if text:
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        run = subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr


class CheckLayersTest(unittest.TestCase):
    def assert_found(self, changes: dict[str, str], where: str, what: str) -> None:
        code, output = violations_of(changes)
        self.assertEqual(code, 1, output)
        found = [line for line in output.splitlines() if line.startswith(where) and what in line]
        self.assertTrue(found, f"no line '{where} … {what}' in:\n{output}")

    def test_a_tree_without_violations_passes(self):
        self.assertEqual(violations_of({}), (0, ""))

    def test_cycle(self):
        self.assert_found(
            {
                "src/base/CMakeLists.txt": "quire_library(base DEPS text SOURCES a.cc TESTS a_test.cc)\n",
                "docs/architecture.md": GOOD["docs/architecture.md"].replace("nothing", "text"),
            },
            "src/base/CMakeLists.txt:1:", "cycle base -> text -> base",
        )

    def test_unknown_dependency(self):
        self.assert_found({"src/text/CMakeLists.txt": "quire_library(text DEPS base nowhere SOURCES t.cc)\n"},
                          "src/text/CMakeLists.txt:1:", "'nowhere'")

    def test_undeclared_include(self):
        self.assert_found({"src/base/a.cc": '#include "base/a.h"\n#include "text/t.h"\n'},
                          "src/base/a.cc:2:", "does not declare 'text'")

    def test_include_through_another_folder_is_undeclared(self):
        self.assert_found(
            {
                "src/cli/CMakeLists.txt": "quire_library(cli DEPS text SOURCES c.cc main.cc)\n",
                "src/cli/c.cc": '#include "base/a.h"\n',
            },
            "src/cli/c.cc:1:", "does not declare 'base'",
        )

    def test_undeclared_include_in_a_unit_test(self):
        self.assert_found({"src/base/a_test.cc": '#include "text/t.h"\n'}, "src/base/a_test.cc:1:", "'text'")

    def test_dependency_missing_in_the_document(self):
        self.assert_found({"src/text/CMakeLists.txt": "quire_library(text SOURCES t.cc)\n", "src/text/t.cc": "\n"},
                          "docs/architecture.md:4:", "DEPS nothing")

    def test_folder_missing_in_the_document(self):
        self.assert_found({"docs/architecture.md": "| `base/` | nothing |\n| `cli/` | base, text |\n"},
                          "docs/architecture.md:1:", "src/text/")

    def test_source_in_no_target(self):
        self.assert_found({"src/text/lost.cc": "\n"}, "src/text/lost.cc:1:", "no target")

    def test_source_named_in_properties_only_is_in_no_target(self):
        self.assert_found(
            {
                "src/text/lost.cc": "\n",
                "src/text/CMakeLists.txt": GOOD["src/text/CMakeLists.txt"]
                + "set_source_files_properties(lost.cc PROPERTIES COMPILE_OPTIONS -O1)\n",
            },
            "src/text/lost.cc:1:", "no target",
        )

    def test_test_in_no_target(self):
        self.assert_found({"tests/y_test.cc": "\n"}, "tests/y_test.cc:1:", "no target")

    def test_source_in_a_folder_without_a_library(self):
        self.assert_found({"src/new/n.cc": "\n"}, "src/new/n.cc:1:", "no CMakeLists.txt")

    def test_relative_include(self):
        self.assert_found({"src/text/t.cc": '#include "t.h"\n'}, "src/text/t.cc:1:", "no path below src/")
        self.assert_found({"src/text/t.cc": '#include "../base/a.h"\n'}, "src/text/t.cc:1:", "no path below src/")
        self.assert_found({"src/text/t.cc": '#include "support/s.h"\n'}, "src/text/t.cc:1:", "no path below src/")

    def test_third_party_type_in_a_header(self):
        self.assert_found({"src/text/t.h": "// T.\n#pragma once\n#include <nlohmann/json.hpp>\n"},
                          "src/text/t.h:3:", "third-party")

    def test_header_without_pragma_once(self):
        self.assert_found({"src/text/t.h": "// T.\n"}, "src/text/t.h:1:", "#pragma once")

    def test_header_without_leading_comment(self):
        self.assert_found({"src/text/t.h": "#pragma once\n"}, "src/text/t.h:1:", "leading comment")

    def test_long_file(self):
        self.assert_found({"src/text/t.cc": "\n" * 801}, "src/text/t.cc:801:", "801 lines")
        self.assertEqual(violations_of({"src/text/t.cc": "\n" * 800})[0], 0)

    def test_long_function(self):
        for opening in ("void f(int a) {", "void f(int a,\n       int b) {", "struct S {\n  void f() {"):
            indent = "  " if "struct" in opening else ""
            body = f"int before;\n{opening}\n" + f"{indent}  if (x) {{\n{indent}  }}\n" * 60 + indent + "}\n"
            self.assert_found({"src/text/t.cc": body}, f"src/text/t.cc:{3 if indent else 2}:", "function of")
        short = "void f(int a) {\n" + "  x();\n" * 60 + "}\n"
        self.assertEqual(violations_of({"src/text/t.cc": short * 3})[0], 0)


if __name__ == "__main__":
    unittest.main()
