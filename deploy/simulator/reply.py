"""What a simulated model can do and answers: right or wrong, after filler reasoning, as the body of a chat completion.

Everything is pure. Chance comes from the SHA-256 of the request, so a request always has the same reply,
on every machine and in every process, and two different requests have independent ones.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import struct
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

from evalcube.deploy.simulator.profile import Profile
from evalcube.deploy.simulator.truth import Truth

CONTEXT = 131_072
"""Most tokens of one completion, whatever the request allows."""

_inverse_normal = NormalDist().inv_cdf
_four_words = struct.Struct(">4Q").unpack


class Draws(NamedTuple):
    """Independent uniform draws of one request, each inside (0, 1)."""

    correct: float
    """Decides whether the answer is right."""
    length: float
    """Decides on the number of tokens."""
    refusal: float
    """Decides whether the request is refused."""
    choice: float
    """Chooses the wrong answer, and where the filler text begins."""


def request_digest(body: bytes, repeat: int = 0) -> bytes:
    """Identity of a request, 32 bytes: SHA-256 of its body, a zero byte and the repeat index in decimal."""
    return hashlib.sha256(b"%b\0%d" % (body, repeat)).digest()


def draws(digest: bytes) -> Draws:
    """The draws that a request's 32-byte digest decides on.

    Examples
    --------
    >>> draws(bytes(32)).correct < 1e-15 and draws(bytes(32)).correct > 0
    True
    """
    a, b, c, d = _four_words(digest)
    return Draws(_unit(a), _unit(b), _unit(c), _unit(d))


def probability(profile: Profile, difficulty: float = 1.0, guess: float = 0.0) -> float:
    """Probability of a right answer: guess + (1 - guess) · sigmoid(slope · (ability - log2 difficulty)).

    The three-parameter logistic curve of item response theory [1]_, on the logarithm of the difficulty.

    Examples
    --------
    >>> probability(Profile(ability=5), difficulty=32)
    0.5
    >>> probability(Profile(ability=5), difficulty=32, guess=0.5)
    0.75
    """
    lead = profile.slope * (profile.ability - math.log2(difficulty))
    return guess + (1.0 - guess) * 0.5 * (1.0 + math.tanh(0.5 * lead))


def completion_tokens(profile: Profile, difficulty: float, draw: float) -> int:
    """Tokens that the model would write, 1 to `CONTEXT`: tokens · difficulty^growth · exp(spread · z).

    Examples
    --------
    >>> completion_tokens(Profile(tokens=60, growth=0.5), 4.0, 0.5)
    120
    """
    factor = math.exp(profile.spread * _inverse_normal(draw))
    return round(min(max(profile.tokens * math.pow(difficulty, profile.growth) * factor, 1.0), CONTEXT))


def delay(profile: Profile, tokens: int) -> float:
    """Seconds from request to reply: latency + tokens / speed, or the latency alone at speed 0."""
    return profile.latency + (tokens / profile.speed if profile.speed > 0.0 else 0.0)


def _unit(word: int) -> float:
    return ((word >> 12) + 0.5) * 2.0**-52


CHARS_PER_TOKEN = 4
REFUSAL = "I am sorry, but I cannot help with this request."
IGNORANCE = "I do not know the answer to this."
CREATED = 1_700_000_000
"""The `created` of every reply: a clock would make equal requests have different replies."""

_WORDS = (
    "so now then first next we see that this part holds because the rule applies to each step and let us "
    "check it again carefully wait maybe not exactly since another case remains open here which means going "
    "back over what was given before moving on with a smaller piece of it until nothing is unclear about "
    "order count value inside outside total both still only"
).split()


def _filler_text(length: int) -> str:
    """Sentences without digits, at least `length` characters, the same in every process."""
    bits = random.Random(20).getrandbits
    sentences: list[str] = []
    size = 0
    while size < length:
        words = [_WORDS[(bits(32) * len(_WORDS)) >> 32] for _ in range(5 + (bits(32) * 11 >> 32))]
        sentence = " ".join(words).capitalize() + (".\n" if bits(2) == 0 else ". ")
        sentences.append(sentence)
        size += len(sentence)
    return "".join(sentences)


_FILLER_LENGTH = 65_536
_FILLER = _filler_text(_FILLER_LENGTH)


class Text(NamedTuple):
    """What the model answers."""

    content: str
    reasoning: str | None
    """None where the reasoning has no field of its own."""
    tokens: int
    """Tokens of the completion, the reasoning included."""
    reasoning_tokens: int
    finish_reason: str
    """As OpenAI's API has it: ``stop``, ``length`` or ``content_filter``."""


def speak(
    profile: Profile, truth: Truth | None, draw: Draws, limit: int | None, stop: Sequence[str] = ()
) -> Text:
    """The answer that a model's ability and a request's draws decide on, after filler reasoning.

    A right answer is the truth's, a wrong one is `wrong_answer`; without truth the answer is `IGNORANCE`. A truth with
    a quality makes the model a judge, which answers with `judgement`. The text has about `CHARS_PER_TOKEN` characters
    a token.
    """
    if draw.refusal < profile.refusal:
        return Text(REFUSAL, None, len(REFUSAL) // CHARS_PER_TOKEN, 0, "content_filter")
    conclusion = _conclusion(profile, truth, draw)
    difficulty = 1.0 if truth is None else truth.difficulty
    least = -(-(len(conclusion) + _OVERHEAD[profile.reasoning]) // CHARS_PER_TOKEN)
    tokens = max(completion_tokens(profile, difficulty, draw.length), least)
    spoken = tokens if limit is None else min(tokens, limit)
    room = tokens * CHARS_PER_TOKEN - len(conclusion) - _OVERHEAD[profile.reasoning]
    filler = filler_slice(draw.choice, room)
    finish = "length" if spoken < tokens else "stop"
    return _cut_at_stop(_compose(profile.reasoning, filler, conclusion, spoken, finish), stop)


def _cut_at_stop(text: Text, stop: Sequence[str]) -> Text:
    """A text as far as the first of its stops."""
    ends = [at for at in map(text.content.find, filter(None, stop)) if at >= 0]
    if not ends:
        return text
    tokens = text.tokens - (len(text.content) - min(ends)) // CHARS_PER_TOKEN
    content, thought = text.content[: min(ends)], min(text.reasoning_tokens, tokens)
    return text._replace(content=content, tokens=tokens, reasoning_tokens=thought, finish_reason="stop")


_OPEN, _CLOSE = "<think>\n", "\n</think>\n\n"
_OVERHEAD = {"none": 1, "think": len(_OPEN + _CLOSE), "field": 0}


def _compose(style: str, filler: str, conclusion: str, tokens: int, finish: str) -> Text:
    size = tokens * CHARS_PER_TOKEN
    if style == "none":
        return Text(f"{filler}\n{conclusion}"[:size], None, tokens, 0, finish)
    thought = min(tokens, len(filler) // CHARS_PER_TOKEN)
    if style == "think":
        return Text(f"{_OPEN}{filler}{_CLOSE}{conclusion}"[:size], None, tokens, thought, finish)
    return Text(conclusion[: max(0, size - len(filler))], filler[:size], tokens, thought, finish)


def _conclusion(profile: Profile, truth: Truth | None, draw: Draws) -> str:
    if truth is None:
        return IGNORANCE
    right = draw.correct < probability(profile, truth.difficulty, truth.guess)
    if truth.quality is not None:
        return judgement(truth.quality, right, draw.choice)
    return f"Answer: {truth.answer if right else wrong_answer(truth.answer, truth.options, draw.choice)}"


def judgement(quality: float, right: bool, draw: float) -> str:
    """A judge's reply, JSON with a score from 1 to 5.

    Examples
    --------
    >>> judgement(0.8, True, 0.5)
    '{"reasoning": "It was compared with the rubric.", "score": 4, "reason": "It meets most of it."}'
    """
    score = 1 + int(4 * quality + 0.5)
    if not right:
        score = [wrong for wrong in range(1, 6) if wrong != score][int(draw * 4)]
    reason = f"It {_MEETS[score - 1]} of it."
    return json.dumps({"reasoning": "It was compared with the rubric.", "score": score, "reason": reason})


_MEETS = ("meets nothing", "meets little", "meets part", "meets most", "meets all")


def filler_slice(draw: float, length: int) -> str:
    """Reasoning text of `length` characters, which begins at a place chosen by `draw` in [0, 1)."""
    if length <= 0:
        return ""
    start = int(draw * _FILLER_LENGTH)
    text = _FILLER[start : start + length]
    if len(text) == length:
        return text
    return (text + _FILLER * (length // _FILLER_LENGTH + 1))[:length]


def wrong_answer(answer: str, options: Sequence[str], draw: float) -> str:
    """A plausible answer that is not `answer`.

    Another one of the options; for a whole number a close one; for calls of tools others, or none; else the same text
    with its letters and digits shifted, so that lists and decimals keep their form.

    Examples
    --------
    >>> wrong_answer("yes", ["yes", "no"], 0.3)
    'no'
    >>> wrong_answer("41", [], 0.9), wrong_answer("[1, 2]", [], 0.0)
    ('43', '[2, 3]')
    """
    alternatives = [option for option in options if option.strip().casefold() != answer.strip().casefold()]
    if alternatives:
        return alternatives[int(draw * len(alternatives))]
    digits = answer.strip().removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= 1000:
        return str(int(answer) + (-3, -2, -1, 1, 2)[int(draw * 5)])
    if calls := calls_in(answer):
        return _wrong_calls(calls, draw)
    shifted = answer.translate(_SHIFTS[int(draw * len(_SHIFTS))])
    if shifted != answer:
        return shifted
    # Nothing to shift, such as in brackets: one character less still looks like an answer.
    return answer.strip()[1:] or "none of these"


def calls_in(answer: str) -> list[dict[str, Any]]:
    """The calls of tools that an answer is, in JSON; none if it is anything else."""
    if not answer.startswith("[{"):
        return []
    try:
        calls = json.loads(answer)
    except (ValueError, RecursionError):
        return []
    good = all(
        isinstance(call.get("name"), str) and isinstance(call.get("arguments"), dict) for call in calls
    )
    return calls if good else []


def _wrong_calls(calls: list[dict[str, Any]], draw: float) -> str:
    """No calls, or such that the first has another tool, an argument too many, or a wrong one."""
    kind = int(draw * 4)
    if kind == 0:
        return "none"
    name, arguments = calls[0]["name"], dict(calls[0]["arguments"])
    if kind == 1:
        name = f"{name}s"
    plain = [key for key, value in arguments.items() if isinstance(value, (int, float))]
    if kind == 2 or not plain:
        arguments["more"] = 1
    elif kind == 3:
        value = arguments[plain[0]]
        arguments[plain[0]] = not value if isinstance(value, bool) else value + 1
    return json.dumps([{"arguments": arguments, "name": name}, *calls[1:]])


def _shift(by: int) -> dict[int, int]:
    table = {}
    for first, size in ((ord("0"), 10), (ord("a"), 26), (ord("A"), 26)):
        table.update({first + i: first + (i + by) % size for i in range(size)})
    return table


_SHIFTS = tuple(_shift(by) for by in range(1, 10))


def completion(
    model: str, digest: bytes, text: Text, prompt_tokens: int, *, tools: bool = False
) -> dict[str, object]:
    """The body of a chat completion, as OpenAI's API has it."""
    preface, _, answer = text.content.rpartition("Answer: ")
    calls = calls_in(answer) if tools else []
    message: dict[str, object] = {"role": "assistant", "content": text.content}
    usage: dict[str, object] = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": text.tokens,
        "total_tokens": prompt_tokens + text.tokens,
    }
    if calls:
        message |= {"content": preface, "tool_calls": list(map(_tool_call, range(len(calls)), calls))}
    if text.reasoning is not None:
        message["reasoning_content"] = text.reasoning
    if text.reasoning_tokens:
        usage["completion_tokens_details"] = {"reasoning_tokens": text.reasoning_tokens}
    reason = "tool_calls" if calls else text.finish_reason
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    head = {"id": f"chatcmpl-{digest[:12].hex()}", "object": "chat.completion", "created": CREATED}
    return {**head, "model": model, "choices": [choice], "usage": usage}


def _tool_call(index: int, call: dict[str, Any]) -> dict[str, object]:
    function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
    return {"index": index, "id": f"call_{index}", "type": "function", "function": function}


def prompt_tokens(messages: Sequence[Mapping[str, object]]) -> int:
    """Tokens of a prompt: four for each message, and one for each `CHARS_PER_TOKEN` characters of text."""
    size = 0
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            size += len(content)
        elif isinstance(content, list):
            size += sum(len(str(part.get("text", ""))) for part in content if isinstance(part, dict))
    return 4 * len(messages) + -(-size // CHARS_PER_TOKEN)
