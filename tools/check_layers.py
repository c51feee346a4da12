#!/usr/bin/env python3
"""Holds the sources against the layout rules of docs/architecture.md.

A folder of src/ is one library with a written dependency list (quire_library in its CMakeLists.txt). This check fails
on: a cycle among the lists; an include of a folder that the list does not name; a list that differs from the table in
docs/architecture.md; a source that no target builds; a relative include; a header that includes more than the standard
library and quire; a header without `#pragma once` or a leading comment; a file over 800 lines; a function over 120; one
with more than 6 parameters; a library that prints or exits; a function declared in a header that nothing uses.

usage: check_layers.py [ROOT]      exit 1 after naming each violation as file:line and what to do about it
"""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 120
MAX_PARAMETERS = 6
TEXT_SUFFIXES = {".cc", ".h", ".py", ".sh"}

# What headers may include with <...>: the C++ standard library, and what is named here with the reason.
STANDARD_HEADERS = set("""
    algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits
    cmath compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib
    cstring ctime cuchar cwchar cwctype deque exception execution expected filesystem format forward_list fstream
    functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
    memory_resource mutex new numbers numeric optional ostream print queue random ranges ratio regex scoped_allocator
    semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
    strstream syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility
    valarray variant vector version""".split())
OTHER_HEADERS = {
    "stddef.h": "C's types, in headers that define no more",
    "stdint.h": "C's types, in headers that define no more",
}
TEST_HEADERS = {"gtest/gtest.h": "in headers that tests share"}

# What a library may not do: print, or end the program. cli/ is the program; check.h ends it at a bug.
PRINTS_OR_EXITS = re.compile(
    r"\b(?:v?printf|puts|putchar|perror|stdout|stderr|quick_exit|_Exit|_exit)\b"
    r"|\bstd::(?:cout|cerr|clog|exit|abort|terminate)\b|(?<![\w.>:])(?:::)?exit(?=\()")
MAY_PRINT = ("src/cli/", "src/base/check.h")

# Functions that nothing uses yet and that may stay a while, with the reason.
KEPT_UNUSED = {
    "drained": "src/engine/engine.h: a server that waits for its end will ask",
    "memory_plan": "src/engine/generator.h: goes with the generator",
}

# A declaration or definition up to its parenthesis, as clang-format writes it: a type and a name. Signs between two
# spaces are operators, and so make an expression.
DECLARES = re.compile(r"^ *(?!(?:return|co_return|co_yield|else|throw|case|new|delete|using|typedef|goto|asm)\b)"
                      r"(?![^(\n]* [&*<>|]+ )(?:\[\[\w+\]\] )?[A-Za-z_][\w:<>,*& ]*[\w>*&] *[ *&](?:\w+::)*([a-z_]\w*)\(", re.M)
CONSTRUCTS = re.compile(r"^ *(?:explicit |constexpr )*(?:\w+::)*([A-Z]\w*)\(", re.M)
LITERAL_OR_COMMENT = re.compile(
    r"""R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'""")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
COMMAND = re.compile(r"(\w+)\s*\(([^()]*)\)", re.S)


@dataclass
class Folder:
    """One library: what its CMakeLists.txt declares."""

    name: str
    cmake: Path
    deps: list[str] = field(default_factory=list)
    deps_line: int = 1
    built: set[str] = field(default_factory=set)  # sources, relative to the folder
    extra_deps: dict[str, list[str]] = field(default_factory=dict)  # source of a quire_test -> its own DEPS


class Report:
    def __init__(self, root: Path):
        self.root = root
        self.violations: list[str] = []

    def add(self, path: Path, line: int, message: str) -> None:
        self.violations.append(f"{path.relative_to(self.root)}:{line}: {message}")


def cmake_commands(text: str):
    """Yields (command, arguments, line) of each command without nested parentheses, comments removed."""
    text = re.sub(r"#[^\n]*", "", text)
    for match in COMMAND.finditer(text):
        yield match[1], match[2].split(), text.count("\n", 0, match.start()) + 1


def keyword_values(arguments: list[str], keyword: str) -> list[str]:
    """The values after `keyword`, up to the next all-capitals word."""
    if keyword not in arguments:
        return []
    values = []
    for word in arguments[arguments.index(keyword) + 1 :]:
        if word.isupper() and word.isalpha():
            break
        values.append(word)
    return values


def read_folder(path: Path) -> Folder:
    folder = Folder(path.name, path / "CMakeLists.txt")
    for command, arguments, line in cmake_commands(folder.cmake.read_text()):
        if command == "set_source_files_properties":
            continue
        sources = [word.strip('"') for word in arguments if word.strip('"').endswith(".cc")]
        sources = [source.removeprefix("${CMAKE_CURRENT_SOURCE_DIR}/") for source in sources]
        folder.built.update(sources)
        if command == "quire_library":
            folder.deps += keyword_values(arguments, "DEPS")
            folder.deps_line = line
        elif command == "quire_test":
            for source in sources:
                folder.extra_deps[source] = keyword_values(arguments, "DEPS")
    return folder


def check_cycles(folders: dict[str, Folder], report: Report) -> None:
    state: dict[str, str] = {}

    def visit(name: str, trail: list[str]) -> None:
        if state.get(name) == "done":
            return
        if name in trail:
            cycle = " -> ".join(trail[trail.index(name) :] + [name])
            report.add(folders[name].cmake, folders[name].deps_line, f"dependency cycle {cycle}: remove one of these DEPS")
            return
        for dep in folders[name].deps:
            if dep in folders:
                visit(dep, trail + [name])
            else:
                report.add(folders[name].cmake, folders[name].deps_line, f"DEPS names '{dep}', which is no folder of src/")
        state[name] = "done"

    for name in folders:
        visit(name, [])


def check_documented(folders: dict[str, Folder], report: Report) -> None:
    """The dependency table of docs/architecture.md, rows '| `name/` | dep, dep | ...', says what the DEPS say."""
    document = report.root / "docs" / "architecture.md"
    rows: dict[str, tuple[int, set[str]]] = {}
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if match := re.match(r"\|\s*`(\w+)/`\s*\|([^|]*)\|", line):
            rows[match[1]] = (number, set(re.findall(r"\w+", match[2])) - {"nothing"})
    for name, folder in folders.items():
        if name not in rows:
            report.add(document, 1, f"no row for src/{name}/ in the dependency table: add one")
        elif rows[name][1] != set(folder.deps):
            listed = ", ".join(sorted(folder.deps)) or "nothing"
            report.add(document, rows[name][0], f"src/{name}/CMakeLists.txt declares DEPS {listed}: change it or this row")


def closure(name: str, folders: dict[str, Folder]) -> set[str]:
    reached: set[str] = set()
    todo = [name]
    while todo:
        current = todo.pop()
        if current in reached or current not in folders:
            continue
        reached.add(current)
        todo += folders[current].deps
    return reached


def is_test(path: Path) -> bool:
    """Whether a file below src/ is part of the tests only: foo_test.cc, and the headers that such share."""
    return path.stem.endswith("_test") or path.name.startswith("test_") or "test_support" in path.stem


def may_include(header: Path, included: str) -> bool:
    return included in STANDARD_HEADERS or included in OTHER_HEADERS or (is_test(header) and included in TEST_HEADERS)


def bare_code(text: str) -> str:
    """C++ without comments and the contents of literals, line for line."""
    return LITERAL_OR_COMMENT.sub(lambda match: '""' + "\n" * match[0].count("\n"), text)


def check_output(path: Path, code: str, report: Report) -> None:
    """Libraries hand back a Status; printing and ending the program are the business of cli/."""
    if str(path.relative_to(report.root)).startswith(MAY_PRINT) or is_test(path):
        return
    for number, line in enumerate(code.splitlines(), 1):
        if match := PRINTS_OR_EXITS.search(line):
            report.add(path, number, f"a library uses {match[0].strip('(')}: return a Status, or take what to do from the caller")


def count_parameters(code: str, begin: int) -> int:
    """Of the list whose opening parenthesis stands before `begin`."""
    depth, commas, empty = 0, 0, True
    for at in range(begin, len(code)):
        sign = code[at]
        if sign in ")]}>" and code[at - 1 : at + 1] != "->":
            if depth == 0:
                break
            depth -= 1
        elif sign in "([{<":
            depth += 1
        elif sign == "," and depth == 0:
            commas += 1
        empty = empty and sign.isspace()
    return 0 if empty else commas + 1


def check_parameters(path: Path, code: str, report: Report) -> None:
    classes = set(re.findall(r"\b(?:class|struct) (?:alignas\(\w+\) )?(\w+)", code)) | set(re.findall(r"\b(\w+)::\1\(", code))
    declared = [match for match in CONSTRUCTS.finditer(code) if match[1] in classes]
    for match in [*DECLARES.finditer(code), *declared]:
        count = count_parameters(code, match.end())
        if count > MAX_PARAMETERS:
            line = code.count("\n", 0, match.start(1)) + 1
            report.add(path, line, f"{match[1]} has {count} parameters, {MAX_PARAMETERS} allowed: make a struct of them")


def check_unused(codes: dict[Path, str], report: Report) -> None:
    """Functions that headers of src/ declare, and whose name stands nowhere but in declarations and definitions."""
    spoken: Counter = Counter()
    declared: Counter = Counter()
    for code in codes.values():
        spoken.update(re.findall(r"\b[a-z_]\w*", code))
        declared.update(match[1] for match in DECLARES.finditer(code))
    for path, code in codes.items():
        if path.suffix != ".h" or report.root / "src" not in path.parents:
            continue
        for match in DECLARES.finditer(code):
            if spoken[match[1]] == declared[match[1]] and match[1] not in KEPT_UNUSED:
                report.add(path, code.count("\n", 0, match.start(1)) + 1, f"nothing uses {match[1]}: delete it")


def check_includes(path: Path, folder: Folder | None, folders: dict[str, Folder], report: Report) -> None:
    """`folder` is None for files outside src/, which may include any folder, and headers below tests/."""
    source_root = report.root / "src"
    allowed: set[str] = set()
    if folder:
        allowed = {folder.name, *folder.deps}
        for dep in folder.extra_deps.get(str(path.relative_to(source_root / folder.name)), []):
            allowed |= closure(dep, folders)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, bracketed = match.groups()
        included = quoted or bracketed
        if path.suffix == ".h" and bracketed and folder and not may_include(path, included):
            report.add(path, number, f"{included} is not of the standard library: include it in the .cc that needs it, or "
                       "name it in OTHER_HEADERS with the reason")
        if bracketed:
            continue
        target = included.split("/")[0]
        if ".." in Path(included).parts or not (source_root / included).exists():
            if not folder and (report.root / "tests" / included).exists():
                continue
            report.add(path, number, f'"{included}" is no path below src/: write "folder/file.h", and <...> for other projects')
        elif folder and target not in allowed:
            report.add(path, number, f"src/{folder.name}/ does not declare '{target}': add it to DEPS of {folder.name} "
                       "(and to docs/architecture.md), or do without")


def check_shape(path: Path, report: Report) -> None:
    lines = path.read_text().splitlines()
    relative = str(path.relative_to(report.root))
    if len(lines) > MAX_FILE_LINES:
        report.add(path, MAX_FILE_LINES + 1, f"{len(lines)} lines, {MAX_FILE_LINES} allowed: split the file")
    if path.suffix == ".h":
        if "#pragma once" not in lines:
            report.add(path, 1, "header without #pragma once: add it after the leading comment")
        if not lines or not lines[0].startswith(("//", "/*")):
            report.add(path, 1, "header without a leading comment: say its purpose, owner, thread, units and errors")
    if path.suffix in {".h", ".cc"}:
        check_functions(path, lines, report)


def check_functions(path: Path, lines: list[str], report: Report) -> None:
    """Bodies as clang-format lays them out: the closing brace stands at the indent of the function's first line."""
    head = ""  # of the declaration being read: its first line
    head_number = 0
    open_indent = None  # of the function being read
    for number, line in enumerate(lines, 1):
        if open_indent is not None:
            if line.startswith(open_indent + "}"):
                length = number - head_number + 1
                if length > MAX_FUNCTION_LINES:
                    report.add(path, head_number, f"function of {length} lines, {MAX_FUNCTION_LINES} allowed: split it")
                open_indent = None
            continue
        if re.match(r"(  )?[\w~:\[]", line):
            head, head_number = line, number
        if line.endswith("{") and not re.match(r"\s*(namespace|class|struct|enum|union|extern)\b", head):
            declaration = " ".join(lines[head_number - 1 : number])
            if "(" in declaration and not declaration.endswith("= {"):
                open_indent = head[: len(head) - len(head.lstrip())]


def project_files(root: Path) -> list[Path]:
    """Files that git knows or would add; all files where there is no repository (the check's own test)."""
    listing = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, text=True)
    if listing.returncode == 0:
        files = [root / name for name in listing.stdout.split("\0") if name]
    else:
        files = [path for path in root.rglob("*")]
    return sorted(path for path in set(files) if path.is_file() and path.suffix in TEXT_SUFFIXES)


def check(root: Path) -> list[str]:
    report = Report(root)
    source_root = root / "src"
    folders: dict[str, Folder] = {}
    for path in sorted(source_root.iterdir()):
        if (path / "CMakeLists.txt").exists():
            folders[path.name] = read_folder(path)
    check_cycles(folders, report)
    check_documented(folders, report)
    outside = "\n".join(path.read_text() for path in [*root.glob("tests/**/CMakeLists.txt"), *root.glob("bench/**/CMakeLists.txt")])
    codes: dict[Path, str] = {}
    for path in project_files(root):
        check_shape(path, report)
        if path.suffix not in {".cc", ".h"}:
            continue
        folder = None
        if source_root in path.parents:
            name = path.relative_to(source_root).parts[0]
            folder = folders.get(name)
            if folder is None:
                if path.suffix == ".cc":
                    report.add(path, 1, f"src/{name}/ has no CMakeLists.txt: declare the library with quire_library")
                continue
            if path.suffix == ".cc" and str(path.relative_to(source_root / name)) not in folder.built:
                report.add(path, 1, f"no target builds this source: list it in src/{name}/CMakeLists.txt")
        elif path.suffix == ".cc" and path.name not in outside:
            report.add(path, 1, "no target builds this source: list it in a CMakeLists.txt")
        check_includes(path, folder, folders, report)
        codes[path] = bare_code(path.read_text())
        check_parameters(path, codes[path], report)
        if folder:
            check_output(path, codes[path], report)
    codes |= {path: bare_code(path.read_text()) for path in root.glob("src/**/*.inc")}
    check_unused(codes, report)
    return report.violations


def main(root: str | Path) -> int:
    root = Path(root).resolve()
    violations = check(root)
    for violation in violations:
        print(violation)
    if violations:
        print(f"{len(violations)} violations of the layout rules (docs/architecture.md, CONTRIBUTING.md)")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent))
