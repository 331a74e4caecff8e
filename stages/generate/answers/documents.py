"""Read and compare JSON values: an answer is one whole value, the outermost at its place."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.numbers import with_whole_numbers
from evalcube.stages.generate.answers.passages import end_of_brackets, passages
from evalcube.stages.generate.answers.values import PatternForm, read_value
from evalcube.stages.generate.answers.wording import late

_WINDOW = 6000
"""Characters at the end of a reply in which a JSON value is looked for."""
LONGEST_JSON = 5000
"""Characters of a JSON value that can be an answer."""
_ATTEMPTS = 300
_HOLDS = 0xE000
"""The first of the private characters that stand for arrays and objects while their sentence is read."""
_PRIVATE = late("[\ue000-\uf8ff]")
_ONE_OF_SEVERAL = late(
    "[\ue000-\uf8ff][\\W_]*(?:(?i:or|(?:option|version|variante?|alternative) ?[2-9B-D])\\b[\\W_]*)?(?:json\\b[\\W_]*)?"
    "[\ue000-\uf8ff][^\ue000-\uf8ff]*\\Z"
)
"""What a reply ends with that gives two values, with nothing between them, or numbered as one of several."""
_SCALAR = late(
    r"[\ue000-\uf8ff]|\{|\"(?:[^\"\\\n\ue000-\uf8ff]|\\.){0,300}\"|(?<![\w.,+*/^$-])-?(?:0|[1-9][0-9]{0,300})"
    r"(?>(?:[.,/][0-9]{1,300}){0,99})(?:[eE][-+]?[0-9]{1,3})?(?![\w.]\w)(?![\w%^!]|\s?[-+*×]\s?[0-9])"
    r"|(?<![\w-])(?:true|false|null)(?![\w-])|(?<![\ue000-\uf8ff])\"(?![\ue000-\uf8ff])"
)
_ANSWER_KEY = late(r"(?:\w{1,20}[_ -])?answer(?:[_ -]\w{1,20})?", re.IGNORECASE)


_DECODER = json.JSONDecoder()


def json_text(value: object, *, parse: bool = False) -> str | None:
    """A JSON value in one form: sorted keys, 1.0 as 1; None for what is no JSON.

    Examples
    --------
    >>> json_text({"b": 1.0, "a": [True]}), json_text('{"a":2}', parse=True)
    ('{"a": [true], "b": 1}', '{"a": 2}')
    """
    try:
        if parse and isinstance(value, str):
            value = json.loads(value)
        return json.dumps(with_whole_numbers(value), sort_keys=True, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return None


def read_json(text: str, comparison: object = None) -> str | None:  # noqa: ARG001 - as the others
    """The JSON value a reply gives as its answer, in one form; None if there is none, or it is not complete.

    It stands after the last mark of an answer; without one it is the whole reply, or the last object or array
    in it.

    Examples
    --------
    >>> read_json('Answer: {"b": 1, "a": 2.0}'), read_json('Answer: [1, [2, 3]')
    ('{"a": 2, "b": 1}', None)
    """
    plain, values = _with_holders(_PRIVATE.sub(" ", text[-_WINDOW:]))
    bare = plain.strip("` \n").removeprefix("json").strip()
    if len(bare) == 1 and values:
        return _field_of(values[0])
    whole = json_text(bare, parse=True) if not values else None
    unmarked = bool(values) and not any(passages(plain))
    if unmarked and _ONE_OF_SEVERAL.search(plain):
        return None
    return whole or read_value(plain, _form_of(values, _PRIVATE if unmarked else _SCALAR))


_BROKEN = object()
"""What stands for a value that is cut or no JSON, with all that is in it."""
_OPENER = late(r"[\[{]")
_AT_ITS_PLACE = late(r"(?:\A|\n|:|[aA]nswer|is|are|json|```|>)[\s*_`$(]*\Z")
_JSON_BEGINS = late(r"[\[{]\s*(?:[\"'\[{0-9\-\]}.]|(?:true|false|null)\b)")
_GOES_ON = late(r"\s*(?:[\]}]|\.\.|…|\+|,[^\[\]{}\n]{0,80}[\]}])")
"""What follows a value that is a part of a larger one."""


def _with_holders(text: str) -> tuple[str, list[object]]:
    """A text with one character for each of its outermost arrays and objects, and these."""
    parts: list[str] = []
    values: list[object] = []
    done = at = skipped = 0
    for _ in range(_ATTEMPTS):
        opener = _OPENER.search(text, at)
        if opener is None:
            break
        at = opener.start()
        try:
            value, end = _DECODER.raw_decode(text, at)
            goes_on = _GOES_ON.match(text, end)
            if goes_on and goes_on[0][-1:] in "]}" and skipped:
                skipped -= 1  # of LaTeX around it
            elif goes_on:
                value = _BROKEN
        except (ValueError, RecursionError):
            if not _JSON_BEGINS.match(text, at) or not _AT_ITS_PLACE.search(text, max(0, at - 20), at):
                at, skipped = at + 1, skipped + 1
                continue
            value, end = _BROKEN, end_of_brackets(text, at, _BRACKET) or len(text)
        parts += [text[done:at], chr(_HOLDS + len(values))]
        values.append(value)
        at = done = end
    return "".join([*parts, text[done:]]), values


_BRACKET = late(r"[\[\]{}]|\"(?:[^\"\\\n]|\\.){0,999}\"")


def _field_of(value: object) -> str | None:
    """A document as a text; where it has an answer among its fields, that."""
    fields = value if isinstance(value, dict) else {}
    named = [item for key, item in fields.items() if _ANSWER_KEY.fullmatch(key)]
    return json_text(named[-1] if named else value)


def _form_of(values: Sequence[object], pattern: re.Pattern[str]) -> PatternForm:
    """The form of JSON values in a text with characters for these."""
    texts = [json_text(value) for value in values]

    def mention(match: re.Match[str]) -> Mention:
        index = ord(match[0][0]) - _HOLDS
        text = texts[index] if 0 <= index < len(texts) else json_text(match[0], parse=True)
        return Mention(*match.span(), text, match[0][0] in 'tfn"')

    return PatternForm(pattern, mention, name="JSON", counts=True)
