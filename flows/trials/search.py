"""Searches the texts of trials for a text or a regular expression, within a bounded time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evalcube.flows.config.near_names import checked_option
from evalcube.flows.errors import SweepError, need_text
from evalcube.flows.trials.columns import TEXTS
from evalcube.stages.process.assertions.model import UnmeasuredError
from evalcube.stages.process.assertions.patterns import SECONDS, compile_pattern, search

_MOST_SLOW = 5
"""Texts that a regular expression may run out of time on before it is given up."""


@dataclass
class Search:
    """What is searched for, and in which columns."""

    grep: str | None
    regex: str | None
    within: Sequence[str]
    slow: int = field(default=0, init=False)
    """Texts that the regular expression ran out of time on."""

    @classmethod
    def of(cls, grep: str | None, regex: str | None, within: Sequence[str]) -> Search | None:
        """The search; None if nothing is searched for.

        Raises
        ------
        SweepError
            If the regular expression is none, or a column is unknown or has no text.
        """
        if grep is None and regex is None:
            return None
        for parameter, text in (("grep", grep), ("regex", regex)):
            if text is not None:
                need_text(parameter, text)
        for name in within:
            checked_option("within", name, TEXTS)
        if not within:
            raise SweepError("`within`: nothing is named", f"Give some of: {', '.join(TEXTS)}")
        if regex is not None:
            import regex as library

            try:
                compile_pattern(regex)
            except (library.error, RecursionError, OverflowError) as error:
                raise SweepError(
                    f"`regex`: '{regex}' is no regular expression: {error}",
                    "Correct it, or search for a plain text with `grep`",
                ) from None
        return cls(grep, regex, tuple(dict.fromkeys(within)))

    def finds(self, texts: Sequence[Sequence[str | None]]) -> list[bool]:
        """For each row whether something is found in it.

        Parameters
        ----------
        texts
            The columns of `within`, in their order.

        Raises
        ------
        SweepError
            If the regular expression runs out of time again and again.
        """
        return [self._in_row([text for text in row if text]) for row in zip(*texts, strict=True)]

    def _in_row(self, texts: Sequence[str]) -> bool:
        if self.grep is not None and not any(self.grep in text for text in texts):
            return False
        return self.regex is None or any(self._matches(self.regex, text) for text in texts)

    def _matches(self, pattern: str, text: str) -> bool:
        try:
            return search(pattern, "", text, seconds=SECONDS)
        except UnmeasuredError as error:
            self.slow += 1
            if self.slow > _MOST_SLOW:
                raise SweepError(
                    f"`regex`: {error}, and on {_MOST_SLOW} others", "Write it without nested repetitions"
                ) from None
            return False

    @property
    def notes(self) -> list[str]:
        """What a reader of the rows that were found should know."""
        if not self.slow:
            return []
        return [
            f"The regular expression ran out of time on {self.slow} texts, which count as ones without it."
        ]
