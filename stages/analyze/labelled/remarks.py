"""Warnings and explanations that stand below a leaderboard, as sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalcube.stages.analyze.labelled.axes import distinguishing, plain

if TYPE_CHECKING:
    from evalcube.stages.analyze.labelled.pairing import PairedDifference
    from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard, Row

CUT = 0.01
"""Share of truncated trials above which no table leaves them out, and a warning names them."""
CLIPPED = "as if the limit were"
"""In the words of a selection: tokens are counted under another limit than evaluations had, which nobody can raise."""
NO_READER = "Give one `reader:` in the config; a run into a new cube reads the cached replies by it"
_NAMED = 3
"""Evaluations, or tasks, that a sentence names."""


@dataclass(frozen=True)
class ReaderGap:
    """Two readers of the same replies, of the tasks that have a second one."""

    ours: float
    """Share that is right as evalcube reads the replies, truncated ones wrong; mean over these tasks."""
    theirs: float
    """Share that is right as the second reader reads them."""
    difference: Estimate
    """Ours − theirs, the paired comparison of the two."""
    trials: int
    """Replies that both have read."""
    ours_only: int
    """Replies that are right by ours alone."""
    theirs_only: int

    @classmethod
    def of(cls, pair: PairedDifference) -> ReaderGap:
        """Of a comparison whose first side is ours."""
        return cls(
            pair.first_rate, pair.second_rate, pair.difference, pair.trials, pair.first_only, pair.second_only
        )


def named_readers(readers: Mapping[str, str], tasks: Collection[str]) -> str:
    """Second readers in words, with their tasks where these are not all.

    Examples
    --------
    >>> named_readers({"sums": "strict"}, ["sums"]), named_readers({"sums": "strict"}, ["sums", "sort"])
    ('strict', 'strict (sums)')
    """
    by_name: dict[str, list[str]] = {}
    for task, name in readers.items():
        by_name.setdefault(plain(name), []).append(plain(task))
    if len(by_name) == 1 and set(tasks) <= set(readers):
        return next(iter(by_name))
    return ", ".join(f"{name} ({first_few(own, ', ', ' ')})" for name, own in by_name.items())


def reader_sentence(readers: Mapping[str, str], tasks: Collection[str]) -> str:
    """Explain the columns of a second reader; parameters as of `named_readers`."""
    return (
        f"theirs: accuracy if the second reader extracts the answers ({named_readers(readers, tasks)}); gap: accuracy "
        "by evalcube's reader minus theirs, in percentage points. See `evalcube trials CUBE --where disagree`."
    )


def label_rows(rows: Sequence[Row]) -> list[str]:
    """A label per row: the model's name, with template, sampler and revision where there are several of them."""
    return distinguishing([(row.model_name, row.template, row.sampler, row.revision) for row in rows])


def _rows_with_labels(board: Leaderboard) -> list[tuple[Row, str]]:
    return list(zip(board.rows, label_rows(board.rows), strict=True))


def remarks_of(board: Leaderboard) -> list[str]:
    """Return the sentences that explain the rows without casting doubt on them."""
    remarks: list[str] = []
    lead, by_token = board.heads
    remarks += board.places_text
    if board.sort and board.sort != lead:
        remarks.append(f"Sorted by {board.sort}; # is the rank by {lead}.")
    if board.sort != by_token:
        measure = "score per token" if board.lead == "score" else "correct answers per 1000 tokens"
        remarks += _other_order(board, measure, lambda row: board.by_token(row).value)
    remarks += _other_order(board, "accuracy, which counts lucky guesses,", lambda row: row.accuracy.value)
    if any(row.composite is not None for row in board.rows):
        shares = ", ".join(f"{name} {weight:g}" for name, weight in board.layer_weights.items() if weight)
        how = f"weights {shares}" if shares else "equal weights"
        remarks.append(
            f"composite: mean of the layers ({how}), from 1 to 5; in brackets, how many layers there are. Use it to "
            "compare answers to the same questions, not as an absolute level."
        )
    if board.readers:
        remarks.append(reader_sentence(board.readers, board.tasks))
    if board.lead == "score" and board.ceiling_text and any(row.accuracy.value == 1 for row in board.rows):
        remarks.append(board.ceiling_text)
    return remarks


def _other_order(board: Leaderboard, measure: str, value: Callable[[Row], float]) -> list[str]:
    """In which order a value puts the ranked rows, if that is another one."""
    ranked = sorted(
        ((row, label) for row, label in _rows_with_labels(board) if row.rank is not None),
        key=lambda named: named[0].rank or 0,
    )
    there = [named for named in ranked if not math.isnan(value(named[0]))]
    order = sorted(there, key=lambda named: -value(named[0]))
    if order == there:
        return []
    return [f"The order by {measure} differs: {first_few([label for _, label in order], ', ')}."]


def notes_of(board: Leaderboard) -> list[str]:
    """Return the warnings to read before comparing rows, a sentence each."""
    notes = [f"Part of the cube ({board.selection})."] if board.selection else []
    if board.lead == "rate" and not board.data_sets and not math.isnan(board.size):
        have = "these count as" if board.worth else "there are"
        notes.append(
            f"ReasonScore needs about {board.enough} trials per task and tier; {have} {board.size:.0f}"
            f"{' independent ones' if board.worth else ''}, so models are ranked by {board.rate_name}."
        )
    notes += _truncation(board)
    short = len(board.incomplete)
    if short:
        notes.append(
            f"Incomplete evaluations (*): {short} of {len(board.rows)}. Some tasks or points have no trial yet, so "
            "they are not comparable with complete rows and not ranked."
        )
    notes += _apart(board)
    missing = sum(row.missing for row in board.rows)
    if missing:
        notes.append(
            f"Planned trials that are not counted: {missing:,}. They have not run, or a run will count them later; "
            "scores rest on the others."
        )
    transport = sum(row.transport for row in board.rows)
    if transport:
        notes.append(
            f"Trials without a reply after the last retry: {transport:,}. They count neither as right nor as "
            "wrong; the next run tries them again (imported ones: the tool that they come from)."
        )
    if board.mode.endswith("_I") and any(row.truncated > 0 for row in board.rows):
        notes.append(
            f"{board.mode} leaves truncated trials out; accuracy and `evalcube compare` count them as wrong."
        )
    return [*notes, *board.cautions]


def first_few(texts: Sequence[str], between: str = "; ", last: str = "") -> str:
    """Join the first few texts, and say how many more there are, behind `last` if it is not as `between`."""
    more = f"{last or between}and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return between.join(texts[:_NAMED]) + more


def _apart(board: Leaderboard) -> list[str]:
    """Which evaluations were asked other points than most, are far behind, or have some trials of every point only."""
    notes = []
    rows = _rows_with_labels(board)
    if unlike := [f"{label} {row.others}" for row, label in rows if row.others]:
        notes.append(
            f"Not ranked (*), as asked other questions than most: {first_few(unlike)}. To rank them, select what all "
            "were asked, such as one task, with `where`."
        )
    rows = [(row, label) for row, label in rows if not row.incomplete]
    if begun := [_has(row, label) for row, label in rows if row.behind]:
        notes.append(f"Not ranked (*), as far behind the others with the planned trials: {first_few(begun)}.")
    partial = [(row, label) for row, label in rows if row.partial and not row.behind]
    partial.sort(key=lambda named: named[0].trials / named[0].planned)
    if parts := [_has(row, label) for row, label in partial]:
        notes.append(f"Partly measured (*), by planned trials: {first_few(parts)}. Their ranks may change.")
    return notes


def _has(row: Row, label: str) -> str:
    return f"{label} has {row.trials:,} of {row.planned:,}"


def _truncation(board: Leaderboard) -> list[str]:
    """A warning if models were cut off."""
    cut = [(row, label) for row, label in _rows_with_labels(board) if row.truncated > CUT]
    if not cut:
        return []
    worst, name = max(cut, key=lambda named: named[0].truncated)
    limit = f" at max_tokens {worst.max_tokens}: raise it" if worst.max_tokens else ": raise max_tokens"
    if CLIPPED in board.selection:
        limit = f" at the limit of {worst.max_tokens} tokens" if worst.max_tokens else ""
    if worst.truncated == 1 and not worst.tokens_per_trial > 0:
        # Nothing was said that could have been cut, and more max_tokens leave even less room for the prompt.
        limit = ", without a token of an answer: the prompts do not fit the context that the server has"
    shares = [f"{label} {100 * row.truncated:.0f}%" for row, label in cut if row is not worst]
    more = f" (also truncated: {first_few(shares, ', ')})" if shares else ""
    share = max(round(100 * worst.truncated), 1)
    right = "accuracy counts them as wrong" + (", v1 subtracts their share" if board.version == "v1" else "")
    return [f"{name}: {share}% truncated{limit}{more}; {right}."]
