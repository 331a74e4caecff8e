"""The columns and notes with which tables show the results of analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from evalcube.stages.analyze.formulas.design import WEIGHING
from evalcube.stages.analyze.formulas.outcomes.table import METRICS, metric_parts
from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.labelled.pairing import Pair, PairedDifference
from evalcube.stages.analyze.labelled.remarks import CUT
from evalcube.stages.analyze.labelled.results import LACKING, Estimate
from evalcube.stages.analyze.render.rows import PlainRow
from evalcube.stages.analyze.render.table import Column, TableSpec
from evalcube.stages.analyze.render.text import ABSENT, number, percent, significant

INCOMPLETE = "*"
_LEVEL = 0.05
_FOUND = 2.8 / 1.96
"""Half-widths of a 95% interval that make a difference that is found in four of five cases."""

_WIDE = 4
"""Metrics that stand side by side; more, or ones with intervals, stand below each other."""

_REPEATED = "Questions were asked several times: intervals and p count the answers to one question as one."

_ONLY = "first only, second only: trials that only the first, or only the second, model got right."

_ALONE = "95%: each row's own interval, not adjusted."

_EXPLAINS = {_ONLY: "first only", _ALONE: "95%"}

_TESTS = "in rows of tasks, adjusted for the number of tasks"

_E = "e: e-value for a difference, valid however often you look; significant at 5% if ≥ 20 (best of N rows: ≥ 20 × N)."

_BAYESIAN = (
    "_ci: Bayesian, drawn to even rates; with few samples far from the metric where rates are near 0 or 1."
)


def group_spec(
    rows: Sequence[PlainRow], by: Sequence[str], head: str, confidence: float, notes: tuple[str, ...] = ()
) -> TableSpec:
    """Groups with their estimate; ones that lack points carry ``*``."""
    cut = any(row["truncated"] > CUT for row in rows)
    lacking = any(_lacks(row) for row in rows)
    columns = [
        *_names(by),
        Column(head, lambda row: percent(row["point"]) + (INCOMPLETE if _lacks(row) else "")),
        Column(f"{100 * confidence:g}%", lambda row: shares(row["lower"], row["upper"])),
        *(
            [Column("done", lambda row: share_done(row["counters"]["trials"], _planned_trials(row)), 0)]
            if lacking
            else []
        ),
        Column("trials", lambda row: number(row["counters"]["trials"]), 1),
        Column("points", lambda row: f"{row['points']}/{row['points_planned']}", 2),
        Column("truncated", lambda row: percent(row["truncated"]), 0 if cut else 3),
    ]
    if lacking:
        notes = (
            *notes,
            "* Rests on part of the planned points or trials: not comparable with rows that have all of them.",
        )
    return TableSpec(tuple(columns), rows, notes, _lacks)


def pair_spec(pair: Pair, notes: tuple[str, ...] = ()) -> TableSpec:
    """The tasks of two evaluations, and all together, with what that says."""
    repeated = pair.overall.trials > pair.overall.questions
    columns = [
        Column("task", lambda row: plain(row.task) or "all tasks", right=False, name=True),
        *_difference_columns(lambda row: row),
        *([Column("questions", lambda row: number(row.questions), 4)] if repeated else []),
        Column("points", lambda row: number(row.points), 4),
    ]
    own = _difference_notes(f"{pair.first} − {pair.second}", pair.weighing, _TESTS, repeated=repeated)
    notes = (*own, *notes, pair_conclusion(pair))
    rows = [*pair.tasks, pair.overall]
    return TableSpec(tuple(columns), rows, notes, lambda row: not row.trials, _EXPLAINS)


def pairs_spec(pairs: Sequence[Pair], notes: tuple[str, ...] = ()) -> TableSpec:
    """Every pair of evaluations over all tasks."""
    columns = [
        Column("first", lambda pair: pair.first, right=False, name=True),
        Column("second", lambda pair: pair.second, right=False, name=True),
        *_difference_columns(lambda pair: pair.overall),
    ]
    repeated = any(pair.overall.trials > pair.overall.questions for pair in pairs)
    weighing = "; ".join(dict.fromkeys(pair.weighing for pair in pairs))
    texts = _difference_notes(
        "first − second", weighing, "adjusted for the number of pairs", repeated=repeated
    )
    lost = (f"{pair.first} − {pair.second}:{lost_in_words(pair)}" for pair in pairs if pair.bounds)
    return TableSpec(tuple(columns), pairs, (*texts, *notes, *lost), explains=_EXPLAINS)


def _difference_columns(of: Callable[[Any], PairedDifference]) -> list[Column]:
    """Return the columns of a difference."""
    return [
        Column("difference", lambda row: points(of(row).difference.value)),
        Column("95%", lambda row: point_span(of(row).difference), 1),
        Column("p (Holm)", lambda row: p_text(of(row).p_holm)),
        Column("e", lambda row: e_text(of(row).e)),
        Column("first only", lambda row: number(of(row).first_only), 3),
        Column("second only", lambda row: number(of(row).second_only), 3),
        Column("trials", lambda row: number(of(row).trials), 2),
    ]


def _difference_notes(which: str, weighing: str, tests: str, *, repeated: bool) -> tuple[str, ...]:
    return (
        f"difference: {which}, in percentage points; {weighing}.",
        _ONLY,
        f"p: p-value for no difference, valid if you look once; {tests} (Holm).",
        _E,
        _ALONE,
        *([_REPEATED] if repeated else []),
    )


def pair_conclusion(pair: Pair) -> str:
    """Summarise a comparison in a sentence or two, overall and by task."""
    return f"{pair_in_words(pair)} {_tasks_in_words(pair)}"


def pair_in_words(pair: Pair) -> str:
    """Summarise a comparison over all tasks in a sentence or two."""
    overall, gap = pair.overall, 100 * pair.overall.difference.value
    low, high = 100 * overall.difference.lower, 100 * overall.difference.upper
    if overall.p_holm < _LEVEL:
        better, worse = (pair.first, pair.second) if gap > 0 else (pair.second, pair.first)
        ends = sorted((abs(low), abs(high)))
        more = "was right more often in the answers that arrived" if pair.open else "is right more often"
        head = (
            f"'{better}' {more} than '{worse}', by {abs(gap):.1f} points ({ends[0]:.1f} to {ends[1]:.1f}), "
            f"{_p_equals(overall.p_holm)}. Minimum detectable difference: "
            f"{_FOUND * (high - low) / 2:.1f} points (80% power)."
        )
        if overall.e < 1 / _LEVEL:
            head += f" This p assumes a single look; with repeated looks, e must reach 20, and is {e_text(overall.e)}."
    else:
        head = (
            f"No significant difference between '{pair.first}' and '{pair.second}' in {overall.trials:,} trials: "
            f"{gap:+.1f} points (95% CI {low:+.1f} to {high:+.1f}), {_p_equals(overall.p_holm)}. "
            f"Minimum detectable difference: {_FOUND * (high - low) / 2:.1f} points (80% power)."
        )
        if overall.p < _LEVEL:
            head += (
                " The interval excludes 0, as it is for this pair alone; p is adjusted for all pairs (Holm)."
            )
    return head + lost_in_words(pair)


def lost_in_words(pair: Pair) -> str:
    """Say how far lost answers could move the difference, behind a space; empty if none were lost."""
    if pair.bounds is None:
        return ""
    low, high = (100 * end for end in pair.bounds)
    depends = ", and so does which of the two is right more often" if pair.open else ""
    return f" The difference depends on the lost answers: from {low:+.1f} to {high:+.1f} points{depends}."


def _tasks_in_words(pair: Pair) -> str:
    parts = []
    for name, sign in ((pair.first, 1), (pair.second, -1)):
        ahead = [row.task for row in pair.tasks if row.p_holm < _LEVEL and sign * row.difference.value > 0]
        if ahead:
            parts.append(f"'{name}' is ahead in {', '.join(ahead)}")
    if not parts:
        return "In no single task is the difference significant (p adjusted for the number of tasks, Holm)."
    return "; ".join(parts) + " (p adjusted for the number of tasks, Holm)."


def _p_equals(p: float) -> str:
    text = p_text(p)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"


def p_text(p: float) -> str:
    """A p value with what can be said of it.

    Examples
    --------
    >>> p_text(0.03456), p_text(1e-9), p_text(1.0), p_text(float("nan"))
    ('0.035', '<0.0001', '1', '–')
    """
    return ABSENT if np.isnan(p) else "<0.0001" if p < 1e-4 else f"{p:.2g}"


def e_text(e: float) -> str:
    """An e-value with what can be said of it.

    Examples
    --------
    >>> e_text(0.03456), e_text(23.4), e_text(1e9), e_text(float("nan"))
    ('0.035', '23', '>9999', '–')
    """
    return ABSENT if np.isnan(e) else ">9999" if e > 9999 else f"{e:.2g}" if e < 10 else f"{e:.0f}"


_QUESTIONS = "Mean of the tasks' means over points{}. Each question with at least k answers counts once."
_INCOMPLETE_QUESTIONS = "Questions with fewer than k answers are left out."
_FEWER_POINTS = (
    "* Some points have no question with k answers: not comparable with rows that rest on all points."
)


def metric_spec(
    rows: Sequence[PlainRow],
    by: Sequence[str],
    names: Sequence[str],
    selection: str = "",
    confidence: float = 0.95,
    *,
    weighed: bool = False,
    more: Sequence[str] = (),
) -> TableSpec:
    """Groups, k, and the metrics beside or below each other."""
    level = f"{100 * confidence:g}%"
    columns = [*_names(by), Column("k", lambda row: ABSENT if row["k"] is None else str(row["k"]))]
    if len(names) <= _WIDE and not any(METRICS[name].parts for name in names):
        shown = rows
        columns += [column for name in names for column in _metric_columns(name, level)]
    else:
        shown = [line for row in rows for line in _by_metric(row, names, rows[0]["k"])]
        columns += [
            Column("metric", lambda row: row["metric"], right=False),
            Column("value", lambda row: number(row["value"], 3)),
            Column(level, lambda row: _numbers(row["lo"], row["hi"], 3)),
            Column("σ", lambda row: number(row["sigma"], 3), 2),
        ]
    columns.append(Column("questions", lambda row: number(row["questions"]) + _fewer(row), 1))
    notes = (f"Part of the cube ({selection}).",) if selection else ()
    notes = (
        *notes,
        _QUESTIONS.format(" (weighted by their planned trials in the cube's first run)" if weighed else ""),
        *more,
    )
    if any(name.endswith("_ci") for name in names):
        notes = (*notes, _BAYESIAN)
    if any(row["questions_incomplete"] for row in rows):
        notes = (*notes, _INCOMPLETE_QUESTIONS)
    if any(_fewer(row) for row in rows):
        notes = (*notes, _FEWER_POINTS)
    return TableSpec(tuple(columns), shown, notes, lambda row: bool(_fewer(row))).without_empty()


def _metric_columns(name: str, level: str) -> list[Column]:
    """A metric and its interval."""
    return [
        Column(name, lambda row: number(row[name], 3)),
        Column(level, lambda row: _numbers(row[f"{name}_lower"], row[f"{name}_upper"], 3), 2, of=name),
    ]


def _fewer(row: PlainRow) -> str:
    return INCOMPLETE if row["points"] < row["points_planned"] else ""


def _by_metric(row: PlainRow, names: Sequence[str], first: int) -> Iterator[PlainRow]:
    """A row for each metric; one that does not depend on k comes once."""
    for name in names:
        takes_k = METRICS[name].takes_k
        if not takes_k and row["k"] != first:
            continue
        main, *parts = metric_parts(name)
        values = {column.removeprefix(f"{name}_"): row[column] for column in parts}
        bounds = {part: values.get(part, np.nan) for part in ("lo", "hi", "sigma")}
        if "lower" in values:
            bounds |= {"lo": values["lower"], "hi": values["upper"]}
        yield row | {"k": row["k"] if takes_k else None, "metric": name, "value": row[main]} | bounds


def hazard_spec(rows: Sequence[PlainRow], by: Sequence[str], notes: tuple[str, ...] = ()) -> TableSpec:
    """The life table."""
    columns = [
        *_names(by),
        Column("up to tokens", lambda row: number(row["tokens"])),
        Column("at risk", lambda row: number(row["at_risk"])),
        Column("right", lambda row: number(row["ends_right"]), 3),
        Column("wrong", lambda row: number(row["ends_wrong"]), 3),
        Column("cut", lambda row: number(row["ends_censored"]), 3),
        Column("hazard right", lambda row: percent(row["hazard_right"]), 1),
        Column("hazard wrong", lambda row: percent(row["hazard_wrong"]), 1),
        Column("right by then", lambda row: percent(row["incidence_right"])),
        Column("95%", lambda row: shares(row["incidence_right_lower"], row["incidence_right_upper"]), 2),
        Column("wrong by then", lambda row: percent(row["incidence_wrong"]), 2),
    ]
    return TableSpec(tuple(columns), rows, notes)


def compression_spec(rows: Sequence[PlainRow], by: Sequence[str], notes: tuple[str, ...] = ()) -> TableSpec:
    """How well traces compress by outcome."""
    columns = [
        *_names([*by, "outcome"]),
        Column("traces", lambda row: number(row["traces"])),
        Column("gzip/bytes", lambda row: number(row["ratio"], 3)),
        Column("95%", lambda row: _numbers(row["ratio_lower"], row["ratio_upper"], 3), 1),
        Column("bytes/token", lambda row: number(row["bytes_per_token"], 2), 2),
        Column("gzip bytes/token", lambda row: number(row["compressed_per_token"], 2), 3),
    ]
    return TableSpec(tuple(columns), rows, notes)


_COSTS = f"USD: total spent. Per trial and per right answer: {WEIGHING['tasks']}."


def cost_spec(rows: Sequence[PlainRow], by: Sequence[str], notes: tuple[str, ...] = ()) -> TableSpec:
    """Costs, and for evaluations the front of score against tokens and cost."""
    columns = [
        *_names(by),
        Column("USD", lambda row: significant(row["total"]), 3),
        Column("per 1000 trials", lambda row: significant(1000 * row["per_trial"]), 1),
        Column("per 1000 correct", lambda row: significant(1000 * row["per_correct"])),
        Column("95%", _correct_span, 4),
    ]
    if rows and all("score" in row for row in rows):
        columns += [
            Column("score", lambda row: number(row["score"])),
            Column("tokens", lambda row: number(row["tokens"]), 2),
            Column("Pareto front", _fronts),
        ]
    return TableSpec(tuple(columns), rows, (*notes, _COSTS))


def clip_spec(rows: Sequence[PlainRow], notes: tuple[str, ...] = ()) -> TableSpec:
    """Scores as they were with other limits of tokens."""
    columns = [
        *_names(["model"]),
        Column("limit", lambda row: "as run" if row["limit"] is None else number(row["limit"])),
        Column("score", lambda row: number(row["score"])),
        Column("95%", lambda row: _numbers(row["score_lower"], row["score_upper"]), 1),
        Column("rank", lambda row: ABSENT if row["rank"] is None else str(row["rank"]), 2),
        Column("C_P", lambda row: percent(row["accuracy"])),
        Column("C_P 95%", lambda row: _numbers(100 * row["accuracy_lower"], 100 * row["accuracy_upper"], 1)),
        Column("truncated", lambda row: percent(row["truncated"])),
        Column("tokens", lambda row: number(row["tokens"]), 3),
        Column("USD/1000", lambda row: significant(row["cost_per_1000"]), 4),
    ]
    if any(row["accuracy_most"] > row["accuracy"] for row in rows):
        notes = (*notes, _OPEN)
    return TableSpec(tuple(columns), rows, notes).without_empty()


_OPEN = "C_P 95%: at the upper end, answers cut before the limit count as right, as they might have been."


def _names(by: Sequence[str]) -> list[Column]:
    def cell(name: str) -> Callable[[PlainRow], str]:
        return lambda row: f"{row[name]:.4g}" if isinstance(row[name], float) else plain(str(row[name]))

    return [
        Column(name.removeprefix("param_").removeprefix("facet_"), cell(name), right=False, name=True)
        for name in by
    ]


def _fronts(row: PlainRow) -> str:
    on = [name for name in ("tokens", "cost") if row[f"on_{name.removesuffix('s')}_front"]]
    return " + ".join(on) or ABSENT


def _lacks(row: PlainRow) -> bool:
    """Whether a group has not what was planned of it."""
    asked = _planned_trials(row)
    return bool(row["points"] < row["points_planned"] or asked - row["counters"]["trials"] > LACKING * asked)


def _planned_trials(row: PlainRow) -> float:
    """Planned trials of a group, as far as its counters have them."""
    return sum(float(row["counters"].get(name, 0.0)) for name in ("trials", "transport", "missing"))


def share_done(trials: float, planned: float) -> str:
    """Share of the planned trials that have a result, rounded down: what is not all is not shown as all."""
    return f"{100 * trials // planned:.0f}%" if planned else ABSENT


def shares(low: float, high: float) -> str:
    """An interval of shares in per cent."""
    return ABSENT if np.isnan(low) else f"{100 * low:.1f}–{100 * high:.1f}"


def _numbers(low: float, high: float, digits: int = 0) -> str:
    return ABSENT if np.isnan(low) else f"{number(low, digits)}–{number(high, digits)}"


def _correct_span(row: PlainRow) -> str:
    """Bounds of the USD per 1000 right answers."""
    low, high = 1000 * row["per_correct_lower"], 1000 * row["per_correct_upper"]
    if np.isnan(low):
        return ABSENT
    return f"{significant(low)}–{significant(high)}" if np.isfinite(high) else f"{significant(low)} or more"


def points(value: float) -> str:
    """A share in percentage points, with its sign.

    Examples
    --------
    >>> points(0.125), points(-0.0001)
    ('+12.5', '+0.0')
    """
    return ABSENT if np.isnan(value) else f"{round(100 * value, 1) + 0.0:+.1f}"  # never -0.0


def point_span(difference: Estimate) -> str:
    """Its interval."""
    low, high = points(difference.lower), points(difference.upper)
    return low if low == ABSENT else f"{low} to {high}"


def span(estimate: Estimate, digits: int = 0) -> str:
    """The interval of an estimate, a single number if both ends are shown alike."""
    low, high = number(estimate.lower, digits), number(estimate.upper, digits)
    return low if low == high else ABSENT if ABSENT in (low, high) else f"{low}–{high}"
