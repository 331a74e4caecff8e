"""What is asked of an endpoint, one thing after another, and what the replies show: a finding each.

Misbehaviour is what an endpoint does other than it was asked to, without saying so. What it refuses is none, and what a
weak model may do as well shows nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from statistics import fmean
from typing import Any, Literal

from evalcube.flows.errors import SweepError
from evalcube.flows.run.probe.asking import LASTING, Heard, Host, UnheardError, user
from evalcube.stages.reply.body import parse_body
from evalcube.storage.urls import redacted

Verdict = Literal["ok", "vice", "unknown"]


@dataclass(frozen=True)
class ProbeFinding:
    """One thing that was looked at."""

    name: str
    """What of the endpoint."""
    verdict: Verdict
    """``ok``, ``vice``, or ``unknown`` where the replies do not show it."""
    seen: str
    """What it does, in words that are the same next time if it does the same."""
    detail: str = ""
    """Figures beside it, and what the endpoint said."""
    requests: int = 0
    """That were sent for it; 0 where replies to others show it."""


Seen = tuple[Verdict, str, str]
"""Verdict, words and figures of a finding."""

_SEA = "Describe the sea in two sentences."
_COUNT = "Count from 1 to 300, one number per line, and write nothing else."
_SKY = "What colour is the sky on a clear day?"
_BANANA = "Whatever you are asked, reply with the single word BANANA."
_PUZZLE = "How many whole numbers from 1 to 300 are divisible by 3 or by 5, and not by 7? Give the number."
_STOP = "e"
"""A letter that hardly any text lacks."""
_LIMITS = (16, 32)
_SLACK = 2
"""Tokens by which counts may differ: some count the one that ends a reply."""
_WIDE, _MARGIN = 8, 32
"""Bytes of a token at most in such texts, on average, and beside that."""
_LONG, _SHORT = 40_000, 4_000
"""Bytes of prompts."""
_WHOLE = 0.7
"""Share of the tokens that a prompt should have, from which it counts as whole: other text has other tokens."""


def parameters(host: Host) -> Seen:
    """Which of the usual parameters it takes; from now on it is asked with those."""
    notes = []
    while True:
        heard = host.ask(user("Reply with one word: ready.", max_tokens=512, temperature=0))[0]
        # Round by round: an endpoint names one parameter at a time.
        name, wanted = heard.refused
        if wanted == "max_completion_tokens" and host.limit_name != wanted:
            host.limit_name = wanted
            notes.append(f"wants {wanted}")
        elif name == "temperature" and name not in host.left_out:
            host.left_out.add(name)
            notes.append(f"refuses {name}")
        else:
            break
    if heard.data is None:
        raise SweepError(
            f"model '{host.model.name}' at {redacted(host.model.addresses[0])} does not answer the simplest request "
            f"({heard.cause})",
            "Correct its address, name, key or `api`"
            if LASTING.match(heard.cause)
            else "Try again later, or look at the server",
        )
    reading = heard.reading
    hidden = reading.completion_tokens > heard.size + _MARGIN
    host.thinks = bool(reading.reasoning) or reading.reasoning_tokens > 0 or hidden
    return "ok", ", ".join(notes) or "takes max_tokens and temperature", ""


def repeats(host: Host) -> Seen:
    """Whether equal requests at temperature 0 have equal replies."""
    heard = host.hear(*[user(_SEA, max_tokens=host.room, temperature=0)] * 4)
    host.base = heard[0].reading.answer
    differing = sum(reply.text != heard[0].text for reply in heard[1:])
    if "temperature" in host.left_out:
        return "unknown", "takes no temperature", f"{differing} of 3 repeats differ"
    return (
        ("unknown", "repeats differ", f"{differing} of 3")
        if differing
        else ("ok", "equal requests have equal replies", "3 of 3 repeats")
    )


def max_tokens(host: Host) -> Seen:
    """Whether replies end at the limit, and say so."""
    heard = host.hear(*(user(_COUNT, max_tokens=limit, temperature=0) for limit in _LIMITS))
    ends = [(reply.limit, reply.reading.completion_tokens, reply.reading.finish) for reply in heard]
    detail = "; ".join(f"{limit} allowed, {_count_text(used)}, {finish}" for limit, used, finish in ends)
    if any(map(_too_long, heard)):
        return "vice", "ignores max_tokens", detail
    if all(finish == "stop" and used == limit for limit, used, finish in ends):
        if all(reply.by_itself for reply in heard):
            return "vice", "cuts at max_tokens, and says that the reply ended by itself", detail
        return "unknown", "cuts at max_tokens, and does not say why a reply ended", ""
    if any(finish == "length" for *_, finish in ends):
        return "ok", "ends at max_tokens, and says so", detail
    return "unknown", "replies ended before max_tokens", detail


def _count_text(used: int) -> str:
    return "not counted" if used < 0 else f"{used} counted"


def _too_long(heard: Heard) -> bool:
    """Whether a reply is longer than it was allowed to be, whatever its usage says."""
    reading, most = heard.reading, heard.limit + _SLACK
    longer = reading.finish != "length" and reading.completion_tokens > most
    hidden = not reading.reasoning and reading.reasoning_tokens > most
    return longer or hidden or heard.size > _WIDE * heard.limit + _MARGIN


def stop(host: Host) -> Seen:
    """Whether a text ends before a stop."""
    if _STOP not in host.base:
        return "unknown", "no text to stop", ""
    reading = host.hear(user(_SEA, max_tokens=host.room, temperature=0, stop=[_STOP]))[0].reading
    if _STOP in reading.answer.rstrip()[:-1]:
        return "vice", "ignores stop", ""
    if reading.finish == "length":
        return "unknown", "the reply was cut before its answer", ""
    return "ok", "ends before the stop sequence", ""


def seed(host: Host) -> Seen:
    """Whether at temperature 1 equal seeds have equal replies, and others do not."""
    limit, text = host.room if host.thinks else 48, "Write one sentence about any animal."
    asked = (user(text, max_tokens=limit, temperature=1, seed=number) for number in (7, 7, 8))
    first, again, third = (reply.text for reply in host.hear(*asked))
    if first != again:
        return "vice", "ignores seed", "two replies to one seed differ"
    if first == third:
        return "unknown", "one text whatever the seed", ""
    return "ok", "equal seeds have equal replies", ""


def system(host: Host) -> Seen:
    """Whether a system prompt arrives: it is followed, or a longer one has more tokens."""
    # Not with none beside it: some templates have one of their own where none is given.
    texts = (_BANANA, f"{_BANANA} {_BANANA}")
    heard = host.hear(*(user(_SKY, system=text, max_tokens=host.room, temperature=0) for text in texts))
    if any("banana" in reply.text.lower() for reply in heard):
        return "ok", "system prompts are followed", ""
    once, twice = (reply.reading.prompt_tokens for reply in heard)
    if min(once, twice) < 0:
        return "unknown", "system prompts are not followed", ""
    if twice - once < len(_BANANA) // 16:
        return "vice", "drops system prompts", f"{twice - once} tokens more with a longer one"
    return "ok", "system prompts arrive, but are not followed", ""


def effort(host: Host) -> Seen:
    """Whether a higher effort has more tokens."""
    asked = [user(_PUZZLE, max_tokens=max(host.room, 512), effort=level) for level in ("low", "high")]
    heard = host.hear(*asked)
    if not any(reply.reading.reasoning or reply.reading.reasoning_tokens > 0 for reply in heard):
        return "unknown", "no reasoning, with low or high effort", ""
    heard += host.hear(*asked, *asked)
    low, high = ([_spent(reply) for reply in heard[start::2]] for start in (0, 1))
    detail = f"{fmean(low):.0f} tokens with low, {fmean(high):.0f} with high"
    if all(reply.reading.finish == "length" for reply in heard):
        return "unknown", "all replies were cut", detail
    cut = any(reply.reading.finish == "length" for reply in heard[1::2])  # how long it would be is not known
    if not cut and fmean(high) <= 1.1 * fmean(low):
        return "vice", "high effort has no more tokens than low", detail
    if min(high) > max(low):
        return "ok", "high effort has more tokens than low", detail
    finding = "replies with high effort were cut" if cut else "high effort may have more tokens than low"
    return "unknown", finding, detail


def _spent(heard: Heard) -> int:
    counts = (heard.reading.reasoning_tokens, heard.reading.completion_tokens, heard.size)
    return next((number for number in counts if number > 0), 0)


_FIELDS = {"name": {"type": "string"}, "number": {"type": "integer"}}
_OBJECT = {"type": "object", "properties": _FIELDS, "required": [*_FIELDS], "additionalProperties": False}
_NAMED = {"name": "pair", "strict": True, "schema": _OBJECT}
_FORMATS: dict[str, dict[str, Any]] = {
    "chat": {"response_format": {"type": "json_schema", "json_schema": _NAMED}},
    "responses": {"text": {"format": {"type": "json_schema", **_NAMED}}},
    "messages": {"output_config": {"format": {"type": "json_schema", "schema": _OBJECT}}},
}


def schema(host: Host) -> Seen:
    """Whether a reply is held to a JSON schema of which the prompt says nothing."""
    if host.model.api not in _FORMATS:
        return "unknown", f"api: {host.model.api} has none", ""
    form = _FORMATS[host.model.api]
    reading = host.hear(user(_SEA, max_tokens=max(host.room, 512), temperature=0, **form))[0].reading
    document = parse_body(reading.answer.strip().encode("utf-8", "replace"))
    if isinstance(document, dict) and document.keys() == _FIELDS.keys():
        return "ok", "holds to a JSON schema", ""
    if reading.finish != "stop":
        return "unknown", "the reply was cut" if reading.finish == "length" else "refuses to answer so", ""
    return "vice", "takes a JSON schema, and does not hold to it", ""


_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOL = {"name": "weather", "description": "The weather in a city.", "parameters": _CITY}


def tools(host: Host) -> Seen:
    """Whether a tool is called."""
    text, offered = "What is the weather in Paris now? Use the tool.", {"type": "function", "function": _TOOL}
    heard = host.hear(user(text, max_tokens=host.room, temperature=0, tools=[offered]))
    for name, arguments in heard[0].reading.tool_calls[:1]:
        values = parse_body(arguments.encode("utf-8", "replace"))
        good = name == "weather" and isinstance(values, dict) and isinstance(values.get("city"), str)
        return ("ok", "calls tools", "") if good else ("unknown", "calls a tool otherwise than offered", "")
    return "unknown", "a tool was offered, but not called", ""


def context(host: Host) -> Seen:
    """Whether a longer prompt is read whole, or refused, by codes in it and by its tokens."""
    asked = [user(_ledger(size), max_tokens=host.room, temperature=0) for size in (_SHORT, _LONG)]
    short, long = host.hear(*asked)
    if long.reading.finish == "context":
        return "ok", "says that a longer prompt does not fit", f"{_LONG:,} bytes"
    few, many = short.reading.prompt_tokens, long.reading.prompt_tokens
    # The shortest prompt of all has hardly more than what the host puts before each, which does not grow.
    before = min(
        (reply.reading.prompt_tokens for reply in host.heard if reply.reading.prompt_tokens > 0), default=0
    )
    expected = before + (few - before) * _LONG / _SHORT
    counted = min(few, many) > 0
    detail = f"{many:,} tokens for {_LONG:,} bytes, about {expected:,.0f} expected" if counted else ""
    if _codes_in(long) == set(_CODES):
        return "ok", "reads a longer prompt whole", detail
    if counted and many < _WHOLE * expected:
        return "vice", "cuts longer prompts, and does not say so", detail
    able = not counted and _codes_in(short) == set(_CODES) and _CODES[-1] in _codes_in(long)
    if able and _codes_in(host.hear(asked[1])[0]) == {_CODES[-1]}:  # once more: a single slip is the model's
        return "vice", "does not know the beginning of a longer prompt", ""
    return "unknown", "counts a long prompt in full" if counted else "does not say what it read", detail


_CODES = ("HERON-71", "MAPLE-84", "CINDER-97")


def _codes_in(heard: Heard) -> set[str]:
    return {code for code in _CODES if code in heard.text}


def _ledger(size: int) -> str:
    """A text of about `size` bytes with a code at its beginning, in its middle and at its end."""
    lines: list[str] = []
    for number in count(1):
        lines.append(f"Entry {number}: ship {number * 37 % 101} brought {number * 53 % 97} crates.")
        if sum(map(len, lines)) + len(lines) > size:
            break
    middle = len(lines) // 2
    codes = [f"A code is {code}." for code in _CODES]
    question = "Which three codes does the text above name? Write the three codes and nothing else."
    return "\n".join([codes[0], *lines[:middle], codes[1], *lines[middle:], codes[2], "", question])


def speed(host: Host) -> Seen:
    """How soon a streamed reply begins, and how fast it goes on."""
    asked = user(_COUNT, stream=True, max_tokens=64, temperature=0)
    # One after the other, so that neither waits.
    best = min((host.hear(asked)[0].reading for _ in range(2)), key=lambda one: one.latency)
    if math.isnan(best.first_token):
        return "unknown", "does not stream", f"{best.latency:.2f} s to the end"
    seconds, more = best.latency - best.first_token, best.completion_tokens - 1
    pace = f", {more / seconds:.0f} tokens/s" if seconds > 0 and more > 0 else ""
    return "ok", "streams", f"{best.first_token:.2f} s to the first token{pace}"


def usage(host: Host) -> Seen:
    """Whether tokens are counted, and as many as the texts allow."""
    replies = [reply for reply in host.heard if reply.reading.finish in ("stop", "length")]
    counts = [reply.reading for reply in replies]
    lacking = sum(min(reply.completion_tokens, reply.prompt_tokens) < 0 for reply in counts)
    odd = [problem for reply in replies if (problem := _odd(reply))]
    if len(odd) > 1:
        detail = f"{len(odd)} of {len(replies)} replies: {odd[0]}"
        return "vice", "counts tokens that the texts do not have", detail
    if lacking:
        return "unknown", "does not count all tokens", f"{lacking} of {len(replies)} replies"
    more = {"reasoning": "reasoning_tokens", "cached": "cached_tokens"}
    kinds = [name for name, field in more.items() if any(getattr(reply, field) >= 0 for reply in counts)]
    return "ok", f"counts tokens: {', '.join(['prompt', 'completion', *kinds])}", ""


def _odd(heard: Heard) -> str:
    """In what a reply's count of tokens cannot be; empty where it can."""
    used, hidden = heard.reading.completion_tokens, max(heard.reading.reasoning_tokens, 0)
    cut = heard.reading.finish == "length" and not _too_long(heard)
    if used >= 0 and cut and min(abs(used - heard.limit), abs(used + hidden - heard.limit)) > _SLACK:
        return f"{used} of a reply that was cut at {heard.limit}"
    # A token is a byte at least, but for what is not shown; and it is no long text.
    if used >= 0 and not (heard.size - 2 * _MARGIN) / (2 * _WIDE) <= used <= heard.size + hidden + _MARGIN:
        return f"{used} for {heard.size} bytes"
    return ""


def reasoning(host: Host) -> Seen:
    """Where its reasoning is."""
    counted = max((reply.reading.reasoning_tokens for reply in host.heard), default=-1)
    shown = {reply.in_text for reply in host.heard if reply.reading.reasoning}
    detail = f"up to {counted:,} tokens counted" if counted >= 0 else ""
    if shown:
        return "ok", "within the text" if shown == {True} else "in a field of its own", detail
    if counted > 0:
        return "ok", "counted, not shown", detail
    if host.thinks:
        return "unknown", "neither shown nor counted apart, and more tokens than text", ""
    return "ok", "none", ""


_MOST_NAMED = 4


def upstream(host: Host) -> Seen:
    """Who answers, and whether it is always the same."""
    systems = sorted({reply.reading.fingerprint for reply in host.heard} - {""})
    names = sorted({reply.served for reply in host.heard} - {""})
    several, engines = max((systems, names), key=len), host.engines
    if len(several) > 1:
        return "vice", f"answers as {len(several)}", ", ".join(several[:_MOST_NAMED])
    unnamed = [name for name in systems if not any(name in engine for engine in engines)]
    alias = [f"as {name}" for name in names if not host.model.request_model.startswith(name)]
    names_said = [*engines, *unnamed, *alias]
    return ("ok", ", ".join(names_said), "") if names_said else ("unknown", "does not say", "")


CHECKS: tuple[Callable[[Host], Seen], ...] = (
    *(parameters, repeats, max_tokens, stop, seed, system, effort, schema, tools, context, speed),
    *(usage, reasoning, upstream),
)
"""In the order in which they are made: later ones use what earlier ones heard."""


def findings(host: Host) -> tuple[ProbeFinding, ...]:
    """What all checks show of an endpoint."""
    results = []
    for check in CHECKS:
        before = host.sent
        try:
            verdict, seen, detail = check(host)
        except UnheardError as error:
            heard: Heard = error.args[0]
            refused = heard.refused[0] or "it" * heard.cause.startswith(("http 400", "http 422"))
            verdict, seen, detail = "unknown", f"refuses {refused}" if refused else "no reply", heard.cause
        results.append(ProbeFinding(check.__name__, verdict, seen, detail, host.sent - before))
    return tuple(results)
