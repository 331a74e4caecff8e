"""What a run did, in lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalcube.flows.run.summary import ModelSummary, RunSummary
    from evalcube.stages.analyze.render.table import TableSpec

_RECKONED = " (reckoned from max_tokens and the prompts' lengths, as no usage was reported)"
_SHOWN_LIMITS, _SHOWN_MODELS = 8, 4
_MOST = 0.9
"""Share of a run's seconds that counts as all of them."""


def lines_of(summary: RunSummary) -> list[str]:
    """What a run did, a sentence or two on each line; texts of endpoints in them are as they came.

    Parameters
    ----------
    summary
        Of the run.
    """
    seconds, rate = summary.seconds, summary.trials_per_second
    again = f", {summary.found_again} found again after workers ended" if summary.found_again else ""
    lines = [
        f"{summary.done} of {summary.trials} trials done; this run: {summary.graded} in {seconds:.1f} s, {rate:.1f}/s",
        f"{summary.sent} requests sent, {summary.cached} trials answered by the cache{again}",
        f"{summary.prompt_tokens} prompt tokens, {summary.completion_tokens} completion tokens, {usd(summary.usd)}"
        + (_RECKONED if summary.usd and not summary.prompt_tokens + summary.completion_tokens else ""),
    ]
    if (saved := summary.saved) is not None:
        lines.append(
            f"saved by the cache: {saved.prompt_tokens} prompt tokens, {saved.completion_tokens} completion tokens"
            + ("" if saved.usd is None else f", {usd(saved.usd)}")
        )
    for what, causes in (("retried", summary.retries), ("failed", summary.causes)):
        if causes:
            named = ", ".join(f"{cause} ×{count}" for cause, count in sorted(causes.items()))
            lines.append(f"{what}: {named}")
    for use in summary.limits[:_SHOWN_LIMITS]:
        limit = f"{use.value:g} {use.limit.replace('_', ' ')}"
        # One that was asked all the time needs no word about it.
        part = (
            ""
            if use.seconds > _MOST * summary.asking_seconds
            else f", in the {use.seconds:.1f} s it was asked"
        )
        lines.append(f"efficiency: {use.used:.0%} of {limit} ({_listed(use.models)}{part})")
    lines += [
        f"{_listed(found.models)}: a limit was found by being refused. "
        f"Set `limits: {{{found.limit}: {found.value}}}` in the config"
        for found in summary.found_limits[:_SHOWN_LIMITS]
    ]
    lines += summary.refused
    if summary.pending:
        asked_for = "done with the part that was asked for; " if summary.reason == "complete" else ""
        lines.append(f"{asked_for}{summary.pending:,} of the plan are pending")
    if summary.unnamed is not None:
        lines.append(f"{summary.unnamed}: kept{', and not asked' if summary.unnamed.unasked else ''}")
    return [*lines, f"cube: {summary.cube}"]


def table_of(summary: RunSummary) -> TableSpec:
    """The evaluations of a run, with its `lines_of` below.

    Parameters
    ----------
    summary
        Of the run.
    """
    from evalcube.stages.analyze.render.table import Column, TableSpec

    def share(row: ModelSummary) -> str:
        return f"{100 * row.done // row.trials} %" if row.trials else "–"

    columns = (
        Column("model", lambda row: row.model, right=False, name=True),
        Column("done", lambda row: f"{row.done:,}"),
        Column("trials", lambda row: f"{row.trials:,}"),
        Column("%", share),
        Column("without a reply", lambda row: f"{row.transport:,}", 1),
    )
    return TableSpec(columns, summary.models, tuple(lines_of(summary)), lambda row: row.done < row.trials)


def usd(amount: float | None) -> str:
    """An amount of money, with as many digits as it needs; None is one that nobody knows.

    Parameters
    ----------
    amount
        In US dollars.

    Examples
    --------
    >>> usd(12.3), usd(0.0021), usd(None)
    ('12.30 USD', '0.0021 USD', 'at no declared price')
    """
    if amount is None:
        return "at no declared price"
    return f"{amount:.2f} USD" if amount >= 1 or not amount else f"{amount:.2g} USD"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_MODELS])
    return shown if len(names) <= _SHOWN_MODELS else f"{shown} and {len(names) - _SHOWN_MODELS} more"
