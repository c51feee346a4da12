#!/usr/bin/env python3
"""Proves that check_layers.py finds each kind of violation, and nothing in a tree that has none."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import check_layers

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
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (GOOD | changes).items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = check_layers.main(folder)
    return code, printed.getvalue()


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
                          "src/text/t.h:3:", "not of the standard library")
        self.assert_found({"src/text/t.h": "// T.\n#pragma once\n#include <some_new_library.h>\n"},
                          "src/text/t.h:3:", "not of the standard library")
        self.assert_found({"src/text/t.h": "// T.\n#pragma once\n#include <gtest/gtest.h>\n"},
                          "src/text/t.h:3:", "not of the standard library")
        allowed = "// T.\n#pragma once\n#include <gtest/gtest.h>\n#include <vector>\n"
        self.assertEqual(violations_of({"src/text/test_t.h": allowed}), (0, ""))

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

    def test_too_many_parameters(self):
        seven = "int a, std::map<int, int> b, int c,\n       int d, int e, int f, std::function<void(int, int)> g"
        six = "int a, std::map<int, int> b = {1, 2}, int c,\n  int d = max(1, 2), int e, std::function<void(int, int)> f"
        for before, after in (("void f(", ") {\n}\n"), ("static const T* f(", ");\n"), ("struct S {\n  S(", ");\n};\n"),
                              ("Result<std::vector<int>> T::f(", ") {\n}\n")):
            line = 2 if "struct" in before else 1
            self.assert_found({"src/text/t.cc": before + seven + after}, f"src/text/t.cc:{line}:", "has 7 parameters")
            self.assertEqual(violations_of({"src/text/t.cc": before + six + after}), (0, ""))
        calls = "void f() {\n  return f(1, 2, 3, 4, 5, 6, 7);\n  x = f(1, 2, 3, 4, 5, 6, 7);\n  // void f(a, b, c, d, e, f, g)\n}\n"
        self.assertEqual(violations_of({"src/text/t.cc": calls}), (0, ""))

    def test_libraries_neither_print_nor_exit(self):
        for statement in ("std::printf(text);", "printf(text);", "std::cout << 1;", "std::cerr << 1;", "std::fprintf(stderr, text);",
                          "std::exit(1);", "exit(1);", "std::abort();", "puts(text);"):
            code = f"void f() {{\n  {statement}\n}}\n"
            self.assert_found({"src/text/t.cc": code}, "src/text/t.cc:2:", "a library uses")
            self.assertEqual(violations_of({"src/cli/c.cc": code}), (0, ""))
            self.assertEqual(violations_of({"src/base/a_test.cc": code}), (0, ""))
        fine = 'void f() {\n  // std::exit(1)\n  log("printf");\n  snprintf(a, 2, b);\n  loop.exit(1);\n  abort();\n}\n'
        self.assertEqual(violations_of({"src/text/t.cc": fine}), (0, ""))

    def test_functions_that_nothing_uses(self):
        def header(declarations: str) -> dict[str, str]:
            return {"src/text/t.h": "// T.\n#pragma once\n" + declarations}

        defined = {"src/text/t.cc": '#include "text/t.h"\nint lost(int a) {\n  return a;\n}\n// lost(1) is no use\n'}
        self.assert_found(header("int lost(int a);\n"), "src/text/t.h:3:", "nothing uses lost")
        self.assert_found(header("int lost(int a);\n") | defined, "src/text/t.h:3:", "nothing uses lost")
        self.assert_found(header("struct S {\n  virtual const T& lost() const = 0;\n};\n"
                                 "struct U {\n  const T& lost() const override;\n};\n"), "src/text/t.h:4:", "nothing uses lost")
        for use in ("int x = lost(1);\n", "void f() {\n  return lost(1);\n}\n", "auto* p = &lost;\n", "bool b = a\n  && lost(1);\n",
                    "void f() {\n  out << x\n      << lost(1);\n  lost(2);\n}\n"):
            changes = header("int lost(int a);\n") | defined | {"src/cli/c.cc": use}
            self.assertEqual(violations_of(changes), (0, ""), use)


if __name__ == "__main__":
    unittest.main()
