"""Grade one trial: what the reply says and what is right become a status and sizes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from evalcube.stages.process.reading import Reading
from evalcube.stages.reply.body import ending_code
from evalcube.stages.reply.status import Status

GRADER = "22"
"""Version of how replies are read and graded; raised whenever one may be graded otherwise. Cubes note it by region."""

IMPORTED = "imported"
"""What stands in the place of the version where another tool graded."""

GZIP_LEVEL = 6
"""Fixed, because compressed sizes are compared between models and years."""


class Outcome(NamedTuple):
    """What is stored of one trial; -1 and NaN stand for what the endpoint did not report."""

    status: Status
    tokens: int = -1
    """Completion tokens."""
    prompt_tokens: int = -1
    reasoning_bytes: int = -1
    """Length of the reasoning trace in UTF-8."""
    compressed_bytes: int = -1
    """Its length after gzip."""
    latency: float = float("nan")
    """Seconds."""
    guess_chance: float = float("nan")
    parsed: str | None = None
    """The answer as parsed; not stored in the cube."""
    fact: float = float("nan")
    """Layer scores from 1 to 5; NaN where there is none, and stored only of sweeps that declare them."""
    behavior: float = float("nan")
    judge: float = float("nan")
    judge_readings: tuple[tuple[float, ...], ...] = ()
    """By judge and repeat; NaN where a reply had no score."""
    cluster: int = 0
    """Of the question, see `evalcube.stages.generate.base.Trial.cluster`."""
    status_theirs: Status = Status.MISSING
    """As the task's second reader reads the same reply."""
    reasoning_tokens: int = -1
    cached_tokens: int = -1
    first_token: float = float("nan")
    """Seconds."""
    provider: int = 0
    """See `evalcube.stages.process.reading.Reading.provider`."""
    looping: int = 0
    """1 where the reply's end repeats itself."""
    ending: int = 0
    """See `evalcube.stages.reply.body.ending_code`."""
    read_as: int = 0
    """How the answer was read, a code above 0; 0 where nobody noted it."""


Parse = Callable[[str], str | None]
Grade = Callable[[str], bool]


def grade_trial(
    reading: Reading, guess_chance: float, parse: Parse, grade: Grade, cluster: int = 0
) -> Outcome:
    """Grade one reading."""
    status, parsed = _status(reading, parse, grade)
    return Outcome(status, parsed=parsed, **_sizes(reading), **_beside_answer(reading, guess_chance, cluster))


def _sizes(reading: Reading, *, has_text: bool = True) -> dict[str, Any]:
    """Fields of how long a reply is."""
    # Half a surrogate pair has no UTF-8 of its own, and a model that was cut in the midst of one still has a trace.
    trace = reading.reasoning.encode("utf-8", "surrogatepass")
    return {
        "tokens": reading.completion_tokens,
        "prompt_tokens": reading.prompt_tokens,
        "reasoning_bytes": len(trace) if has_text else -1,
        "compressed_bytes": compressed_size(trace) if has_text else -1,
        "latency": reading.latency,
    }


def _beside_answer(reading: Reading, guess_chance: float, cluster: int) -> dict[str, Any]:
    """Fields of the question, and of what a reply says beside its answer."""
    return {
        "guess_chance": guess_chance,
        "cluster": cluster,
        "reasoning_tokens": reading.reasoning_tokens,
        "cached_tokens": reading.cached_tokens,
        "first_token": reading.first_token,
        "provider": reading.provider,
        "ending": ending_code(reading.ending),
        "looping": int(is_looping(f"{reading.reasoning}\n{reading.answer[-_TAIL:]}")),
    }


def imported_outcome(reading: Reading, guess_chance: float, cluster: int = 0) -> Outcome:
    """The outcome of a reply that another tool graded, as that tool said; its score is the layer of facts."""
    grade, beside = reading.imported, _beside_answer(reading, guess_chance, cluster)
    if grade is None:
        return Outcome(Status.INVALID, **beside)
    # The scale of layers, on which a passed assertion has 5 and a failed one has 1.
    fact = float("nan") if grade.score is None else 1 + 4 * grade.score
    sizes = _sizes(reading, has_text=grade.has_text)
    return Outcome(grade.status, parsed=grade.answer, fact=fact, **sizes, **beside)


def _status(reading: Reading, parse: Parse, grade: Grade) -> tuple[Status, str | None]:
    if reading.finish in {"length", "context"}:
        return Status.TRUNCATED, None
    if reading.finish == "refused":
        return Status.REFUSED, None
    parsed = parse(reading.answer)
    if parsed is None:
        return Status.INVALID, None
    return (Status.CORRECT if grade(parsed) else Status.INCORRECT), parsed


def second_status(reading: Reading, status: Status, read: Callable[[str], float | None]) -> Status:
    """Return the outcome of a reply by a second reader, given our status."""
    if reading.finish == "context":
        return status  # there is no reply
    score = read(reading.answer)
    if score is not None and score >= 1:
        return Status.CORRECT
    if status in (Status.TRUNCATED, Status.REFUSED):
        return status
    return Status.INVALID if score is None else Status.INCORRECT


def is_looping(text: str) -> bool:
    """Whether the end of a text repeats itself: its second half says nothing that its first has not said.

    Examples
    --------
    >>> is_looping("Let me think. " + "Wait, is that right? " * 200), is_looping("No. " * 9)
    (True, False)
    """
    tail = text[-_TAIL:].encode("utf-8", "surrogatepass")
    half = len(tail) // 2
    if half < _LEAST_HALF:
        return False
    most = _LOOP_BYTES + _LOOP_SHARE * half
    # Of most texts, the beginning of the second half alone tells, after the first: that is read much faster.
    began = zlib.compressobj(GZIP_LEVEL, wbits=-zlib.MAX_WBITS, zdict=tail[:half])
    if len(began.compress(tail[half : half + _LEAST_HALF]) + began.flush()) > most + _TABLES:
        return False
    whole, first = (len(zlib.compress(part, GZIP_LEVEL)) for part in (tail, tail[:half]))
    return whole - first <= most


_TAIL, _LEAST_HALF = 16_384, 1_024
"""Characters that are looked at, and bytes that half of them must be."""
_LOOP_BYTES, _LOOP_SHARE = 10, 0.006
"""What a repetition takes after gzip; steps of two kinds in any order, or the moves of Hanoi's tower, take more."""
_TABLES = 128
"""Bytes that code tables of a text's own take, with room to spare."""


def compressed_size(data: bytes) -> int:
    """Bytes of `data` after gzip at the fixed level with no time stamp; 0 for no data.

    Examples
    --------
    >>> compressed_size(b"")
    0
    >>> compressed_size(b"a" * 1000)
    29
    """
    return len(gzip.compress(data, GZIP_LEVEL, mtime=0)) if data else 0
