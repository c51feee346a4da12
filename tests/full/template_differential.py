#!/usr/bin/env python3
"""Compares quire's chat templates with jinja2 on random templates and random JSON.

A grammar writes templates that mostly render: expressions are built by type, with a share of wild ones. Each template
is rendered for several random conversations by `quire template` and by jinja2, set up as transformers sets it up. Both
must give the same text, or both must fail. The grammar has what quire knows (docs/chat-templates.md); a template now and
then uses something else, which must be refused by name. What neither can promise is left out: text that holds addresses of
Python objects, integers beyond 64 bits.

usage: template_differential.py [--quire PROGRAM] [--cases N] [--seed N] [--show N]

The program defaults to $QUIRE_BIN. A case is one rendering. Exit status 77 when jinja2 (tests/full/requirements.txt) is not
installed. Closes with 'N passed, N failed'.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import jinja2
except ImportError:
    print("skipped: the Python package 'jinja2' is not installed")
    sys.exit(77)

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from chat_jinja import NOW, environment  # noqa: E402

CONTEXTS = 4           # renderings of one template
TEMPLATES_A_ROUND = 100
UNPREDICTABLE = re.compile(r" at 0x[0-9a-f]+|<class |<built-in |<bound method|<function|object>|<LoopContext|<Macro|<jinja2|functools|%20at%200x", re.I)
BEYOND_QUIRE = re.compile(r"64 bits|too large|too long|the filter 'safe' is only")

WORDS = ["", "a", "b", "user", "assistant", "system", "tool", "Hello, World", "  padded  ", "x-y_z", "A b C", "<b>&\"'</b>",
         "naïve Größe", "日本語", "👩‍👧 ok", "ǅ ﬁ ß İ", "ΑΣ ΣΑΣ.", "line one\nline two\n\n  third", "tab\there", "1", "-2", " 3.5 ", "0x1f",
         "1e3", "true", "None", "</think>", "<think>deep</think>answer", "{{ x }}", "{% if %}", "a,b,,c", "aXbXc", "%s and %d", "{} {0}", "\\n\\t\\",
         "\u2028sep\x1fend", "'single'", "\"double\"", "it's \"both\"", "\u00a0nbsp\u3000"]
KEYS = ["role", "content", "name", "a", "b", "items", "keys", "x y", "größe", "id", "arguments", "type", "0"]


class Data:
    """Random JSON."""

    def __init__(self, rng):
        self.rng = rng

    def string(self):
        words = [self.rng.choice(WORDS) for _ in range(self.rng.choice([1, 1, 1, 2, 3]))]
        return self.rng.choice(["", " ", "\n", ", "]).join(words)

    def number(self):
        return self.rng.choice([0, 1, 2, 3, -1, 7, 10, 255, -12, 2**40, 2**53 + 1, 1.5, 0.1, -2.25, 2.5, 3.5, 1e16, 1e-7, 123456.789, 100.0, 1e22, 0.0])

    def value(self, depth=2):
        kind = self.rng.randrange(10 if depth else 7)
        if kind < 4:
            return self.string()
        if kind < 6:
            return self.number()
        if kind == 6:
            return self.rng.choice([True, False, None])
        if kind < 9:
            return self.dict(depth - 1)
        return self.list(depth - 1)

    def list(self, depth=1):
        same = self.rng.randrange(3)
        make = {0: self.string, 1: self.number, 2: lambda: self.value(depth)}[same]
        return [make() for _ in range(self.rng.randrange(5))]

    def dict(self, depth=1):
        return {self.rng.choice(KEYS): self.value(depth) for _ in range(self.rng.randrange(5))}

    def message(self):
        message = {"role": self.rng.choice(["user", "assistant", "system", "tool"]), "content": self.string()}
        if self.rng.random() < 0.2:
            message["content"] = self.rng.choice([None, [{"type": "text", "text": self.string()}]])
        if self.rng.random() < 0.3:
            message["tool_calls"] = [{"function": {"name": self.string(), "arguments": self.dict(2)}}]
        if self.rng.random() < 0.3:
            message[self.rng.choice(KEYS)] = self.value()
        return message

    def context(self):
        messages = [self.message() for _ in range(self.rng.randrange(5))]
        tools = self.rng.choice([None, None, [], [{"type": "function", "function": {"name": "f", "parameters": self.dict(2)}}]])
        kwargs = {"s": self.string(), "t": self.string(), "n": self.rng.choice([0, 1, 2, 3, 5, -1, -7]), "f": self.rng.choice([0.5, 1.5, 2.5, -3.75, 1e16]),
                  "p": self.rng.random() < 0.5, "l": self.list(), "d": self.dict(), "w": [self.string() for _ in range(self.rng.randrange(4))],
                  "i": [self.rng.randrange(-5, 20) for _ in range(self.rng.randrange(6))],
                  "m": [{"role": self.rng.choice(["user", "system"]), "n": self.rng.randrange(4), "s": self.string()} for _ in range(self.rng.randrange(4))],
                  "v": self.value(), "z": None, "bos_token": "<s>", "add_generation_prompt": self.rng.random() < 0.5}
        return {"messages": messages, "tools": tools, "kwargs": kwargs}


STRING_METHODS = ["upper()", "lower()", "title()", "capitalize()", "strip()", "lstrip()", "rstrip()", "strip({s})", "rstrip({s})", "lstrip('ab ')",
                  "replace({s}, {s})", "replace({s}, {s}, {i})", "removeprefix({s})", "removesuffix({s})", "join({ws})", "split({s})[0]", "split()[-1]",
                  "rsplit({ns}, 1)[0]", "splitlines()[0]"]
STRING_FILTERS = ["upper", "lower", "title", "capitalize", "trim", "trim({s})", "replace({s}, {s})", "replace({s}, {s}, {i})", "indent", "indent({w})", "indent(2, true)",
                  "indent('> ', first=true, blank=true)", "string", "safe", "default({s})", "default({s}, true)", "d('x')", "reverse", "tojson", "first",
                  "last", "list|join", "safe|upper", "join('-')"]
LIST_FILTERS = ["list", "sort", "sort(reverse=true)", "sort(case_sensitive=true)", "unique|list", "reverse|list", "map('string')|list", "map('upper')|list", "map('length')|list",
                "select|list", "reject('none')|list", "select('string')|list", "select('defined')|list", "reject('==', {x})|list", "batch({p})|list", "batch(2, '-')|list",
                "map('default', {x})|list", "select('in', {l})|list", "map('int')|list", "map('float', -1.0)|list", "unique(true)|list"]
DICT_FILTERS = ["list", "dictsort", "items|list", "dictsort(reverse=true)", "dictsort(false, 'value')"]
ANY_FILTERS = ["first", "last", "list", "sum", "max", "sort", "join", "length", "int", "float", "round", "abs", "items|list", "dictsort", "trim", "title", "tojson", "string",
               "reverse|list", "unique|list", "capitalize", "batch(2)|list", "map('upper')|join", "nosuchfilter"]
TESTS = ["defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string", "mapping", "sequence", "iterable", "eq({x})", "ne {x}", "== {x}_",
         "in({l})", "in {l}", "sameas(none)", "not none", "not defined", "not string"]
# What quire refuses by name, where jinja2 renders it.
REFUSED = ["{{ 'a'|urlencode }}", "{{ 'a'|e }}", "{{ [1]|groupby(0) }}", "{{ 'a'.center(3) }}", "{{ '{}'.format(1) }}", "{{ 1 is callable }}", "{{ cycler(1).next() }}",
           "{{ 2 ** 3 }}", "{{ 1 < 2 < 3 }}", "{{ +1 }}", "{{ 0x10 }}", "{{ 1_000 }}", "{{ dict(*[[]]) }}", "{% with a = 1 %}{% endwith %}", "{% print 1 %}",
           "{% for a in [] recursive %}{% endfor %}", "{% macro z() %}{{ varargs }}{% endmacro %}", "{% macro z() %}{% endmacro %}{% call z() %}{% endcall %}",
           "{% for a in [1] %}{{ loop.cycle(1) }}{% endfor %}", "{{ '%x' % 1 }}", "{{ '%s'|format(1) }}", "{{ '%(a)s' % {'a': 1} }}", "{{ dict([(1, 2)]) }}", "{{ 'a b'.rsplit() }}", "{{ ('a'|safe) + 'b' }}", "{{ n.real }}", "{{ 1.5|round(-1) }}", "{{ '\\101' }}", "{{ range(5)[1:] }}"]
REFUSAL = re.compile(r"quire knows|in quire|quire does not know|cannot be sliced")
NUMBER_TESTS = ["odd", "even", "divisibleby({p})", "divisibleby 3", "gt({i})", "lt({i})", "ge({i})", "le({i})", "greaterthan({i})", "lessthan(1.5)"]


class Grammar:
    """Random templates, by type of expression."""

    def __init__(self, rng):
        self.rng = rng
        self.data = Data(rng)
        self.scopes = [{}]
        self.macros = []
        self.namespaces = []
        self.loops = 0
        self.recursive = 0

    def pick(self, *choices):
        return self.rng.choice(choices)()

    def fill(self, pattern, depth):
        makers = {"s": self.string, "ns": lambda d: self.literal(self.rng.choice(["a", "X", " ", ", ", "</think>"])), "i": self.integer,
                  "w": lambda d: str(self.rng.randrange(12)), "p": lambda d: str(self.rng.randrange(1, 5)), "ws": lambda d: self.rng.choice(["w", "['a', 'b']", self.strings(d)]),
                  "x": self.expr, "l": self.list, "d": self.dict, "n": self.number}
        return re.sub(r"\{(\w+)\}", lambda m: makers[m[1]](depth - 1), pattern)

    def literal(self, text):
        if self.rng.random() < 0.15:
            return json.dumps(text, ensure_ascii=self.rng.random() < 0.5) if not re.search(r"[\ud800-\udfff]|[^\uffff\x00-\uffff]", text) else json.dumps(text, ensure_ascii=False)
        quote = self.rng.choice("'\"")
        escaped = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
        if self.rng.random() < 0.7:
            escaped = escaped.replace("\n", "\\n").replace("\t", "\\t")
        return quote + escaped + quote

    def name(self, kind, fallback):
        names = [n for scope in self.scopes for n, k in scope.items() if k == kind]
        return self.rng.choice(names + fallback)

    def string(self, depth=2):
        if depth <= 0 or self.rng.random() < 0.3:
            return self.pick(lambda: self.literal(self.rng.choice(WORDS)), lambda: self.name("s", ["s", "t"]), lambda: "bos_token")
        return self.pick(
            lambda: f"({self.string(depth - 1)} + {self.string(depth - 1)})", lambda: f"({self.string(depth - 1)} ~ {self.expr(depth - 1)})",
            lambda: f"{self.postfix(self.string, depth)}.{self.fill(self.rng.choice(STRING_METHODS), depth)}",
            lambda: f"({self.string(depth - 1)}|{self.fill(self.rng.choice(STRING_FILTERS), depth)})",
            lambda: f"{self.postfix(self.string, depth)}[{self.slice(depth)}]", lambda: f"{self.postfix(self.string, depth)}[{self.integer(0)}]",
            lambda: f"({self.string(depth - 1)} if {self.bool(depth - 1)} else {self.string(depth - 1)})", lambda: f"({self.string(depth - 1)} if {self.bool(depth - 1)})",
            lambda: f"({self.string(0)} * {self.rng.randrange(-1, 4)})", lambda: f"({self.expr(depth - 1)}|string)",
            lambda: f"({self.expr(depth - 1)}|tojson{self.rng.choice(['', '(indent=2)', '(true)', '(sort_keys=true)', '(ensure_ascii=false)'])})",
            lambda: f"({self.expr(depth - 1)}|tojson(separators=(',', ':')))",
            lambda: f"({self.list(depth - 1)}|join({self.string(0)}))", lambda: f"({self.literal(self.rng.choice(['%s', '%5s|', '%-6s|', '%r', '%.2s', '%%%s', '%d', '%05.1f']))} % {self.expr(depth - 1)})",
            lambda: f"'{self.percent_spec()}' % {self.rng.choice([self.integer, self.number, self.string, self.expr])(0)}",
            lambda: self.call(depth), lambda: self.loop_text(), lambda: f"{self.name('m', ['messages'])}[{self.integer(0)}].content", lambda: "messages[0]['role']",
            lambda: f"({self.strings(depth - 1)}|first)", lambda: f"({self.strings(depth - 1)}|last)", lambda: f"{self.dict(depth - 1)}.get('a', {self.string(0)})",
            lambda: "strftime_now('%d %b %Y %H:%M')", lambda: f"({self.list(depth - 1)}|string)", lambda: f"({self.dict(depth - 1)}|string)")

    def postfix(self, make, depth):
        text = make(depth - 1)
        return text if re.fullmatch(r"\w+|'[^'\\]*'", text) else f"({text})"

    def strings(self, depth=1):
        return self.pick(lambda: "w", lambda: f"[{self.string(depth - 1)}, {self.string(0)}]", lambda: f"{self.postfix(self.string, depth)}.split({self.rng.choice(['', self.literal('a'), self.literal(' ')])})",
                         lambda: f"{self.postfix(self.string, depth)}.splitlines()", lambda: f"{self.postfix(self.string, depth)}.rsplit(' ', {self.integer(0)})",
                         lambda: f"({self.strings(depth - 1) if depth > 0 else 'w'}|sort)", lambda: f"(d|map('string')|list)", lambda: f"(m|map(attribute='s')|list)")

    def integer(self, depth=1):
        if depth <= 0 or self.rng.random() < 0.4:
            return self.rng.choice(["0", "1", "2", "3", "-1", "-2", "5", "n", "17", "1000", self.name("i", ["n"])])
        return self.pick(lambda: f"({self.integer(depth - 1)} {self.rng.choice(['+', '-', '*', '//', '%'])} {self.integer(depth - 1)})", lambda: f"({self.expr(depth - 1)}|length)",
                         lambda: f"({self.expr(depth - 1)}|int)", lambda: f"({self.string(depth - 1)}|int(-1))", lambda: f"({self.list(depth - 1)}|count)",
                         lambda: f"{self.postfix(self.string, depth)}.find({self.string(0)})", lambda: f"{self.postfix(self.string, depth)}.count({self.string(0)})", lambda: f"(-{self.integer(depth - 1)})",
                         lambda: f"(i|{self.rng.choice(['sum', 'max', 'min', 'first', 'last', 'length'])})", lambda: f"({self.integer(depth - 1)}|abs)", 
                         lambda: f"{self.postfix(self.string, depth)}.rfind({self.string(0)})")

    def number(self, depth=1):
        if depth <= 0 or self.rng.random() < 0.3:
            return self.rng.choice(["f", "1.5", "2.5", "0.1", "1e3", "-0.5", "3.0", self.integer(0)])
        return self.pick(lambda: f"({self.number(depth - 1)} {self.rng.choice(['+', '-', '*', '/', '//', '%'])} {self.number(depth - 1)})", lambda: f"({self.number(depth - 1)}|round)",
                         lambda: f"({self.number(depth - 1)}|round({self.rng.randrange(5)}))", lambda: f"({self.number(depth - 1)}|round(1, '{self.rng.choice(['floor', 'ceil', 'common'])}'))",
                         lambda: f"({self.expr(depth - 1)}|float)", lambda: self.integer(depth), lambda: f"({self.number(depth - 1)}|abs)", 
                         lambda: f"({self.list(depth - 1)}|sum)", lambda: f"({self.list(depth - 1)}|max)", lambda: f"({self.list(depth - 1)}|min)")

    def bool(self, depth=2):
        if depth <= 0 or self.rng.random() < 0.2:
            return self.rng.choice(["true", "false", "p", "True", "add_generation_prompt", "z", "u", "l", "d", "s", "tools"])
        return self.pick(
            lambda: f"{self.operand(depth)} {self.rng.choice(['==', '!='])} {self.operand(depth)}", lambda: f"({self.integer(depth - 1)} {self.rng.choice(['<', '>', '<=', '>='])} {self.number(depth - 1)})",
            lambda: f"({self.string(depth - 1)} {self.rng.choice(['<', '>=', '=='])} {self.string(depth - 1)})", lambda: f"(1 {self.rng.choice(['<', '<='])} {self.integer(depth - 1)})",
            lambda: f"(not {self.bool(depth - 1)})", lambda: f"({self.bool(depth - 1)} {self.rng.choice(['and', 'or'])} {self.bool(depth - 1)})",
            lambda: f"({self.string(0)} {self.rng.choice(['in', 'not in'])} {self.rng.choice([self.string, self.list, self.dict])(depth - 1)})", lambda: f"({self.expr(0)} in {self.list(depth - 1)})",
            lambda: f"({self.expr(depth - 1)} is {self.fill(self.rng.choice(TESTS), depth)})", lambda: f"({self.number(depth - 1)} is {self.fill(self.rng.choice(NUMBER_TESTS), depth)})",
            lambda: f"{self.postfix(self.string, depth)}.{self.rng.choice(['startswith', 'endswith'])}({self.string(0)})",
            lambda: f"({self.name('u', ['u', 'undefined_thing'])} is {self.rng.choice(['', 'not '])}defined)", lambda: f"({self.list(depth - 1)} {self.rng.choice(['<', '=='])} {self.list(depth - 1)})")

    def operand(self, depth):
        return self.rng.choice([self.string, self.integer, self.expr, self.list, self.dict])(depth - 1)

    def slice(self, depth):
        bound = lambda: self.rng.choice(["", "", "0", "1", "2", "-1", "-2", "-3", "10", "n", "none"])
        return f"{bound()}:{bound()}" + self.rng.choice(["", "", ":" + self.rng.choice(["", "1", "2", "-1", "-2", "3"])])

    def list(self, depth=1):
        if depth <= 0 or self.rng.random() < 0.25:
            return self.name("l", ["l", "i", "w", "m", "messages", "[]", "[1, 2, 3]", "('a', 'b')", "['b', 'A', 'c', 'B']"])
        return self.pick(
            lambda: f"[{', '.join(self.expr(depth - 1) for _ in range(self.rng.randrange(4)))}]", lambda: f"({self.list(depth - 1)} + {self.list(depth - 1)})", lambda: f"{self.postfix(self.list, depth)}[{self.slice(depth)}]",
            lambda: f"range({self.integer(0)})", lambda: f"range({self.integer(0)}, {self.integer(0)})", lambda: f"(range(5, -3, -2)|list)", lambda: f"({self.list(depth - 1)}|{self.fill(self.rng.choice(LIST_FILTERS), depth)})",
            lambda: self.strings(depth), lambda: f"({self.dict(depth - 1)}|{self.rng.choice(DICT_FILTERS)})",
            lambda: f"({self.dict(depth - 1)}.{self.rng.choice(['keys', 'values', 'items'])}()|list)", lambda: f"(m|{self.rng.choice(['selectattr', 'rejectattr'])}('role', 'equalto', 'user')|list)",
            lambda: f"(m|map(attribute='{self.rng.choice(['role', 'n', 's', 'nope', 'role.0'])}')|list)", lambda: f"(m|sort(attribute='{self.rng.choice(['role', 'n', 'n,role', 'role,n', 's'])}'))",
            lambda: f"(m|selectattr('n')|list)", lambda: f"(m|map(attribute='nope', default={self.expr(0)})|list)",
            lambda: f"({self.list(depth - 1)} * {self.rng.randrange(3)})", lambda: f"(m|unique(attribute='role')|list)", lambda: f"({self.string(depth - 1)}|list)", lambda: f"(messages|selectattr('role', 'in', ['user', 'tool'])|list)",
            lambda: f"({self.expr(depth - 1)}, {self.expr(depth - 1)})")

    def dict(self, depth=1):
        if depth <= 0 or self.rng.random() < 0.3:
            return self.name("d", ["d", "{}", "{'a': 1, 'b': 'x'}", "{1: 2, 'k': [1]}", "{'items': 3}"])
        return self.pick(lambda: "{" + ", ".join(f"{self.rng.choice([self.string, self.integer])(0)}: {self.expr(depth - 1)}" for _ in range(self.rng.randrange(4))) + "}",
                         lambda: f"dict({self.dict(depth - 1)}, k={self.expr(depth - 1)})", lambda: f"dict(a={self.expr(depth - 1)})", lambda: f"{self.dict(depth - 1) if depth > 1 else 'd'}", lambda: "messages[0]", lambda: "m[0]")

    def expr(self, depth=2):
        if depth > 0 and self.rng.random() < 0.06:
            return self.wild(depth)
        if self.rng.random() < 0.1:
            return self.rng.choice(["none", "u", "v", "z", "true", "undefined_thing", "v.a", "v['b']", "d.a", "d['items']", "d.b", "l[0]", "d.get('a')", "d.get('q', 3)", "tools", "messages[0].content", "v[0]"])
        return self.rng.choice([self.string, self.string, self.integer, self.number, self.bool, self.list, self.dict])(depth)

    def wild(self, depth):
        return self.pick(lambda: f"({self.expr(depth - 1)} {self.rng.choice(['+', '-', '*', '/', '%', '//', '<', 'in', '~', 'and', 'or'])} {self.expr(depth - 1)})", lambda: f"({self.expr(depth - 1)}|{self.rng.choice(ANY_FILTERS)})",
                         lambda: f"({self.expr(depth - 1)}).{self.rng.choice(['a', 'content', 'items', 'keys', 'upper', 'append', 'nope', 'x'])}", lambda: f"({self.expr(depth - 1)})[{self.expr(depth - 1)}]",
                         lambda: f"({self.expr(depth - 1)})[{self.slice(depth)}]", lambda: f"({self.expr(depth - 1)})()", lambda: f"(-{self.expr(depth - 1)})", lambda: f"{self.integer(0)} {self.rng.choice(['-', '+', '*'])} {self.integer(0)} {self.rng.choice(['-', '//'])} {self.integer(0)}",
                         lambda: f"{self.expr(depth - 1)} if {self.bool(depth - 1)} else {self.expr(depth - 1)}", lambda: f"-{self.integer(0)}|abs", lambda: f"not {self.expr(0)} == {self.expr(0)}", lambda: f"{self.string(0)} ~ {self.integer(0)} + {self.integer(0)}")

    def call(self, depth):
        if not self.macros:
            return "range(3)|join"
        name, parameters = self.rng.choice(self.macros)
        arguments = [self.expr(depth - 1) for _ in range(self.rng.randrange(parameters + 2))]
        if self.rng.random() < 0.3:
            arguments.append(f"a={self.expr(0)}")
        return f"{name}({', '.join(arguments)})"

    def percent_spec(self):
        return "%" + self.rng.choice(["", "", "-", "+", " ", "0", "-+", "0-"]) + self.rng.choice(["", "3", "8", "12"]) + \
            self.rng.choice(["d", "i", "s", "r", "f", ".0f", ".2f", ".5f", ".f", ".2s", ".0s", ".3r"])

    def loop_text(self):
        if not self.loops:
            return "s"
        return self.rng.choice(["loop.index", "loop.index0", "loop.first", "loop.last", "loop.length", "loop.revindex", "loop.revindex0", "loop.previtem", "loop.nextitem", 
                                "loop.previtem is defined", "(loop.nextitem or '-')"]) + self.rng.choice(["", "", "|string"])

    def dash(self):
        return self.rng.choice(["", "", "", "-", "-", "+"])

    def tag(self, text):
        return "{%" + self.dash() + " " + text + " " + self.dash() + "%}"

    def text(self):
        return self.rng.choice(["", "\n", "  ", "\n  ", "text", " a b\n", "<|im_start|>", "é", "\n\n\t", "{ }", "% }", "x\r\ny", "\u2003"])

    def block(self, depth):
        self.scopes.append({})
        out = "".join(self.statement(depth - 1) for _ in range(self.rng.randrange(1, 4)))
        self.scopes.pop()
        return out

    def output(self):
        dash = self.rng.choice(["", "", "-"])
        return "{{" + dash + " " + self.expr(self.rng.randrange(1, 4)) + " " + self.rng.choice(["", "", "-"]) + "}}"

    def statement(self, depth):
        if depth <= 0 or self.rng.random() < 0.35:
            return self.text() + self.output() + self.text()
        return self.text() + self.pick(self.output, lambda: self.if_(depth), lambda: self.for_(depth), lambda: self.set_(depth), lambda: self.set_(depth), lambda: self.set_block(depth), lambda: self.macro(depth), 
                                       lambda: self.filter_block(depth), lambda: self.namespace(depth), lambda: self.namespace(depth), self.comment, self.raw, lambda: self.control(), lambda: self.generation(depth),
                                       self.objects, self.scoping) + self.text()

    def if_(self, depth):
        out = self.tag(f"if {self.bool()}") + self.block(depth)
        for _ in range(self.rng.randrange(2)):
            out += self.tag(f"elif {self.bool()}") + self.block(depth)
        if self.rng.random() < 0.5:
            out += self.tag("else") + self.block(depth)
        return out + self.tag("endif")

    def for_(self, depth):
        kind, target, source = self.pick(lambda: ("s", f"x{depth}", self.strings()), lambda: ("i", f"x{depth}", f"i"), lambda: ("u", f"x{depth}", self.list()), lambda: ("u", f"k{depth}, x{depth}", f"{self.dict()}.items()"),
                                         lambda: ("u", f"k{depth}, x{depth}", f"{self.dict()}|items"), lambda: ("m", f"x{depth}", "messages"), lambda: ("m", f"x{depth}", f"messages[{self.slice(0)}]"),
                                         lambda: ("s", f"x{depth}", self.string(1)), lambda: ("u", f"x{depth}", self.expr(1)), lambda: ("u", f"(k{depth}, x{depth})", "[[1, 2], 'ab', (3, 4)]"))
        scope = {f"x{depth}": "s" if kind == "s" else kind}
        condition = f" if {self.rng.choice([self.bool(1), f'x{depth}', f'x{depth} is defined', f'x{depth} is string'])}" if self.rng.random() < 0.25 else ""
        self.scopes.append(scope)
        self.loops += 1
        body = self.block(depth)
        if self.rng.random() < 0.3:
            body += self.tag(f"if {self.rng.choice(['loop.index > 1', 'loop.last', self.bool(1)])}") + self.tag(self.rng.choice(["break", "continue"])) + self.tag("endif") + self.text()
        self.loops -= 1
        self.scopes.pop()
        out = self.tag(f"for {target} in {source}{condition}") + body
        if self.rng.random() < 0.2:
            out += self.tag("else") + self.block(depth)
        return out + self.tag("endfor")

    def set_(self, depth):
        kind, make = self.rng.choice([("s", self.string), ("i", self.integer), ("l", self.list), ("d", self.dict), ("u", self.expr)])
        name = self.rng.choice([f"v{self.rng.randrange(4)}", "s", "n", "l", "d", "u"])
        value = make(2)
        self.scopes[-1][name] = kind
        if self.rng.random() < 0.1:
            return self.tag(f"set {name}, q = {value}, {self.expr(1)}")
        return self.tag(f"set {name} = {value}")

    def set_block(self, depth):
        name = f"v{self.rng.randrange(4)}"
        out = self.tag(f"set {name}{self.rng.choice(['', '', ' | upper', ' | trim | length'])}") + self.block(depth) + self.tag("endset")
        self.scopes[-1][name] = "s"
        return out

    def macro(self, depth):
        name = f"f{len(self.macros)}"
        count = self.rng.randrange(3)
        names = ["a", "b", "c"][:count]
        signature = ", ".join(n + (f"={self.expr(1)}" if i >= count - self.rng.randrange(3) else "") for i, n in enumerate(names))
        if re.search(r"=.*, \w+(,|$)", signature):
            signature = ", ".join(names)
        self.scopes.append({n: "u" for n in names})
        loops, self.loops = self.loops, 0
        body = self.block(depth)
        self.loops = loops
        self.scopes.pop()
        if self.rng.random() < 0.3:
            body += "{{ a }}"
        self.macros.append((name, count))
        return self.tag(f"macro {name}({signature})") + body + self.tag("endmacro")

    def filter_block(self, depth):
        return self.tag(f"filter {self.fill(self.rng.choice(['upper', 'trim', 'indent(2)', 'replace({s}, {s})', 'length', 'title', 'trim|upper']), 1)}") + self.block(depth) + self.tag("endfilter")

    def namespace(self, depth):
        if not self.namespaces or self.rng.random() < 0.3:
            name = f"ns{len(self.namespaces)}"
            self.namespaces.append(name)
            return self.tag(f"set {name} = namespace({self.rng.choice(['', f'a={self.expr(1)}', f'a=0, b={self.expr(1)}', 'd'])})")
        name = self.rng.choice(self.namespaces)
        if self.rng.random() < 0.3:
            return "{{ " + f"{name}.{self.rng.choice(['a', 'b', 'c'])}" + " }}"
        return self.tag(f"set {name}.{self.rng.choice(['a', 'b'])} = {self.rng.choice([self.expr(2), f'{name}.a', f'{name}.a ~ {self.string(0)}', f'{name}.a + 1'])}")

    def scoping(self):
        """Statements that differ where scopes are taken too simply."""
        name = self.rng.choice(["v0", "v1", "s", "n", "q"])
        return self.rng.choice([
            "{% for a in [1, 2] %}{{ " + name + " }}{% set " + name + " = a %}{{ " + name + " }}{% endfor %}{{ " + name + " }}",
            "{% if p %}{% set " + name + " = 1 %}{% endif %}{{ " + name + " }}",
            "{% macro g() %}{{ " + name + " }}{% set " + name + " = 5 %}{{ " + name + " }}{% endmacro %}{{ g() }}{% set " + name + " = 2 %}{{ g() }}{{ " + name + " }}",
            "{% for a in i %}{% if a > 2 %}{% set " + name + " = a %}{% endif %}{{ " + name + " }}{% else %}none{% endfor %}",
            "{% generation %}{% set " + name + " = 3 %}{{ " + name + " }}{% endgeneration %}{{ " + name + " }}",
            "{% set " + name + " %}{% set " + name + " = 4 %}{{ " + name + " }}{% endset %}{{ " + name + " }}",
            "{% for a in [1, 2] %}{% macro h() %}{{ a }}{{ loop.index if loop else '-' }}{% endmacro %}{{ h() }}{% for b in 'xy' %}{{ loop.index }}{{ a }}{{ b }}{% endfor %}{{ loop.index }}{% endfor %}",
            "{% for a in i if a is odd %}{{ loop.index }}/{{ loop.length }}{{ a }}{% endfor %}", "{% for a in i if a > " + name + "|int %}{{ loop.last }}{{ loop.previtem }}{% endfor %}",
            "{% set ns9 = namespace(k=0) %}{% for a in range(6) if a >= ns9.k %}{% set ns9.k = ns9.k + 2 %}{{ a }}{% endfor %}",
            "{% macro r(x) %}{{ x }}{% if x > 0 %}{{ r(x - 1) }}{% endif %}{% endmacro %}{{ r(3) }}", "{% macro o(a, b=a, c='z') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ o(1) }}{{ o(1, c=2) }}",
            "{{ s }}{% set s = s ~ '!' %}{{ s }}{% set s, n = n, s %}{{ s }}{{ n }}",
            "{% for a in 'abc' %}{% if a == 'b' %}{% continue %}{% endif %}{{ a }}{% else %}E{% endfor %}{% for a in 'x' %}{% continue %}{% else %}E{% endfor %}"])

    def objects(self):
        return self.rng.choice(["{{ namespace(a=1, b='x') }}", "{{ dict(d) }}", "{{ d.keys() }} {{ d.items() }}", "{{ range(3) }}{{ range(1, 9, 2) }}", "{{ (1,) }}{{ () }}"])

    def comment(self):
        return "{#" + self.dash() + self.rng.choice([" note ", "", " {{ x }} ", "\n"]) + self.rng.choice(["", "-", ""]) + "#}"

    def raw(self):
        return "{%" + self.dash() + " raw " + self.rng.choice(["", "-"]) + "%}" + self.rng.choice(["{{ x }}", "  {% if %} \n", "{# #}", "\n"]) + "{%" + self.dash() + " endraw " + self.dash() + "%}"

    def control(self):
        return self.tag(self.rng.choice(["break", "continue"])) if self.loops and self.rng.random() < 0.5 else self.output()

    def generation(self, depth):
        return self.tag("generation") + self.block(depth) + self.tag("endgeneration")

    def template(self):
        return "".join(self.statement(3) for _ in range(self.rng.randrange(1, 5))) + self.rng.choice(["", "\n", "\n\n"])


def reference(template, context):
    """(text or None, the error)"""
    try:
        return template.render(messages=context["messages"], tools=context["tools"], documents=None, **context["kwargs"]), None
    except RecursionError:
        raise
    except Exception as error:  # noqa: BLE001: whatever fails in jinja2 has to fail in quire
        return None, f"{type(error).__name__}: {error}"


def answers(quire, folder, source, contexts):
    path = Path(folder) / "template.jinja"
    path.write_bytes(source.encode())
    lines = "".join(json.dumps(context) + "\n" for context in contexts)
    command = [quire, "template", "--template-file", str(path), "--jsonl", "--now", NOW.isoformat()]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120)
    if done.returncode < 0 or "Sanitizer" in done.stderr:
        raise RuntimeError(f"quire died ({done.returncode}) on {source!r}\n{done.stderr[:2000]}")
    replies = [json.loads(line) for line in done.stdout.split("\n") if line]
    if not replies:
        replies = [{"error": done.stderr.strip()}] * len(contexts)
    if len(replies) != len(contexts):
        raise RuntimeError(f"{len(contexts)} requests, {len(replies)} answers on {source!r}")
    return replies


def verdict(source, expected, error, reply):
    """None: equal. "skip": not comparable. Else what differs."""
    got = reply.get("text")
    if got == expected:
        return None
    if expected is not None and UNPREDICTABLE.search(expected):
        return "skip"
    if got is None and BEYOND_QUIRE.search(reply["error"]):
        return "skip"
    if got is None and expected is not None and "cannot be sliced" in reply["error"]:
        return "skip"  # jinja2 folds a slice of a constant to an undefined value, where a variable would fail; a range is refused
    if got is not None and error is not None and re.search(r"Exceeds the limit|RecursionError|surrogates", error):
        return "skip"
    return f"  jinja2 {expected!r} {error or ''}\n  quire  {got!r} {reply.get('error', '')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quire", default=os.environ.get("QUIRE_BIN", str(ROOT / "build/release/bin/quire")))
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--show", type=int, default=10, help="differences to print")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    rng = random.Random(arguments.seed)
    env = environment()
    counts = {"rendered": 0, "failed in both": 0, "refused": 0, "skipped": 0, "different": 0}
    done = 0
    with tempfile.TemporaryDirectory() as folder:
        while done < arguments.cases:
            source = Grammar(rng).template()
            refused = rng.random() < 0.02
            if refused:
                source = rng.choice(REFUSED) + source
            contexts = [Data(rng).context() for _ in range(CONTEXTS)]
            try:
                template, broken = env.from_string(source), None
            except Exception as error:  # noqa: BLE001
                template, broken = None, f"{type(error).__name__}: {error}"
            replies = answers(arguments.quire, folder, source, contexts)
            for context, reply in zip(contexts, replies):
                expected, error = (None, broken) if template is None else reference(template, context)
                different = verdict(source, expected, error, reply)
                if refused:
                    different = None if REFUSAL.search(reply.get("error", "")) else f"  should be refused: {reply!r}"
                done += 1
                if different is None:
                    counts["refused" if refused else "rendered" if expected is not None else "failed in both"] += 1
                elif different == "skip":
                    counts["skipped"] += 1
                else:
                    counts["different"] += 1
                    if counts["different"] <= arguments.show:
                        print(f"template {source!r}\n  context {json.dumps(context, ensure_ascii=False)}\n{different}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    print(f"{done - counts['different'] - counts['skipped']} passed, {counts['different']} failed, {counts['skipped']} skipped")
    sys.exit(1 if counts["different"] else 0)


if __name__ == "__main__":
    main()
