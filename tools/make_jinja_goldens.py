#!/usr/bin/env python3
"""Writes tests/golden/jinja/*.jsonl: templates of one idea a file, each with what jinja2 makes of it.

usage: make_jinja_goldens.py [FOLDER]

A line holds template, messages, tools, kwargs and either expected (the text), error (the message of raise_exception)
or fails (how jinja2 failed; the wording is free). Needs jinja2 (tests/full/requirements.txt).
"""

import json
import sys
from pathlib import Path

import jinja2

from chat_jinja import environment

MESSAGES = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi <|im_end|> Größe"},
            {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes.", "tool_calls": [
                {"id": "1", "function": {"name": "f", "arguments": {"city": "Zürich", "n": 1.5, "ok": True, "none": None}}}]}]
KWARGS = {"s": "Hello, World", "u8": "naïve ß 日本語 👩‍👧", "n": 7, "neg": -7, "f": 2.5, "t": True, "z": None, "l": [3, 1, 2], "w": ["b", "A", "c", "a"],
          "d": {"b": 1, "a": {"x": [1, 2]}, "items": "key"}, "m": [{"k": "x", "v": 2}, {"k": "y", "v": 1}, {"k": "x", "v": 3}, {"v": 0}],
          "bos_token": "<s>", "lines": "one\n  two\n\nthree\n", "big": 9007199254740993, "inf": "inf", "nan": "nan", "html": "<a href=\"x\">&'</a>"}

WHITESPACE = [
    "a\n", "a\n\n", "{% if t %}\n  x\n{% endif %}\ny", "  {% if t %}  \n  x {% endif %}", "a  {%- if t -%}  b  {%- endif -%}  c", "  {%+ if t %}x{% endif +%}\ny",
    "a\n  {{- s -}}  \n b", "a\n  {{ s }}\n", "{# c #}\nx", "  {# c #}\nx", "x {#- c -#} y", "x\n  {#+ c #}y", "{# {{ x }} {% y %} #}z", "{% raw %}{{ s }}{% endraw %}!",
    "{% raw %}\n  a\n{% endraw %}\nb", "a {%- raw -%} {{ b }} {%- endraw -%} c", "\r\na\r\n{{ s }}\rb", "{% set x = 1 -%}\n\n  {{ x }}", "\u00a0{%- if t %}x{% endif %}", "{{ '{{' }} {{ '%}' }}",
    "{{ {'a': {'b': 1}} }}", "{%if t%}x{%endif%}", "{{s}}{{-s}}", "x{%- set a = 1 +%}\ny", "  \n\t{% if t %}\n\t{% endif %}|", "{{ 'a\nb' }}", "{%- for x in l -%}\n {{ x }}\n{%- endfor -%}\n",
    "{% if t %}{% endif %}\n\nx", "\n\n{% if t %}x{% endif %}", "{{ s }}\n{% if t %}\n{{ s }}\n{% endif %}", "{{ s +}}", "{# x", "{% raw %}x", "{{", "{%", "}}", "%}", "#}", "{ {a} }"]

LITERALS = [
    r"{{ 'tab\t nl\n q\' bs\\ x\x41 u\u00e9 U\U0001F469 bad\q' }}", "{{ 'a' 'b' \"c\" }}", "{{ 1.5e3 }} {{ 1e-7 }} {{ 1E5 }}",
    "{{ true }} {{ True }} {{ false }} {{ none }} {{ None }}", "{{ [1, 'a', [2,],] }} {{ (1,) }} {{ () }} {{ (1, 2) }} {{ 1, 2 }}", "{{ {} }} {{ {'a': 1, 2: 'b', none: [], 1.5: true,} }}",
    "{{ {1: 'a', true: 'b', 1.0: 'c'} }}", "{{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789012345678.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}", "{{ -0.0 }} {{ 100.0 }} {{ 1e400 }} {{ -1e400 }}",
    "{{ 'line\\\ncontinued' }}", "{{ 'a\\x4' }}", "{{ '\\u12' }}", "{{ 'abc }}", "{{ 1a }}", "{{ a! }}", "{{ 1 2 }}", "{{ }}", "{{ () }}", "{{ [1, }}", "{{ (1 }}", "{{ 1) }}", "{{ [1} }}", "{{ '\u2028' }}", "{{ 'it''s' }}"]

EXPRESSIONS = [
    "{{ 1 + 2 * 3 - 4 / 2 }}", "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}", "{{ 1 / 3 }} {{ 4 / 2 }}",
    "{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ 'a' + 'b' ~ 1 ~ none ~ [1] }}", "{{ 'a' + 1 }}", "{{ 1 + 'a' }}", "{{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ 'a' * -1 }} {{ [1, 2] * 2 }} {{ (1,) * 3 }}", "{{ [1] + [2] }} {{ (1,) + (2,) }}",
    "{{ [1] + (2,) }}", "{{ not t }} {{ not not 1 }} {{ not [] }}", "{{ 1 and 2 }} {{ 0 and 2 }} {{ 0 or 'x' }} {{ '' or [] }} {{ 1 or x.y }}", "{{ 1 == 1.0 }} {{ 1 == true }} {{ '1' == 1 }} {{ none == false }}",
    "{{ 'a' < 'b' }} {{ 'Z' < 'a' }} {{ [1, 2] < [1, 3] }} {{ [1] < [1, 0] }} {{ (1, 'a') < (1, 'b') }}", "{{ 'a' < 1 }}", "{{ [1] < ['a'] }}", "{{ none < none }}", "{{ {'a': 1} == {'a': 1.0} }} {{ [1, [2]] == [1, [2]] }} {{ [1] == (1,) }}",
    "{{ 'a' in 'abc' }} {{ 1 in [1, 2] }} {{ 'b' in d }} {{ 1 not in (1, 2) }} {{ not 1 in [2] }}", "{{ 1 in 'abc' }}", "{{ 1 in 5 }}", "{{ [] in d }}", "{{ 'x' if t else 'y' }} {{ 'x' if not t else 'y' }} {{ 'x' if not t }}|", "{{ 'a' if false else 'b' if false else 'c' }}",
    "{{ -n }} {{ - -n }} {{ -f }} {{ -t }}", "{{ -s }}", "{{ l[0] }} {{ l[-1] }} {{ l[5] }}| {{ l['a'] }}|", "{{ d.b }} {{ d['b'] }}", "{{ d['items'] }} {{ d.a.x[1] }} {{ d['a']['x'][0] }}",
    "{{ s[0] }} {{ s[-1] }} {{ u8[7] }} {{ u8[9] }} {{ s[100] }}|", "{{ s[1.5] }}|{{ l[1.0] }}|{{ l[true] }}", "{{ s['upper']() }} {{ s.upper() }}", "{{ s.nope }}|{{ s._private }}||", "{{ s.nope() }}", "{{ l.append(1) }}", "{{ d.update({}) }}",
    "{{ l.append }}|{{ d.pop is defined }}", "{{ range(3) }} {{ range(1, 4)|list }} {{ range(5, 0, -2)|list }} {{ range(3)[1] }}", "{{ range(100001) }}", "{{ range(1, 2, 0) }}", "{{ range('a') }}", "{{ 1.5 + t }} {{ t + t }}", "{{ big + 1 }} {{ big }}",
    "{{ 2 + 3 | abs }} {{ -3 | abs }} {{ 'a' ~ 'b' | upper }} {{ 1 + 2 ~ 3 }}", "{{ (1, 2)[0] }} {{ [1, 2][1] }} {{ {'a': 1}['a'] }} {{ {'a': 1}.a }}", "{{ foo(1) }}", "{{ n() }}", "{{ s.split(',', maxsplit=0) }}", "{{ s.upper(1) }}", "{{ s.replace('l') }}", "{{ f(x=1, x=2) }}"]

SLICES = [
    "{{ l[1:] }} {{ l[:1] }} {{ l[:] }} {{ l[::-1] }} {{ l[::2] }} {{ l[-2:] }} {{ l[:-1] }} {{ l[5:] }} {{ l[2:1] }}", "{{ s[1:5] }} {{ s[::-1] }} {{ s[::3] }} {{ s[-5:-1] }} {{ s[:-100] }}| {{ s[100:] }}|", "{{ u8[2:8] }} {{ u8[::-1] }} {{ u8[7:] }} {{ u8[-3:] }} {{ u8[::2] }}",
    "{{ (1, 2, 3)[1:] }}", "{{ l[none:none] }} {{ l[none:2:none] }}", "{{ l[::0] }}", "{{ l['a':] }}", "{{ n[1:] }}", "{{ d[1:] }}", "{{ x[1:] }}", "{{ l[10:0:-1] }} {{ l[-1:0:-1] }} {{ l[-100:100:2] }}", "{% for m in messages[::-1] %}{{ m.role }};{% endfor %}", "{{ messages[1:][0].role }}",
    "{{ s[t:] }}", "{{ l[n - 6:] }}", "{{ 'abc'[1:][0] }}"]

UNDEFINED = [
    "[{{ x }}]", "{{ x.y }}", "{{ x['y'] }}", "{{ x() }}", "{{ d.nope }}|{{ d.nope is defined }}|{{ d['nope'] is undefined }}", "{{ d.nope.x }}", "{{ x + 1 }}", "{{ 'a' + x }}", "{{ 'a' ~ x }}", "{{ -x }}", "{{ x < 1 }}", "{{ x == y }} {{ x == none }} {{ x != 1 }}", "{{ x|length }} {{ x|list }} {{ x|join }}| {{ x|upper }}|",
    "{% for a in x %}a{% else %}none{% endfor %}", "{{ not x }} {{ x or 'd' }} {{ x and 1 }}|", "{{ x|default('d') }} {{ x|default }}| {{ z|default('d') }} {{ z|default('d', true) }} {{ ''|d('e', boolean=true) }}", "{{ 'a' in x }}", "{{ x in 'a' }}", "{{ x in [1] }} {{ x in [y] }} {{ x in d }}", "{{ [x] }} {{ {'a': x} }}", "{{ x|tojson }}",
    "{{ x|int }}", "{{ x|float }}", "{{ x|abs }}", "{{ x|first }}|{{ x|last }}|", "{{ x|items|list }}", "{{ x is iterable }} {{ x is sequence }} {{ x is string }} {{ x is none }} {{ x is mapping }}", "{{ x[1:] }}", "{{ '%s' % x }}|", "{{ dict(x) }}", "{{ x is defined and x.y }}", "{% if x %}a{% elif x is undefined %}b{% endif %}",
    "{{ x|sort }} {{ x|unique|list }} {{ x|map('upper')|list }} {{ x|sum }} {{ x|reverse|list }}", "{{ x|trim }}|{{ x|replace('a', 'b') }}|{{ x|title }}|", "{{ x|indent }}", "{{ x|dictsort }}", "{% set a = x %}{{ a is defined }}", "|{{ x|safe }}|{{ x|string }}|", "{{ loop }}|{{ caller }}"]

SCOPES = [
    "{% set a | default('x') %}{% endset %}{{ a }}|", "{% set a | replace('x', s) %}{% set s = 'in' %}xx{% endset %}{{ a }}", "{% filter replace('x', s) %}{% set s = 'in' %}xx{% endfilter %}", "{% set a = 1 %}{% for x in l %}{% set a = x %}{{ a }}{% endfor %}{{ a }}", "{% for x in l %}{{ x }}{% endfor %}{{ x }}|", "{% set ns = namespace(a=0) %}{% for x in l %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}", "{% if t %}{% set a = 1 %}{% endif %}{{ a }}", "{% if not t %}{% set s = 1 %}{% endif %}{{ s }}",
    "{{ s }}{% set s = 's' %}{{ s }}", "{% macro m() %}{{ a }}{% endmacro %}{{ m() }}|{% set a = 1 %}{{ m() }}", "{% macro m() %}{{ s }}{% set s = 2 %}{{ s }}{% endmacro %}{{ m() }}{{ s }}", "{% macro m() %}{{ s }}{% endmacro %}{{ m() }}{% set s = 2 %}{{ m() }}", "{% set a, b = 1, [2] %}{{ a }}{{ b }}", "{% set a, (b, c) = 1, 'xy' %}{{ a }}{{ b }}{{ c }}", "{% set a, b = l %}", "{% set a %}x{{ s }}{% endset %}{{ a }}{{ a is string }}", "{% set a | upper %}x{% endset %}{{ a }}", "{% set a | upper | length %}xyz{% endset %}{{ a + 1 }}", "{% set s %}{% set s = 1 %}{{ s }}{% endset %}{{ s }}",
    "{% set d.a = 1 %}", "{% set x.a = 1 %}", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns.c }}|{{ ns['a'] }}{{ ns }}", "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}", "{% set true = 1 %}", "{% set [a] = 1 %}", "{% set a = 1, 2 %}{{ a }}", "{% filter upper %}{% set a = 1 %}x{{ a }}{% endfilter %}{{ a }}|",
    "{% generation %}{% set a = 1 %}{{ a }}{% endgeneration %}{{ a }}|", "{% for a in l %}{% for a in 'xy' %}{{ a }}{% endfor %}{{ a }}{% endfor %}", "{% for x in l %}{% if loop.first %}{% set q = x %}{% endif %}{{ q }}|{% endfor %}", "{% set q = 9 %}{% for x in l %}{% if loop.first %}{% set q = x %}{% endif %}{{ q }}|{% endfor %}", "{% set a = 1 %}{% set a = a + 1 %}{{ a }}", "{% set messages = messages[1:] %}{{ messages|length }}",
    "{% for x in l %}{% macro m(y) %}{{ x }}{{ y }}{% endmacro %}{{ m(1) }}{% endfor %}", "{% if t %}{% macro m() %}x{% endmacro %}{% endif %}{{ m() }}", "{% set dict = 1 %}{{ dict }}", "{% set range = 5 %}{{ range }}", "{% for range in l %}{{ range }}{% endfor %}{{ range(2)|list }}", "{% set ns = namespace(n=0) %}{% macro m() %}{% set ns.n = ns.n + 1 %}{% endmacro %}{{ m() }}{{ m() }}{{ ns.n }}"]

LOOPS = [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}", "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }};{% endfor %}",
    "{% for x in [] %}x{% else %}empty{% endfor %}", "{% for x in l %}x{% else %}empty{% endfor %}", "{% for x in l if x > 1 %}{{ x }}{{ loop.index }}{{ loop.last }}{% else %}none{% endfor %}", "{% for x in l if x > 9 %}x{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|items %}{{ k }};{% endfor %}", "{% for k in d %}{{ k }};{% endfor %}", "{% for k, v in d|dictsort %}{{ k }};{% endfor %}", "{% for (a, b), c in [[(1, 2), 3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in l %}{% endfor %}", "{% for c in u8 %}{{ c }};{% endfor %}", "{% for x in n %}{% endfor %}", "{% for x in none %}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}!", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}!", "{% for x in l %}{% continue %}{% else %}else{% endfor %}", "{% for x in l %}{% break %}{% else %}else{% endfor %}", "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }};{% endfor %}{% endfor %}", "{% break %}", "{% continue %}",
    "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for x in l %}{% set y %}a{% break %}{% endset %}{% endfor %}ok", "{% for x in l %}{% for y in 'ab' %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for x in l %}{{ loop(x) }}{% endfor %}", "{% for loop in l %}{% endfor %}", "{% for x in l %}{% set loop = 1 %}{% endfor %}", "{% for x in range(3) %}{{ x }}{% endfor %}", "{% for x in l|map('string') %}{{ x }}{{ loop.length }}{{ loop.last }};{% endfor %}", "{% set g = l|map('string') %}{{ g|join }}{{ g|join }}|", "{% set ns = namespace(ok=true) %}{% for x in l if ns.ok %}{{ x }}{% set ns.ok = false %}{% endfor %}",
    "{% for m in messages %}{% if loop.first or m.role != loop.previtem.role %}{{ m.role }}{% endif %}{% endfor %}", "{% for x in l, 5 %}{{ x }}{% endfor %}", "{% for x in l if loop %}{{ x }}{% else %}e{% endfor %}", "{{ loop.index }}", "{% for x in 'a' if false else 'b' %}{% endfor %}"]

MACROS = [
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=4, a=5) }}{{ m() }}|", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}x{% endmacro %}{{ a() }}", "{{ m() }}{% macro m() %}x{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(a, a) %}{% endmacro %}", "{% macro m() %} a {% endmacro %}[{{ m()|trim }}]", "{% macro m(x) %}{{ x }}{% endmacro %}{{ l|map('string')|join }}{{ m }}", "{% macro m(kwargs) %}{{ kwargs }}{% endmacro %}{{ m(1) }}", "{% set m = 5 %}{% macro m() %}x{% endmacro %}{{ m() }}", "{% macro m(x='a' ~ s) %}{{ x }}{% endmacro %}{{ m() }}",
    "{% set ns = namespace() %}{% macro m() %}x{% endmacro %}{% set ns.m = m %}{{ ns.m() }}", "{{ dict(a=1, b=[2]) }}{{ dict({'a': 1}, a=2) }}", "{% macro m() %}{{ loop }}{% endmacro %}{% for x in l %}{{ m() }}|{% endfor %}"]

STRINGS = ["{{ s.%s }}" % x for x in (
    "upper()", "lower()", "title()", "capitalize()", "split()", "split(',')", "split(', ')", "split('l', 1)", "rsplit('l', 1)", "split('')", "split(none)", "split(5)", "startswith('Hello')", "startswith(('x', 'H'))", "endswith('d')", "endswith('')", "find('o')", "find('zz')", "rfind('o')",
    "count('l')", "count('')", "replace('l', 'L')", "replace('l', 'L', 1)", "replace('', '-')", "replace('l', '', -1)", "strip('Hd')", "lstrip('Hel')", "rstrip('dl')", "removeprefix('Hello')", "removesuffix('World')", "join(['a', 'b'])", "join([1])", "join('xyz')", "join(5)", "split(sep=',', maxsplit=1)", "strip(1)")] + [
    "{{ 'ᾀᾈᾗᾯᾳᾴᾷᾼῃῼΐßŉﬃև'.upper() }}", "{{ 'ᾀa ᾈa ᾗa ᾯa ᾳa ᾴa ᾷa ᾼa ῃa ΐa ßa ﬃa'.title() }}", "{{ 'ᾀA'.capitalize() }} {{ 'ᾀA|ᾯ'|title }} {{ 'ᾯΣ'.lower() }}",
    "{{ u8.upper() }} {{ u8.title() }} {{ u8.capitalize() }}", "{{ 'ΑΣ ΑΣΑ Σ'.lower() }} {{ 'İ'.lower()|length }} {{ 'ﬁ'.upper() }} {{ 'ǆ'.title() }} {{ 'ǆ'.capitalize() }} {{ 'ŉ'.upper() }}", "{{ '  x  '.strip() }}|{{ '\u00a0\u3000x\u2003'.strip() }}|{{ '\\x1cx'.strip() }}|", "{{ lines.splitlines() }} {{ lines.splitlines(true) }}",
    "{{ 'a\\rb\\r\\nc\\x0bd\\x0ce\\u2028f\\x85g'.splitlines() }}", "{{ ' a b '.split() }} {{ ' a b '.split(' ') }} {{ ' a b c '.split(none, 1) }}", "{{ \"don't\"|title }} {{ 'a-b (c) [d]'|title }} {{ 'x.y'|title }}", "{{ ['a\\'b', 'a\"b', 'a\\'\"b', '\\n\\t\\\\', '\\x00\\x7f', 'é日\\u200d\\u2028', '\\U0001F469'] }}", "{{ content.split('</think>')[-1].lstrip('\\n') if content else messages[2].content.split('</think>')[-1].lstrip('\\n') }}", "{{ messages[2].content.split('<think>')|last }}"]

FORMATTING = [
    "{{ '%s %d %5.2f %r' % ('a', 5, 1.5, 'b') }}", "{{ '%5s|%-5s|%05d|%+d|% d|%-5d|%i|%3s|' % ('a', 'b', 42, 42, -42, 42, 7, 'long') }}", "{{ '%.3s|%.0f|%08.3f|%-9.2f|%+06.1f|% 5d|%f' % ('abcdef', 2.5, -3.14159, 2.675, 1.25, 7, true) }}", "{{ '%-05d|%+ d|%5r' % (3, 4, 'é') }}", "{{ '%f|%5.1f|%d' % (1e22, inf|float, -0.5) }}", "{{ '%5' % 1 }}",
    "{{ '%s' % 'a' }} {{ '%s' % [1] }} {{ '%s' % (1,) }} {{ '%%' % () }}", "{{ '%d' % 'a' }}", "{{ '%d' % 3.9 }} {{ '%d' % true }}", "{{ '%s' % () }}", "{{ '%s' % (1, 2) }}", "{{ 'a' % 1 }}", "{{ 'a' % [1] }}{{ 'a' % {} }}", "{{ '%q' % 1 }}", "{{ '%' % 1 }}", "{{ 1e22 }} {{ 1e21|string }} {{ 123456.7 }} {{ 1.0 }} {{ 0.1 }} {{ 1e-5 }} {{ 12345678901234567890.0 }} {{ 2.5e-8 }}", "{{ 'é%5s' % 'ñ' }}|", "{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%dT%H:%M:%S.%f%z|%Z') }} {{ strftime_now('%-d/%-m %A %B %j %p %%') }}{{ strftime_now('') }}", "{{ strftime_now(1) }}"]

FILTERS = [
    "{{ -5|abs }} {{ 1.5|abs }}", "{{ 'a'|abs }}", "{{ range(5)|batch(2)|list }} {{ range(5)|batch(2, 'x')|list }}", "{{ 'hELLO wORLD'|capitalize }} {{ none|capitalize }}", "{{ d|dictsort }} {{ {'b': 1, 'A': 2}|dictsort }} {{ {'b': 1, 'A': 2}|dictsort(true) }} {{ {'b': 1, 'A': 2}|dictsort(by='value', reverse=true) }}", "{{ {'a': 1, 2: 3}|dictsort }}", "{{ l|dictsort }}",
    "{{ l|first }} {{ s|first }} {{ []|first }}| {{ d|first }}", "{{ l|last }} {{ s|last }} {{ []|last }}| {{ d|last }}", "{{ l|map('string')|last }}", "{{ '1.5'|float }} {{ 'x'|float }} {{ 'x'|float(2.5) }} {{ 5|float }} {{ '1e3'|float }} {{ none|float }}",
    "{{ lines|indent }}|{{ lines|indent(2, true) }}|{{ lines|indent(1, blank=true) }}|{{ ''|indent }}|{{ 'a'|indent('> ', true) }}", "{{ 5|indent }}", "{{ '42'|int }} {{ '4.9'|int }} {{ 'x'|int }} {{ 'x'|int(-1) }} {{ 3.9|int }} {{ -3.9|int }} {{ true|int }} {{ none|int }} {{ ' 7 '|int }} {{ '1_000'|int }} {{ '1__0'|int }}",
    "{{ 'inf'|int }}", "{{ 'nan'|int }} {{ 'inf'|float }} {{ '-inf'|float }}", "{{ d|items|list }}", "{{ l|items|list }}", "{{ l|join }} {{ l|join(', ') }} {{ m|join('-', attribute='v') }} {{ 'abc'|join('.') }} {{ [1, none, 'a']|join(0) }}", "{{ 5|join }}", "{{ l|length }} {{ s|length }} {{ d|length }} {{ u8|length }} {{ l|count }}", "{{ 5|length }}", "{{ 'abc'|list }} {{ d|list }} {{ (1, 2)|list }}", "{{ 5|list }}", "{{ w|map('upper')|list }} {{ m|map(attribute='v')|list }} {{ m|map(attribute='k', default='-')|list }} {{ l|map('string')|join }}",
    "{{ l|map|list }}", "{{ l|map('nope')|list }}", "{{ l|map(attribute='x.y')|list }}", "{{ [[1, 2], [3, 4]]|map(attribute=1)|list }} {{ [[1, 2]]|map('first')|list }} {{ [{'a': [5]}]|map(attribute='a.0')|list }}", "{{ l|max }} {{ l|min }} {{ w|max }} {{ w|max(case_sensitive=true) }} {{ []|max }}| {{ m|max(attribute='v') }}", "{{ [1, 'a']|max }}", "{{ l|reject('odd')|list }} {{ l|select('odd')|list }} {{ [0, 1, '', 'a']|select|list }} {{ [0, 1]|reject|list }}",
    "{{ m|selectattr('k')|map(attribute='v')|list }} {{ m|selectattr('k', 'equalto', 'x')|list }} {{ m|rejectattr('v', 'gt', 1)|list }} {{ m|selectattr('k', 'defined')|list|length }}", "{{ m|selectattr|list }}", "{{ m|selectattr('k', 'nope')|list }}", "{{ 'aXbX'|replace('X', '-') }} {{ 'aXbX'|replace('X', '-', 1) }} {{ 123|replace(2, 'x') }}", "{{ l|reverse|list }} {{ s|reverse }} {{ d|reverse|list }}", "{{ 5|reverse }}", "{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 2.1|round(0, 'ceil') }} {{ 2.19|round(1, 'floor') }} {{ 5|round }} {{ -2.5|round }}",
    "{{ 2.5|round(0, 'x') }}", "{{ 'a'|round }}", "{{ l|sort }} {{ l|sort(true) }} {{ w|sort }} {{ w|sort(case_sensitive=true) }} {{ m[:3]|sort(attribute='v') }} {{ m[:3]|sort(attribute='k,v')|map(attribute='v')|list }}", "{{ [1, 'a']|sort }}", "{{ m|sort(attribute='k')|list }}", "{{ 5|string }} {{ none|string }} {{ [1]|string }} {{ 1.0|string|length }}", "{{ l|sum }} {{ m|sum(attribute='v') }} {{ [1.5, 2]|sum }} {{ l|sum(start=10) }} {{ []|sum }}", "{{ w|sum }}", "{{ [[1], [2]]|sum(start=[]) }}",
    "{{ 'foo bar-baz'|title }}", "{{ '  a '|trim }}| {{ 'xax'|trim('x') }} {{ 5|trim }} {{ none|trim }}", "{{ [1, 1.0, true, 2, 'a', 'A', 'a']|unique|list }} {{ w|unique(case_sensitive=true)|list }} {{ m[:3]|unique(attribute='k')|list }}", "{{ [[1], [1]]|unique|list }}", "{{ s|nope }}", "{% if not t %}{{ s|nope }}{% endif %}ok", "{% if t %}{{ s|nope }}{% endif %}", "{{ s|nope if not t else 'ok' }}", "{{ s is nope }}", "{% filter upper|replace('A', 'b') %}abc{{ s }}{% endfilter %}", "{% filter length %}abc{% endfilter %}", "{{ s|upper|lower|title }}", "{{ s|upper() }} {{ s|replace(old='l', new='L') }} {{ s|default(default_value=1) }}", "{{ s|upper(1) }}", "{{ s|replace('a') }}", "{{ s|replace(foo=1) }}", "{{ ('<'|safe) ~ '<' }} {{ ('<b>'|safe)|upper }} {{ ('<'|safe)[0] ~ ('<'|safe) * 2 }}"]

TESTS = ["{{ [%s]|join(' ') }}" % ", ".join(f"({v} is {test})" for v in ("1", "1.5", "true", "'a'", "'A'", "none", "[]", "{}", "(1,)", "range(3)", "x", "d.items()", "l|map('string')", "namespace()", "range", "s|safe"))
         for test in ("defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string", "mapping", "sequence", "iterable", )] + [
    "{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 3.0 is odd }}", "{{ 'a' is odd }}", "{{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 1 is lessthan 2 }} {{ 2 is gt 1 }} {{ 2 is ge 2 }} {{ 2 is le 1 }} {{ 2 is greaterthan 3 }}", "{{ 1 is in [1] }} {{ 'a' is in 'abc' }} {{ 1 is not in [2] }}",
    "{{ none is sameas none }} {{ t is sameas true }} {{ 1 is sameas true }} {{ l is sameas l }} {{ [] is sameas [] }}", "{{ 1 is not none }} {{ x is not defined }} {{ not x is defined }}", "{{ x is defined and x }} {{ 1 is number and 2 is number }} {{ 1 is number or x }}", "{{ 1 is defined is true }}", "{{ 'a' is string ~ 'b' }}", "{{ l is defined == true }}", "{{ 1 is divisibleby }}", "{{ 1 is eq }}", "{{ 'a' is eq 'a' if t else 0 }}", "{{ l|select('in', [1])|list }} {{ l|select('>', 1)|list }} {{ l|reject('==', 1)|list }}", "{{ d.b is eq d.b }}"]

JSON = [
    "{{ d|tojson }} {{ l|tojson }} {{ s|tojson }} {{ n|tojson }} {{ f|tojson }} {{ t|tojson }} {{ z|tojson }} {{ u8|tojson }} {{ html|tojson }}", "{{ d|tojson(indent=2) }}", "{{ [[], {}, [1], {'a': []}]|tojson(indent=4) }}", "{{ [1]|tojson(indent=0) }} {{ [1]|tojson(indent='\t') }}", "{{ u8|tojson(ensure_ascii=true) }} {{ '\\x7f\\x80'|tojson(true) }}", "{{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }}", "{{ d|tojson(separators=(',', ':')) }} {{ d|tojson(indent=1, separators=(',', ':')) }}", "{{ '\\x00\\x1f\"\\\\/\\b\\f\\n\\r\\t\\x7f\\u2028'|tojson }}",
    "{{ [1.0, 1e16, 1e-7, 0.1, -0.0, 123456789.123, big, inf|float, nan|float]|tojson }}", "{{ {1: 'a', 1.5: 'b', true: 'c', none: 'd'}|tojson }}", "{{ {(1, 2): 3}|tojson }}", "{{ {1: 2, 'a': 3}|tojson(sort_keys=true) }}", "{{ (1, 2)|tojson }}", "{{ range(3)|tojson }}", "{{ l|map('string')|tojson }}", "{{ d.items()|tojson }}", "{{ namespace()|tojson }}", "{{ ('<'|safe)|tojson }}", "{{ messages|tojson }}", "{{ messages[2].tool_calls[0].function.arguments|tojson }}", "{{ d|tojson(1, 2, 3, 4, 5) }}", "{{ d|tojson(foo=1) }}", "{{ [d, d]|tojson|length }}",
    "{{ d }} {{ l }} {{ messages }}", "{{ d.keys() }} {{ d.values() }} {{ d.items() }}", "{{ d.get('b') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ d.get([]) }}", "{{ d.get('q') is none }} {{ d.keys()|list }} {{ 'b' in d.keys() }}", ]

TEMPLATES = [
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}", "{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{% endfor %}", "{{ raise_exception('a ' ~ n) }}", "{{ raise_exception() }}", "{{ raise_exception(5) }}",
    "{% if tools is not none %}{{ tools|length }}{% else %}no tools{% endif %}{% if documents is none %}no documents{% endif %}", "{%- set ns = namespace(multi=true, last=messages|length - 1) -%}{%- for m in messages[::-1] -%}{%- set index = (messages|length - 1) - loop.index0 -%}{%- if ns.multi and m.role == 'user' and m.content is string and not(m.content.startswith('<tool>')) -%}{%- set ns.multi = false -%}{%- set ns.last = index -%}{%- endif -%}{%- endfor -%}{{ ns.last }}",
    "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% foo %}", "{% endif %}", "{% if t %}", "{% for x in l %}", "{% if %}{% endif %}", "{% else %}", "{% if t %}{% endfor %}", "{% set %}", "{% set a %}", "{% macro %}{% endmacro %}", "{% filter %}{% endfilter %}", "{% do 1 %}", "{% if t: %}x{% endif: %}", "{% for x in l: %}{{ x }}{% endfor %}", "{% if t %}a{% elif %}b{% endif %}"]

IDEAS = {"whitespace": WHITESPACE, "literals": LITERALS, "expressions": EXPRESSIONS, "slices": SLICES, "undefined": UNDEFINED, "scopes": SCOPES, "loops": LOOPS, "macros": MACROS, "strings": STRINGS,
         "formatting": FORMATTING, "filters": FILTERS, "tests": TESTS, "json": JSON, "templates": TEMPLATES}


def case(env, source):
    line = {"template": source, "messages": MESSAGES, "tools": None, "kwargs": KWARGS}
    try:
        line["expected"] = env.from_string(source).render(messages=MESSAGES, tools=None, documents=None, **KWARGS)
    except jinja2.exceptions.TemplateError as error:
        line["error" if type(error) is jinja2.exceptions.TemplateError else "fails"] = str(error.message or error)
    except Exception as error:  # noqa: BLE001: what kind of failure it is does not matter
        line["fails"] = f"{type(error).__name__}: {error}"
    if " at 0x" in line.get("expected", ""):
        raise ValueError(f"unpredictable: {source}")
    return line


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "tests/golden/jinja")
    folder.mkdir(parents=True, exist_ok=True)
    for idea, sources in IDEAS.items():
        lines = [case(environment(), source) for source in sources]
        # The conversation is the same in every case, so it is written once, in front.
        shared = {key: lines[0][key] for key in ("messages", "tools", "kwargs")}
        own = [{key: value for key, value in line.items() if key not in shared} for line in lines]
        with open(folder / f"{idea}.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line, ensure_ascii=True) + "\n" for line in [shared, *own])
        print(f"{idea}: {sum('expected' in line for line in lines)} rendered, {sum('expected' not in line for line in lines)} failed")


if __name__ == "__main__":
    main()
