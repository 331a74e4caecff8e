"""Finds where in a reply the answer stands that was read from it, for a page to mark it."""

from __future__ import annotations

import re

from evalcube.stages.generate.answers.passages import passages

_LONGEST = 1000
"""Characters of an answer that is looked for."""
_TAIL = 20_000
"""Characters at the end of a reply in which it is looked for where no place is marked as the answer's."""
_GAP = r"(?>\s+)"
_WHOLE = re.compile(r"[-+]?\d+")


def answer_place(reply: str, parsed: str | None) -> tuple[int, int] | None:
    """Where an answer stands in its reply, in whole words, whatever their case.

    It is looked for in the places where readers look for answers, in their order, and at last at the end of the
    reply, of which the last place counts.

    Parameters
    ----------
    reply
        The text that the answer was read from.
    parsed
        The answer as it was read, which may be written otherwise than in the reply.

    Returns
    -------
    tuple of int or None
        Start and end in UTF-16 units, which are what JavaScript counts; None if it does not stand there as it was read.

    Examples
    --------
    >>> answer_place("A guess. Answer: a", "A")
    (17, 18)
    >>> answer_place("Answer: The  Hague", "the hague")
    (8, 18)
    """
    words = (parsed or "")[: _LONGEST + 1].split()
    if not words or len(parsed or "") > _LONGEST:
        return None
    written = _GAP.join(map(_written, words))
    pattern = re.compile(rf"(?<!\w)(?<!\d[.,]){written}(?!\w|[.,]\d)", re.IGNORECASE)
    found = None
    for passage in passages(reply):
        start = reply.rfind(passage.text) if passage.text else -1
        if start >= 0 and (found := pattern.search(reply, start, start + len(passage.text))):
            break
    if found is None:
        for one in pattern.finditer(reply, max(0, len(reply) - _TAIL)):
            found = one
    return None if found is None else (_units(reply[: found.start()]), _units(reply[: found.end()]))


def _written(word: str) -> str:
    """How a word may be written; a whole number may have commas and another minus sign."""
    if not _WHOLE.fullmatch(word):
        return re.escape(word)
    return ",?".join("[-−]" if one == "-" else re.escape(one) for one in word)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
