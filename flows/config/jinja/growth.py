"""What filters and methods of texts take beyond what they read and return, estimated before they run.

Each function has the parameters of the filter or method that it is for, and returns bytes. A rate stands for
slowness: a filter that needs 64 times as long for a byte as copying it counts each byte 64 times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evalcube.flows.config.jinja.budget import BUDGET, SCALAR

Cost = Callable[..., float]

ESCAPED = 6
"""Most bytes that one byte becomes in JSON, in HTML, in a URL or between quotes."""
_SPEC = re.compile(r"[%)][#0\- +]*(\*|\d+)?(?:\.(\*|\d+))?")
"""Width and precision of a %-format. Where one cannot be, behind any other bracket, it is counted as well."""


def size(*values: object, **named: object) -> int:
    """Bytes of all arguments together."""
    budget = BUDGET.get()
    return sum(budget.size(value) for value in (*values, *named.values()))


def text_of(value: object) -> str:
    """The text of a value, if it is not too large to be looked at."""
    if not isinstance(value, str):
        BUDGET.get().require(ESCAPED * size(value))
    return str(value)


def rate(times: float) -> Cost:
    """The cost of what takes the same time for each byte."""
    return lambda *values, **named: times * size(*values, **named)


def number(value: object) -> float:
    """A width or count that may be none."""
    return max(0.0, value) if isinstance(value, (int, float)) else 0.0


def center(value: object, width: object = 80, *fill: object, **named: object) -> float:
    """Of all that pad a text to a width."""
    return size(value, *fill, *named.values()) + 4 * number(width)


def indent(value: str, width: object = 4, first: object = False, blank: object = False) -> float:
    """Of a margin before each line."""
    margin = size(width) if isinstance(width, str) else number(width)
    return size(value, first, blank) + (1 + len(text_of(value).splitlines())) * 4 * margin


def replace(value: object, old: object, new: object, count: object = None) -> float:
    """Of a text with all occurrences of another replaced."""
    text, part = text_of(value), text_of(old)
    hits = text.count(part)
    if isinstance(count, int) and count >= 0:
        hits = min(hits, count)
    return size(value, old, new, count) + hits * size(new)


def join(value: Iterable[Any], d: object = "", attribute: object = None) -> float:
    """Of the items and what stands between them."""
    items = list(value)
    return ESCAPED * size(items, attribute) + len(items) * size(d)


def method_join(separator: str, items: Iterable[Any]) -> float:
    """Of `str.join`."""
    return join(items, separator)


def trim(value: object, chars: object = None) -> float:
    """Of a text stripped of any of some characters: each one is looked for among all of them."""
    return size(value) * (1 + (len(chars) if isinstance(chars, str) else 0))


def search_backwards(value: str, part: object = None, *rest: object, **named: object) -> float:
    """Of what looks for a text from the end, which Python does without skipping."""
    return size(value) * (1 + (len(part) if isinstance(part, str) else 0) / 8) + size(*rest, **named)


def striptags(value: object) -> float:
    """Of a text that is copied for each of its tags."""
    text = text_of(value)
    return size(value) * (16 + text.count("<") / 16)


def words(value: object, *rest: object, **named: object) -> float:
    """Of what goes through a text word by word; long words are copied for each line that they fill."""
    longest = max(map(len, text_of(value).split()), default=0)
    return 64 * size(value) + 8 * longest * longest + size(*rest, **named)


def urlize(value: object, *rest: object, **named: object) -> float:
    """Of links: each word may get all of the arguments."""
    return words(value) + ESCAPED * len(text_of(value).split()) * size(*rest, **named)


def wordwrap(
    value: object,
    width: object = 79,
    break_long_words: object = True,
    wrapstring: object = None,
    break_on_hyphens: object = True,
) -> float:
    """Of lines: at most one for each character of the text."""
    lines = len(text_of(value)) / (max(1.0, number(width)) if break_long_words else 1.0) + 1
    lines += len(text_of(value).split()) + len(text_of(value).splitlines())
    return words(value, width, break_on_hyphens) + lines * size(wrapstring)


def format_percent(value: object, *arguments: object, **named: object) -> float:
    """Of the format with %: widths, and each argument as often as it may be named."""
    given: object = named or arguments
    if len(arguments) == 1 and isinstance(arguments[0], (tuple, Mapping)):
        given = arguments[0]
    filled = text_of(value)
    items = given if isinstance(given, tuple) else ()
    largest = max(map(number, items), default=0.0)
    widths = 0.0
    for match in _SPEC.finditer(filled):
        for text in match.groups():
            if text == "*":
                widths += largest
            elif text:
                widths += int(text) if len(text) < 10 else 1e10
    times = filled.count("%") if isinstance(given, Mapping) else 1
    return size(value) + 4 * widths + ESCAPED * times * size(given)


def round_(value: object, precision: object = 0, method: object = "common") -> float:
    """Of a rounded number: powers of ten with as many digits as the precision says."""
    far = abs(precision) if isinstance(precision, (int, float)) else 0
    return size(value, method) + (1e12 if far > 400 else 0.0)


def sum_(value: Iterable[Any], attribute: object = None, start: object = 0) -> float:
    """Of a sum, which copies what it has with each item where the items are lists."""
    items = list(value)
    return size(items, attribute) * (1 if isinstance(start, (int, float)) else 1 + len(items)) + size(start)


def batch(value: Iterable[Any], linecount: object, fill_with: object = None) -> float:
    """Of rows that are filled up to a length."""
    lone = not hasattr(value, "__len__")
    return (
        size(() if lone else value, fill_with) + 8 * number(linecount) + number(linecount) * size(fill_with)
    )


def sort(value: Any, *rest: object, **named: object) -> float:  # noqa: ANN401 - anything with or without a length
    """Of a sorted list: each item is compared a logarithm of times."""
    length = len(value) if hasattr(value, "__len__") else 0
    return size(value) * (1 + length.bit_length()) + size(*rest, **named)


def json(value: object, indent: object = None) -> float:
    """Of JSON: with an indent each value has a line of its own, as deep as it lies."""
    base = ESCAPED * size(value)
    if indent is None:
        return base
    margin = size(indent) if isinstance(indent, str) else number(indent)
    return 8 * base + size(value) / SCALAR * (1 + _depth(value)) * margin


def pprint(value: object) -> float:
    """Of a printed value, whose parts are printed again at each depth."""
    return 32 * size(value) * (1 + _depth(value))


def _depth(value: object) -> int:
    """Levels of lists and mappings in each other; called with what has been measured, so that it ends."""
    depth, level = 0, [value]
    while level:
        level = [
            part
            for item in level
            if isinstance(item, (list, tuple, Mapping))
            for part in (item.values() if isinstance(item, Mapping) else item)
        ]
        depth += 1
    return depth


def text_number(value: object, *rest: object, **named: object) -> float:
    """Of a text read as a number: digits cost their square."""
    digits = len(value) if isinstance(value, str) else 0
    return size(value, *rest, **named) + digits * digits / 8


FILTERS: dict[str, Cost] = {
    **dict.fromkeys(
        ("attr", "count", "d", "default", "first", "last", "length", "safe"), lambda *_, **__: 0.0
    ),
    "batch": batch,
    "center": center,
    "dictsort": sort,
    "e": rate(ESCAPED),
    "escape": rate(ESCAPED),
    "float": text_number,
    "forceescape": rate(ESCAPED),
    "format": format_percent,
    "groupby": sort,
    "indent": indent,
    "int": text_number,
    "join": join,
    "max": rate(2),
    "min": rate(2),
    "pprint": pprint,
    "replace": replace,
    "round": round_,
    "sort": sort,
    "string": rate(ESCAPED),
    "striptags": striptags,
    "sum": sum_,
    "title": rate(16),
    "tojson": json,
    "trim": trim,
    "urlencode": rate(2 * ESCAPED),
    "urlize": urlize,
    "wordcount": rate(16),
    "wordwrap": wordwrap,
    "xmlattr": rate(2 * ESCAPED),
}
"""Filters that take more than they read and return."""

_TEXT = dict.fromkeys(
    """capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit isidentifier islower
    isnumeric isprintable isspace istitle isupper lower partition removeprefix removesuffix split splitlines
    startswith swapcase title upper""".split(),
    rate(4),
)
METHODS: dict[type, dict[str, Cost]] = {
    str: {
        **_TEXT,
        **dict.fromkeys(("center", "ljust", "rjust", "zfill"), center),
        **dict.fromkeys(("lstrip", "rstrip", "strip"), trim),
        **dict.fromkeys(("rfind", "rindex", "rpartition", "rsplit"), search_backwards),
        "join": method_join,
        "replace": replace,
        "expandtabs": lambda value, tabsize=8: size(value) + 4 * value.count("\t") * number(tabsize),
        "striptags": striptags,
        **dict.fromkeys(("escape", "unescape"), rate(ESCAPED)),
    },
    dict: dict.fromkeys(("copy", "get", "items", "keys", "values"), size),
    list: dict.fromkeys(("copy", "count", "index"), size),
    tuple: dict.fromkeys(("count", "index"), size),
    int: dict.fromkeys(("bit_length", "is_integer"), size),
    float: dict.fromkeys(("is_integer",), size),
}
"""Methods that templates may call. Others, such as `int.to_bytes`, make what no prompt needs."""
