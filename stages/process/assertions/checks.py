"""The checks behind assertions: whether what an output says is so, how it says it, and how alike two texts are."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from evalcube.stages.process.assertions import patterns
from evalcube.stages.process.assertions.documents import DocumentError, parse_document
from evalcube.stages.process.assertions.model import Assertion, Context, UnmeasuredError

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")


def tokens(text: str) -> list[str]:
    """Words and numbers of any script, in lower case; each Chinese or Japanese character is one.

    Examples
    --------
    >>> tokens("A1 café, 很")
    ['a1', 'café', '很']
    """
    return _TOKEN.findall(text.lower())


def rouge_n(candidate: str, reference: str, n: int = 1) -> float:
    """ROUGE-N recall: share of the reference's n-grams that the candidate has, each counted as often as it occurs.

    0 where the reference has no n-gram. Lin (2004), https://aclanthology.org/W04-1013.

    Examples
    --------
    >>> rouge_n("the the the", "the cat")
    0.5
    """
    wanted = _ngrams(tokens(reference), n)
    present = _ngrams(tokens(candidate), n)
    return (wanted & present).total() / wanted.total() if wanted else 0.0


def bleu(candidate: str, reference: str, n: int = 4) -> float:
    """BLEU against one reference, n-grams of length 1 to `n`, unsmoothed.

    0 where one length has no n-gram in common, hence for any candidate of less than `n` tokens.
    Papineni et al. (2002), https://doi.org/10.3115/1073083.1073135.

    Examples
    --------
    >>> round(bleu("a b c d e", "a b c d f"), 4)
    0.6687
    """
    words, wanted = tokens(candidate), tokens(reference)
    logs = 0.0
    for length in range(1, n + 1):
        grams = _ngrams(words, length)
        common = (grams & _ngrams(wanted, length)).total()
        if not common:
            return 0.0
        logs += math.log(common / grams.total())
    brevity = min(0.0, 1 - len(wanted) / len(words))
    return math.exp(brevity) * math.exp(logs / n)


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def levenshtein(first: Sequence[object], second: Sequence[object]) -> int:
    """Least number of insertions, deletions and substitutions that make one sequence the other.

    One step per item of the longer one on whole integers of as many bits as the shorter has items.
    Hyyrö (2003), "A bit-vector algorithm for computing Levenshtein and Damerau edit distances".

    Examples
    --------
    >>> levenshtein("kitten", "sitting")
    3
    """
    short, long = sorted((first, second), key=len)
    if not short:
        return len(long)
    places: dict[object, int] = {}
    for index, item in enumerate(short):
        places[item] = places.get(item, 0) | 1 << index
    full = (1 << len(short)) - 1
    last = 1 << len(short) - 1
    more, less, distance = full, 0, len(short)
    for item in long:
        equal = places.get(item, 0)
        diagonal = (((equal & more) + more) ^ more) | equal | less
        up = less | ~(diagonal | more) & full
        down = more & diagonal
        distance += bool(up & last) - bool(down & last)
        up = up << 1 | 1
        more = (down << 1 | ~(diagonal | up)) & full
        less = up & diagonal & full
    return distance


# What `str.strip` and ``\s`` take for white space differs from it in the byte order mark and some control characters.
_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_WORD = re.compile(f"[^{_SPACE}]+")


def trim(text: str) -> str:
    """The text without white space at its ends."""
    return text.strip(_SPACE)


def word_count(text: str) -> int:
    """How many words a text has: runs of anything but white space."""
    return sum(1 for _ in _WORD.finditer(text))


Check = Callable[[Assertion, Context], bool]
"""May raise `UnmeasuredError`."""


def _contains(assertion: Assertion, context: Context) -> bool:
    return assertion.text.lower() in context.output.lower()


def _within(context: Context, texts: Sequence[str]) -> Iterator[bool]:
    output = context.output.lower()
    return (text.lower() in output for text in texts)


def _equals(assertion: Assertion, context: Context) -> bool:
    return trim(context.output) == trim(assertion.text)


def _json_valid(_assertion: Assertion, context: Context) -> bool:
    try:
        parse_document(context.output)
    except DocumentError:
        return False
    return True


def _json_schema(assertion: Assertion, context: Context) -> bool:
    from evalcube.stages.process.assertions import schemas  # `jsonschema` takes a while

    try:
        document = parse_document(context.output)
    except DocumentError:
        return False
    return schemas.conforms(document, assertion.schema)


def _tool_output(assertion: Assertion, context: Context) -> bool:
    tool, colon, text = assertion.text.lower().partition(":")
    return bool(tool and colon) and any(
        call.tool.lower() == tool and text in call.output.lower() for call in context.tool_calls
    )


def _tool_input(assertion: Assertion, context: Context) -> bool:
    """Arguments are JSON, so a text with a quote or a line end is looked for in its JSON spelling, too."""
    tool, colon, text = assertion.text.lower().partition(":")
    spellings = (text, json.dumps(text, ensure_ascii=False)[1:-1])
    return bool(tool and colon) and any(
        call.tool.lower() == tool and any(spelling in call.input.lower() for spelling in spellings)
        for call in context.tool_calls
    )


def _levenshtein(assertion: Assertion, context: Context) -> bool:
    # The distance is at least the difference in length: an endless output costs nothing.
    if abs(len(context.output) - len(assertion.reference)) > assertion.limit:
        return False
    return levenshtein(context.output, assertion.reference) <= assertion.limit


def _not(check: Check) -> Check:
    return lambda assertion, context: not check(assertion, context)


FACTS: Mapping[str, Check] = {
    "contains": _contains,
    "not_contains": _not(_contains),
    "contains_all": lambda rule, context: all(_within(context, rule.values)),
    "contains_any": lambda rule, context: any(_within(context, rule.values)),
    "equals": _equals,
    "not_equals": _not(_equals),
    "regex": lambda rule, context: patterns.search(
        rule.pattern, rule.flags, context.output, seconds=patterns.SECONDS
    ),
    "json_valid": _json_valid,
    "json_schema": _json_schema,
    "tool_output_contains": _tool_output,
    "tool_input_contains": _tool_input,
    "tool_input_not_contains": _not(_tool_input),
    "rouge_n_min": lambda rule, context: rouge_n(context.output, rule.reference, rule.n) >= rule.threshold,
    "bleu_min": lambda rule, context: bleu(context.output, rule.reference, rule.n) >= rule.threshold,
    "levenshtein_max": _levenshtein,
}
"""Fact types but the scored ones, which need a function of the user."""


def _called_tools(context: Context) -> set[str]:
    return {call.tool.lower() for call in context.tool_calls}


def _mock_was_called(assertion: Assertion, context: Context) -> bool:
    if context.mock_hits is None:
        raise UnmeasuredError("the trial ran without mocks")
    return context.mock_hits.get(assertion.text, 0) >= assertion.threshold


def _require_measured(name: str, value: float | None) -> float:
    if value is None or math.isnan(value):
        raise UnmeasuredError(f"the trial has no {name}")
    return value


BEHAVIORS: Mapping[str, Check] = {
    "starts_with": lambda rule, context: context.output.lower().startswith(rule.text.lower()),
    "ends_with": lambda rule, context: context.output.lower().endswith(rule.text.lower()),
    "min_length": lambda rule, context: len(context.output) >= rule.limit,
    "max_length": lambda rule, context: len(context.output) <= rule.limit,
    "word_count_min": lambda rule, context: word_count(context.output) >= rule.limit,
    "word_count_max": lambda rule, context: word_count(context.output) <= rule.limit,
    "cost_max": lambda rule, context: _require_measured("cost", context.cost) <= rule.limit,
    "latency_max": lambda rule, context: _require_measured("latency", context.latency) <= rule.limit,
    "turns_min": lambda rule, context: _require_measured("turns", context.turns) >= rule.limit,
    "turns_max": lambda rule, context: _require_measured("turns", context.turns) <= rule.limit,
    "tools_called": lambda rule, context: {tool.lower() for tool in rule.values} <= _called_tools(context),
    "tools_not_called": lambda rule, context: _called_tools(context).isdisjoint(map(str.lower, rule.values)),
    "tools_count_min": lambda rule, context: len(context.tool_calls) >= rule.limit,
    "tools_count_max": lambda rule, context: len(context.tool_calls) <= rule.limit,
    "mock_hit": _mock_was_called,
}
