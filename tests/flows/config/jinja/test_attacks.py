"""Templates made to take all time or memory -> an error within seconds, or a rendering that took little."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import jinja2
import pytest

from evalcube.flows.config.templates import Template
from evalcube.flows.errors import TemplateError

LONGEST = 20.0
"""Seconds of CPU: the longest takes about one, and without a bound they would take minutes."""
MOST = 200_000_000
"""Bytes."""

SEED = 1
"""Any other one chooses others; all twelve thousand take an hour."""
SAMPLE = 60

HUGE = "999999999"
DOUBLED = "{% set a = [1, 2] %}" + "{% set a = [a, a] %}" * 40
"""A list of a few hundred bytes that prints as 2^41 numbers."""
TUPLES = "{% set a = (1, 2) %}" + "{% set a = (a, a) %}" * 40
LONG = "{% set s = 'ab ' * 1300000 %}"
SMALL_CODE = "{% set s = 'x' * 100000 %}"
WORD = "{% set s = 'a' * 3900000 %}"

NAMED = {
    "center": "{{ 'a' | center(999999999) }}",
    "slice without end": "{{ [1] | slice(999999999999) | list | length }}",
    "map center": "{{ range(99999) | map('center', 90000) | join | length }}",
    "map center, lazily": "{% for x in range(99999) | map('center', 3000000) %}{% endfor %}",
    "joins of joins": SMALL_CODE + "{% set s = [s] * 900 | length %}{{ ([s] * 900) | join | length }}",
    "join of one text": SMALL_CODE + "{{ ([s] * 100000) | join | length }}",
    "method join": SMALL_CODE + "{{ ''.join([s] * 100000) | length }}",
    "separator": SMALL_CODE + "{{ range(99999) | join(s) | length }}",
    "method separator": SMALL_CODE + "{{ s.join('a' * 99999) | length }}",
    "concatenation": "{% macro m(x, n) %}{{ m(x ~ x, n - 1) if n else x | length }}{% endmacro %}{{ m('ab', 40) }}",
    "addition": "{% macro m(x, n) %}{{ m(x + x, n - 1) if n else x | length }}{% endmacro %}{{ m('ab', 40) }}",
    "lists added": "{% macro m(x, n) %}{{ m(x + x, n - 1) if n else x | length }}{% endmacro %}{{ m([1], 40) }}",
    "squares": "{% macro m(x, n) %}{{ m(x * x, n - 1) if n else x % 7 }}{% endmacro %}{{ m(9, 60) }}",
    "percent width": "{{ '%999999999d' % 1 }}",
    "percent star": "{{ '%*d' % (999999999, 1) }}",
    "percent precision": "{{ '%.999999999f' % 1 }}",
    "percent named width": "{{ '%(a)999999999s' % {'a': 1} }}",
    "percent many": SMALL_CODE + "{{ ('%(s)s' * 90000) % {'s': s} }}",
    "divisibleby formats": "{{ '%999999999d' is divisibleby(1) }}",
    "odd formats": "{{ '%2d' * 1000000 is odd }}",
    "format filter": "{{ '%999999999d' | format(1) }}",
    "format method": "{{ '{:999999999}'.format(1) }}",
    "format nested width": "{{ '{:{}}'.format(1, 999999999) }}",
    "format precision": "{{ '{:.999999999f}'.format(1.0) }}",
    "format map": "{{ '{a:999999999}'.format_map({'a': 1}) }}",
    "format many": SMALL_CODE + "{{ ('{0}' * 90000).format(s) }}",
    "format by attr": "{{ ('{:999999999}' | attr('format'))(1) }}",
    "format repr": DOUBLED + "{{ '{!r}'.format(a) }}",
    "to_bytes": "{{ (1).to_bytes(999999999, 'big') }}",
    "fromkeys": "{{ {}.fromkeys(range(0, 99999 * 2305843009213693951, 2305843009213693951)) | length }}",
    "colliding numbers": "{{ range(0, 99999 * 2305843009213693951, 2305843009213693951) | unique | list | length }}",
    "idna": "{{ ('ü' * 900000).encode('idna') }}",
    "punycode": "{{ ('ü' * 900000).encode('punycode') }}",
    "translate": SMALL_CODE + "{{ s.translate({120: s}) | length }}",
    "expandtabs": "{{ '\t\t\t'.expandtabs(999999999) | length }}",
    "round": "{{ 5 | round(-999999999) }}",
    "round down": "{{ 5 | round(999999999, 'floor') }}",
    "sum of lists": "{{ ([range(99) | list] * 40000) | sum(start=[]) | length }}",
    "int of hex": "{{ ('f' * 3900000) | int(0, 16) % 7 }}",
    "int of base 3": "{{ ('2' * 3900000) | int(0, 3) % 7 }}",
    "float of digits": "{{ ('9' * 3900000) | float }}",
    "json in json": SMALL_CODE.replace("'x'", "'\"'")
    + "{{ s | tojson | tojson | tojson | tojson | tojson | length }}",
    "plain json in json": "{{ task " + "| tojson " * 60 + "}}",
    "json indent": "{{ [[[[1, 2], 3], 4], 5] | tojson(indent=99999999) }}",
    "json indent text": SMALL_CODE + "{{ (range(9999) | list) | tojson(indent=s) | length }}",
    "json deep": DOUBLED + "{{ a | tojson }}",
    "urlencode": "{{ ('ü' * 3900000) | urlencode | length }}",
    "escape": "{{ ('&' * 3900000) | escape | escape | length }}",
    "escape of safe": "{{ ('a' | safe + '&' * 3900000) | length }}",
    "autoescape": "{% autoescape true %}{% for i in range(9) %}{{ '&' * 3900000 }}{% endfor %}{% endautoescape %}",
    "autoescape in a macro": "{% autoescape true %}{% macro m() %}{% for i in range(99) %}{{ '\"' * 900000 }}"
    "{% endfor %}{% endmacro %}{{ m() | length }}{% endautoescape %}",
    "xmlattr": "{{ {'a': '&' * 3900000} | xmlattr | length }}",
    "safe join": "{{ ('' | safe).join(['&' * 900000] * 90) | length }}",
    "safe format": "{{ ('{0}' * 90 | safe).format('&' * 900000) | length }}",
    "striptags": "{{ ('<!---->' * 400000) | striptags }}",
    "striptags open": "{{ ('<a' * 900000) | striptags | length }}",
    "unclosed comments": "{{ ('<!--' * 900000) | striptags | length }}",
    "wordwrap of one word": WORD + "{{ s | wordwrap(1) | length }}",
    "wordwrap of hyphens": "{{ ('a-' * 1900000) | wordwrap(3) | length }}",
    "wordwrap of dashes": "{{ ('-' * 90000 ~ 'a') | wordwrap(3) | length }}",
    "wordwrap with a long break": "{{ ('a ' * 900) | wordwrap(1, wrapstring='x' * 3000000) | length }}",
    "urlize dots": "{{ ('www.' ~ '.' * 390000 ~ 'a') | urlize | length }}",
    "urlize brackets": "{{ ('www.a' ~ '(' * 190000 ~ ')' * 190000) | urlize | length }}",
    "urlize targets": "{{ ('www.a.de ' * 9000) | urlize(target='x' * 300000) | length }}",
    "strip characters": "{{ ('a' * 1900000).strip('b' * 1900000 ~ 'a') }}",
    "rfind": "{{ ('a' * 1900000).rfind('b' ~ 'a' * 900000) }}",
    "count": "{{ ('a' * 1900000).count('a' * 900000 ~ 'b') }}",
    "replace": "{{ ('a' * 1900000) | replace('a', 'b' * 1900000) | length }}",
    "replace nothing": "{{ ('a' * 1900000) | replace('', 'b' * 1900000) | length }}",
    "method replace": "{{ ('a' * 1900000).replace('a', 'b' * 1900000) | length }}",
    "indent": "{{ ('a\n' * 900000) | indent(99999) | length }}",
    "indent text": "{{ ('a\n' * 900000) | indent('b' * 99999) | length }}",
    "batch": "{{ [1] | batch(999999999, 0) | list | length }}",
    "range": "{{ range(99999999999) | list }}",
    "range in range": "{{ range(99999) | map('attr', 'real') | map('string') | map('center', 9999) | list | length }}",
    "list of characters": "{{ ('a' * 3900000) | list | length }}",
    "split": "{{ ('a ' * 1900000).split() | length }}",
    "pprint": DOUBLED + "{{ a | pprint }}",
    "prints a list": DOUBLED + "{{ a }}",
    "compares lists": DOUBLED + DOUBLED.replace(" a ", " b ").replace("[a, a]", "[b, b]") + "{{ a == b }}",
    "is in lists": DOUBLED + DOUBLED.replace(" a ", " b ").replace("[a, a]", "[b, b]") + "{{ a in [b] }}",
    "hash of a key": TUPLES + "{{ {a: 1} | length }}",
    "hash of an item": TUPLES + "{{ params[a] }}",
    "hash of get": TUPLES + "{{ params.get(a) }}",
    "hash in a test": TUPLES + "{{ a in params }}",
    "hash in unique": TUPLES + "{{ [a, a] | unique | list | length }}",
    "slices": LONG + "{% for i in range(99999) %}{% set t = s[1:] %}{% endfor %}",
    "slices kept": LONG + "{{ range(99999) | map('replace', '', s) | list | length }}",
    "compares": LONG
    + "{% set t = s ~ 'a' %}{% set u = s ~ 'b' %}{% for i in range(99999) %}{{ t == u }}{% endfor %}",
    "looks for": LONG + "{% for i in range(99999) %}{% if 'zz' in s %}{% endif %}{% endfor %}",
    "counts": LONG + "{% for i in range(99999) %}{{ s.count('b') }}{% endfor %}",
    "word counts": LONG + "{% for i in range(99999) %}{{ s | wordcount }}{% endfor %}",
    "titles": LONG + "{% for i in range(99) %}{% if s | title == '' %}{% endif %}{% endfor %}",
    "in a set block": "{% set x %}{% for i in range(99999) %}{{ prompt }}{{ prompt * 9 }}{% endfor %}{% endset %}"
    "{{ x | length }}",
    "data in a set block": "{% set x %}{% for i in range(99999) %}"
    + "y" * 90000
    + "{% endfor %}{% endset %}{{ x | length }}",
    "in a filter block": "{% filter length %}{% for i in range(99999) %}"
    + "y" * 90000
    + "{% endfor %}{% endfilter %}",
    "in a macro": "{% macro m() %}{% for i in range(99999) %}"
    + "y" * 90000
    + "{% endfor %}{% endmacro %}{{ m() | length }}",
    "in a call": "{% macro m() %}{{ caller() | length }}{% endmacro %}{% call m() %}{% for i in range(99999) %}"
    + "y" * 90000
    + "{% endfor %}{% endcall %}",
    "in a block": "{% block a %}{% for i in range(99999) %}"
    + "y" * 90000
    + "{% endfor %}{% endblock %}{{ self.a() | length }}",
    "macro of itself": "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
    "macros of themselves": "{% macro m(n) %}{% if n < 90 %}{{ m(n + 1) }}{{ m(n + 1) }}{% endif %}{% endmacro %}"
    "{{ m(0) }}",
    "block of itself": "{% block a %}{{ self.a() }}{{ self.a() }}{% endblock %}",
    "loop of itself": "{% for i in [1, 2] recursive %}{% if loop.depth < 99 %}{{ loop([1, 2]) }}{% endif %}"
    "{% endfor %}",
    "loop of itself over many": "{% for i in [1] recursive %}{% if loop.depth < 4 %}{{ loop(range(99999)) }}{% endif %}"
    "{% endfor %}",
    "loop of itself that chooses": "{% for i in [1] recursive if i < 9 %}{{ loop(range(1, 99999)) }}{% endfor %}",
    "loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "loops that choose": "{% for i in range(99999) if range(99999) | list == 5 %}{% endfor %}",
    "a list in a loop": "{% for i in range(99999) %}{% set x = [" + "1," * 9000 + "] %}{% endfor %}",
    "a long body of a macro": "{% macro m(n) %}{% set x = ["
    + "n," * 9000
    + "] %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "arguments": "{% macro m() %}{{ varargs | length }}{% endmacro %}"
    "{% for i in range(9999) %}{{ m(*range(99999)) }}{% endfor %}",
    "sorting": "{{ range(99999) | map('string') | sort(reverse=true) | map('sort') | list | length }}",
    "grouping": "{% for i in range(999) %}{{ range(9999) | groupby('real') | length }}{% endfor %}",
    "dictsort": "{% for i in range(9999) %}{{ {'a': 'x' * 900000, 'b': 'x' * 900000} | dictsort(by='value') | length }}"
    "{% endfor %}",
    "include": "{% include 'x' %}",
    "import": "{% import 'x' as y %}{{ y.z() }}",
    "extends": "{% extends 'x' %}",
    "many filters": "{{ prompt" + " | upper" * 9000 + " }}",
    "many outputs": "{{ prompt | upper }}" * 9999,
    "many brackets": "{{ " + "(" * 9999 + "1" + ")" * 9999 + " }}",
    "many lists": "{{ " + "[" * 900 + "]" * 900 + " }}",
    "many loops": "{% for i in [1] %}" * 30 + "{% endfor %}" * 30,
    "many branches": "{% if prompt %}" * 300 + "{% endif %}" * 300,
    "many assignments": "{% set a = 1 %}" * 9000,
    "many names": "".join(f"{{% set a{i} = 1 %}}" for i in range(9000)),
    "many macros": "".join(f"{{% macro a{i}() %}}{{% endmacro %}}" for i in range(4000)),
    "many elifs": "{% if prompt == 1 %}" + "{% elif prompt == 2 %}" * 4000 + "{% endif %}",
    "as many outputs as may be": "{{ prompt | upper }}" * 5400,
    "as many assignments as may be": "{% set a = 1 %}" * 4500,
    "as many names as may be": "".join(f"{{% set a{i} = 1 %}}" for i in range(4500)),
    "as many macros as may be": "".join(f"{{% macro a{i}() %}}{{% endmacro %}}" for i in range(3500)),
    "as many brackets as may be": "{{ " + "(" * 60 + "1" + ")" * 60 + " }}",
    "as many loops as may be": ("{% for i in [1] %}" * 9 + "{% endfor %}" * 9) * 300,
    "as many ifs as may be": ("{% if prompt %}{% set a = 1 %}" * 18 + "{% endif %}" * 18) * 150,
    "many tokens": "{{ 1 }}" * 400_000,
    "many numbers": "{{ [" + "1," * 400_000 + "] | length }}",
    "a long number": "{{ 0x" + "f" * 900_000 + " % 7 }}",
    "a long text": "{{ '" + "\\n" * 900_000 + "' | length }}",
    "open comments": "{#" * 400_000,
    "open code": "{%" * 400_000,
}

ARGUMENTS = (
    HUGE,
    f"{HUGE}, {HUGE}",
    f"'a' * {HUGE}",
    "s",
    "s, s",
    "s, s, s",
    "a",
    "'center', 999999",
    "start=[s]",
    "width=s | length",
)
VALUES = {
    "text": "s",
    "list": "([s] * 30000)",
    "doubled": "a",
    "tuples": "b",
    "numbers": "range(99999)",
    "number": f"(2 ** 60 * {HUGE})",
}
SETUP = "{% set s = 'a&\"-<' * 60000 %}" + DOUBLED + TUPLES.replace(" a ", " b ").replace("(a, a)", "(b, b)")


def generated() -> Iterator[tuple[str, str]]:
    """Every filter and test of Jinja and every operator, with values that are far too large."""
    for value, expression in VALUES.items():
        for name in sorted(jinja2.filters.FILTERS):
            yield f"{name} of {value}", _all(f"{expression} | {name}", f"{expression} | {name}(@)")
            yield f"map {name} of {value}", _all(f"[{expression}] * 90000 | map('{name}') | join | length")
        for name in sorted(jinja2.tests.TESTS):
            if name.isalpha():
                yield f"is {name} of {value}", _all(f"{expression} is {name}", f"{expression} is {name}(@)")
        for name in sorted({*dir(str), *dir(list), *dir(int), *dir(dict), *dir(bytes)}):
            if not name.startswith("_"):
                yield f"method {name} of {value}", _all(f"{expression}.{name}()", f"{expression}.{name}(@)")
        for sign in ("+", "-", "*", "/", "//", "%", "**", "~", "==", "<", "in", "and", "or"):
            for other in (*VALUES.values(), "'%99999999d'", "'%s' * 90000"):
                yield (
                    f"{expression} {sign} {other}",
                    _all(f"{expression} {sign} {other}", f"{other} {sign} {expression}"),
                )


def _all(plain: str, given: str = "") -> list[str]:
    """An expression without and with each of the arguments."""
    filled = [given.replace("@", argument) for argument in ARGUMENTS] if "@" in given else [given]
    texts = [plain, *filled] if given else [plain]
    return [SETUP + "{{ (" + text + ") | string | length }}" for text in texts]


def attempts(texts: Sequence[str]) -> list[tuple[str, float, int]]:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("attacked.py"))],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return [tuple(row) for row in json.loads(done.stdout)]


def is_bounded(end: str, seconds: float, memory: int) -> bool:
    fails = not end.startswith(("rendered", "refused")) or "MemoryError" in end
    return seconds < LONGEST and memory < MOST and not fails


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[str, float, int]]:
    return dict(zip(NAMED, attempts(list(NAMED.values())), strict=True))


@pytest.mark.cluster
@pytest.mark.parametrize("name", NAMED)
def test_render__attack_ends_soon(name: str, outcomes: dict[str, tuple[str, float, int]]) -> None:
    assert is_bounded(*outcomes[name]), outcomes[name]


@pytest.mark.integration
def test_render__operations_with_huge_values_end_soon() -> None:
    texts = random.Random(SEED).sample([text for _, texts in generated() for text in texts], SAMPLE)

    ends = zip(texts, attempts(texts), strict=True)

    assert not [(text[len(SETUP) :], end) for text, end in ends if not is_bounded(*end)]


def test_render__an_attack_is_refused_with_its_line() -> None:
    template = Template([{"role": "user", "content": "{{ prompt }}\n\n{{ 'a' | center(999999999) }}"}])

    with pytest.raises(TemplateError, match="takes more than 32,000,000 bytes of work") as caught:
        template.render(prompt="x")

    assert (caught.value.where, caught.value.line) == ((0, "content"), 3)
    assert caught.value.remedy


def test_render__messages_share_one_budget() -> None:
    long = {"role": "user", "content": "{% set x = 'a' * 2000000 %}{{ x | upper | length }}"}

    assert Template([long]).render(prompt="x")
    with pytest.raises(TemplateError, match="bytes of work"):
        Template([long] * 9).render(prompt="x")
