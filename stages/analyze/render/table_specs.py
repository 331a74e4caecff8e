"""Results of analyses -> rows of plain values, and sheets that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from stages.analyze.formulas.outcomes.table import METRICS
from stages.analyze.labelled.forensics import FrontRow
from stages.analyze.labelled.leaderboard import Leaderboard
from stages.analyze.labelled.pairing import Difference, Pair, p_text, verdict_in_words
from stages.analyze.labelled.ranking import Standings
from stages.analyze.render.leaderboard_table import INCOMPLETE, span
from stages.analyze.render.table import Column, Sheet
from stages.analyze.render.text import ABSENT, number, percent, plain, significant

Record = dict[str, Any]
"""One row of plain values; NaN where undefined."""

_WIDE = 4
"""Metrics that stand side by side; more, or ones with intervals, stand below each other."""

_REPEATED = "Questions were asked several times: intervals and p go by question, not by trial."

_BAYESIAN = (
    "_ci: Bayesian, drawn to even rates; with few samples far from the metric where rates are near 0 or 1."
)


def group_records(table: xr.Dataset, labels: Sequence[str]) -> list[Record]:
    """A row for each group of `stages.analyze.labelled.aggregate.aggregate` that has planned points.

    Parameters
    ----------
    table
        In memory.
    labels
        Names of the evaluations, for groups by model.
    """
    counters = [str(name) for name in table["counter"].values.tolist()]
    dims = list(table["point"].dims)
    rows = []
    for place, names, values in _groups(table, dims, labels):
        if not values["points_planned"][place]:
            continue
        row = names | {name: float(values[name][place]) for name in ("point", "lower", "upper")}
        row |= {name: int(values[name][place]) for name in ("points", "points_planned")}
        rows.append(row | {"counters": dict(zip(counters, values["counters"][place].tolist(), strict=True))})
    return rows


def group_sheet(rows: Sequence[Record], by: Sequence[str], head: str, notes: tuple[str, ...] = ()) -> Sheet:
    """Groups with their estimate; ones that lack points carry ``*``."""
    columns = [
        *_names(by),
        Column(head, lambda row: percent(row["point"]) + (INCOMPLETE if _lacks(row) else "")),
        Column("95 %", lambda row: _shares(row["lower"], row["upper"])),
        Column("trials", lambda row: number(row["counters"]["trials"]), 1),
        Column("points", lambda row: f"{row['points']}/{row['points_planned']}", 2),
        Column("truncated", lambda row: percent(_ratio(row["counters"], "truncated")), 3),
    ]
    if any(_lacks(row) for row in rows):
        notes = (*notes, "* Rests on part of the points: not comparable with rows that have all of them.")
    return Sheet(tuple(columns), rows, notes, _lacks)


def ranking_sheet(found: Standings, board: Leaderboard) -> Sheet:
    """Every evaluation with its place among the others."""
    columns = [
        Column("#", lambda item: ABSENT if item.row.rank is None else str(item.row.rank)),
        Column("model", lambda item: item.label, right=False, name=True),
        Column("score", lambda item: number(item.row.score.value) + INCOMPLETE * item.row.incomplete),
        Column(f"{100 * board.confidence:g} %", lambda item: span(item.row.score), 3),
        Column("ranks", lambda item: span(item.row.rank_interval)),
        Column("groups", lambda item: item.letters or ABSENT),
        Column("wins", lambda item: number(item.wins, 2), 1),
        Column("rating", lambda item: number(item.rating, 3), 2),
    ]
    notes = (
        "ranks: places that the model takes when the questions are drawn again.",
        "groups: models that share a letter have overlapping intervals.",
        f"wins: expected against the {len(found.rows) - 1} others. rating: a/(a + b) is a's chance against b.",
        *board.notes,
    )
    return Sheet(tuple(columns), found.rows, notes, lambda item: item.row.incomplete)


def pair_sheet(pair: Pair, notes: tuple[str, ...] = ()) -> Sheet:
    """The tasks of two evaluations, and all together, with what that says."""
    repeated = pair.overall.trials > pair.overall.questions
    columns = [
        Column("task", lambda row: plain(row.task) or "all tasks", right=False, name=True),
        Column("difference", lambda row: _points(row.difference.value)),
        Column("95 %", _point_span, 1),
        Column("p (Holm)", _p, 0),
        Column("first only", lambda row: number(row.first_only), 3),
        Column("second only", lambda row: number(row.second_only), 3),
        Column("trials", lambda row: number(row.trials), 2),
        *([Column("questions", lambda row: number(row.questions), 4)] if repeated else []),
        Column("points", lambda row: number(row.points), 4),
    ]
    notes = (
        f"difference: {pair.first} − {pair.second}, mean over points, in points of 100.",
        "first, second only: trials that only one of them got right. p: McNemar, adjusted by Holm.",
        *([_REPEATED] if repeated else []),
        *notes,
        verdict_in_words(pair),
    )
    return Sheet(tuple(columns), [*pair.tasks, pair.overall], notes, lambda row: not row.trials)


def pairs_sheet(pairs: Sequence[Pair], notes: tuple[str, ...] = ()) -> Sheet:
    """Every pair of evaluations over all tasks."""
    columns = [
        Column("first", lambda pair: pair.first, right=False, name=True),
        Column("second", lambda pair: pair.second, right=False, name=True),
        Column("difference", lambda pair: _points(pair.overall.difference.value)),
        Column("95 %", lambda pair: _point_span(pair.overall), 1),
        Column("p (Holm)", lambda pair: _p(pair.overall)),
        Column("first only", lambda pair: number(pair.overall.first_only), 3),
        Column("second only", lambda pair: number(pair.overall.second_only), 3),
        Column("trials", lambda pair: number(pair.overall.trials), 2),
    ]
    repeated = any(pair.overall.trials > pair.overall.questions for pair in pairs)
    notes = (
        "difference: first − second, mean over points, in points of 100.",
        *([_REPEATED] if repeated else []),
        *notes,
    )
    return Sheet(tuple(columns), pairs, notes)


def pair_record(pair: Pair) -> Record:
    """Plain values of a comparison."""

    def plain_values(item: Difference) -> Record:
        found = {
            name: getattr(item, name) for name in Difference.__dataclass_fields__ if name != "difference"
        }
        gap = item.difference
        return found | {"difference": gap.value, "lower": gap.lower, "upper": gap.upper}

    tasks = [plain_values(item) for item in pair.tasks]
    overall = {name: value for name, value in plain_values(pair.overall).items() if name != "task"}
    return {"first": pair.first, "second": pair.second, "overall": overall, "tasks": tasks}


def metric_records(table: xr.Dataset, names: Sequence[str], labels: Sequence[str]) -> list[Record]:
    """A row for each group and k of `stages.analyze.labelled.outcomes.cube_outcome_metrics`."""
    dims = list(table["questions"].dims)
    rows = []
    for place, found, values in _groups(table, dims, labels):
        base = found | {name: int(values[name][place]) for name in ("questions", "questions_incomplete")}
        if not base["questions"] and not base["questions_incomplete"]:
            continue
        for index, k in enumerate(table["k"].values.tolist()):
            row = base | {"k": k}
            for name in (part for metric in names for part in _parts(metric)):
                row[name] = float(np.ravel(values[name][place])[index if "k" in table[name].dims else 0])
            rows.append(row)
    return rows


def metric_sheet(
    rows: Sequence[Record], by: Sequence[str], names: Sequence[str], selection: str = ""
) -> Sheet:
    """Groups, k, and the metrics beside or below each other."""
    wide = len(names) <= _WIDE and all(len(_parts(name)) == 1 for name in names)
    columns = [*_names(by), Column("k", lambda row: ABSENT if row["k"] is None else str(row["k"]))]
    if wide:
        shown = rows
        columns += [Column(name, lambda row, at=name: number(row[at], 3)) for name in names]  # type: ignore[misc]
    else:
        shown = [found for row in rows for found in _by_metric(row, names, rows[0]["k"])]
        columns += [
            Column("metric", lambda row: row["metric"], right=False),
            Column("value", lambda row: number(row["value"], 3)),
            Column("95 %", lambda row: _numbers(row["lo"], row["hi"], 3)),
            Column("σ", lambda row: number(row["sigma"], 3), 2),
        ]
    columns.append(Column("questions", lambda row: number(row["questions"]), 1))
    left = max((row["questions_incomplete"] for row in rows), default=0)
    notes = (f"Part of the cube ({selection}).",) if selection else ()
    if any(name.endswith("_ci") for name in names):
        notes = (*notes, _BAYESIAN)
    if left:
        notes = (
            *notes,
            "Questions with some of their repeats only are left out; `evalcube run` completes them.",
        )
    return Sheet(tuple(columns), shown, notes).filled()


def _by_metric(row: Record, names: Sequence[str], first: int) -> Iterator[Record]:
    """A row for each metric; one that does not depend on k comes once."""
    for name in names:
        takes_k = METRICS[name].takes_k
        if not takes_k and row["k"] != first:
            continue
        main, *others = _parts(name)
        values = {other.removeprefix(f"{name}_"): row[other] for other in others}
        bounds = {part: values.get(part, np.nan) for part in ("lo", "hi", "sigma")}
        yield row | {"k": row["k"] if takes_k else None, "metric": name, "value": row[main]} | bounds


def hazard_records(table: xr.Dataset, labels: Sequence[str]) -> list[Record]:
    """A row for each evaluation (and task) and bin of tokens in which a trial was still at risk."""
    dims = [dim for dim in table["at_risk"].dims if dim != "bin"]
    causes = list(enumerate(table["cause"].values.tolist()))
    ends = table["end"].values.tolist()
    rows = []
    for place, names, values in _groups(table, dims, labels):
        for index, tokens in enumerate(table["tokens"].values.tolist()):
            here = (*place, index)
            if not values["at_risk"][here]:
                continue
            row = names | {"tokens": tokens, "at_risk": int(values["at_risk"][here])}
            row |= {f"ends_{end}": int(values["ends"][(*here, at)]) for at, end in enumerate(ends)}
            for name in ("hazard", "incidence"):
                for at, cause in causes:
                    row |= _bounds(values[name][(*here, at)], f"{name}_{cause}")
            rows.append(row | _bounds(values["survival"][here], "survival"))
    return rows


def hazard_sheet(rows: Sequence[Record], by: Sequence[str], notes: tuple[str, ...] = ()) -> Sheet:
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
        Column("95 %", lambda row: _shares(row["incidence_right_lower"], row["incidence_right_upper"]), 2),
        Column("wrong by then", lambda row: percent(row["incidence_wrong"]), 2),
    ]
    return Sheet(tuple(columns), rows, notes)


def compression_records(table: xr.Dataset, labels: Sequence[str]) -> list[Record]:
    """A row for each evaluation (and task) and outcome with a reasoning trace."""
    rows = []
    for place, names, values in _groups(table, list(table["traces"].dims), labels):
        if not values["traces"][place]:
            continue
        row = names | {"traces": int(values["traces"][place])}
        for name in ("ratio", "bytes_per_token", "compressed_per_token"):
            row |= _bounds(values[name][place], name)
        rows.append(row)
    return rows


def compression_sheet(rows: Sequence[Record], by: Sequence[str], notes: tuple[str, ...] = ()) -> Sheet:
    """How well traces compress by outcome."""
    columns = [
        *_names([*by, "outcome"]),
        Column("traces", lambda row: number(row["traces"])),
        Column("gzip/bytes", lambda row: number(row["ratio"], 3)),
        Column("95 %", lambda row: _numbers(row["ratio_lower"], row["ratio_upper"], 3), 1),
        Column("bytes/token", lambda row: number(row["bytes_per_token"], 2), 2),
        Column("gzip bytes/token", lambda row: number(row["compressed_per_token"], 2), 3),
    ]
    return Sheet(tuple(columns), rows, notes)


def cost_records(table: xr.Dataset, labels: Sequence[str], front: Mapping[str, FrontRow]) -> list[Record]:
    """A row for each evaluation (and task) with its costs; `front` has the evaluations' rows by label."""
    rows = []
    for place, names, values in _groups(table, list(table["total"].dims), labels):
        row = names | {name: float(array[place]) for name, array in values.items()}
        known = front.get(names["model"]) if "task" not in names else None
        if known is not None:
            row |= {"score": known.score, "tokens": known.tokens}
            row |= {name: getattr(known, name) for name in ("on_token_front", "on_cost_front", "on_front")}
        rows.append(row)
    return rows


def cost_sheet(rows: Sequence[Record], by: Sequence[str], notes: tuple[str, ...] = ()) -> Sheet:
    """Costs, and for evaluations the front of score against tokens and cost."""
    columns = [
        *_names(by),
        Column("USD", lambda row: significant(row["total"]), 3),
        Column("per 1000 trials", lambda row: significant(1000 * row["per_trial"]), 1),
        Column("per 1000 correct", lambda row: significant(1000 * row["per_correct"])),
        Column("95 %", _correct_span, 4),
    ]
    if rows and all("score" in row for row in rows):
        columns += [
            Column("score", lambda row: number(row["score"])),
            Column("tokens", lambda row: number(row["tokens"]), 2),
            Column("front", _fronts),
        ]
    return Sheet(tuple(columns), rows, notes)


def clip_sheet(rows: Sequence[Record], notes: tuple[str, ...] = ()) -> Sheet:
    """Scores as they were with other limits of tokens."""
    columns = [
        *_names(["model"]),
        Column("limit", lambda row: "as run" if row["limit"] is None else number(row["limit"])),
        Column("score", lambda row: number(row["score"])),
        Column("95 %", lambda row: _numbers(row["score_lower"], row["score_upper"]), 1),
        Column("rank", lambda row: ABSENT if row["rank"] is None else str(row["rank"]), 2),
        Column("C_P", lambda row: percent(row["accuracy"])),
        Column("truncated", lambda row: percent(row["truncated"])),
        Column("tokens", lambda row: number(row["tokens"]), 3),
        Column("USD/1000", lambda row: significant(row["cost_per_1000"]), 4),
    ]
    return Sheet(tuple(columns), rows, notes).filled()


def _groups(
    table: xr.Dataset, dims: Sequence[Any], labels: Sequence[str]
) -> Iterator[tuple[tuple[int, ...], Record, dict[str, NDArray[Any]]]]:
    """Index and names of each group, with the arrays that the index belongs to."""
    levels: dict[Any, list[Any]] = {
        dim: table[dim].values.tolist() if dim in table.coords else list(range(table.sizes[dim]))
        for dim in dims
    }
    if "model" in levels:
        levels["model"] = [labels[level] for level in levels["model"]]
    values = {str(name): array.transpose(*dims, ...).values for name, array in table.data_vars.items()}
    for place in product(*(range(len(found)) for found in levels.values())):
        names = {str(dim): levels[dim][at] for dim, at in zip(dims, place, strict=True)}
        yield place, names, values


def _names(by: Sequence[str]) -> list[Column]:
    def cell(name: str) -> Callable[[Record], str]:
        return lambda row: f"{row[name]:.4g}" if isinstance(row[name], float) else plain(str(row[name]))

    return [
        Column(name.removeprefix("param_").removeprefix("facet_"), cell(name), right=False, name=True)
        for name in by
    ]


def _parts(metric: str) -> list[str]:
    """Names of a metric's values, the main one first."""
    return [f"{metric}_{part}" if part else metric for part in METRICS[metric].parts or ("",)]


def _bounds(values: NDArray[Any], name: str) -> Record:
    value, lower, upper = values.tolist()
    return {name: value, f"{name}_lower": lower, f"{name}_upper": upper}


def _fronts(row: Record) -> str:
    on = [name for name in ("tokens", "cost") if row[f"on_{name.removesuffix('s')}_front"]]
    return " + ".join(on) or ABSENT


def _lacks(row: Record) -> bool:
    return bool(row["points"] < row["points_planned"])


def _ratio(counters: Mapping[str, float], name: str) -> float:
    return counters[name] / counters["trials"] if counters["trials"] else np.nan


def _shares(low: float, high: float) -> str:
    return ABSENT if np.isnan(low) else f"{100 * low:.1f}–{100 * high:.1f}"


def _numbers(low: float, high: float, digits: int = 0) -> str:
    return ABSENT if np.isnan(low) else f"{number(low, digits)}–{number(high, digits)}"


def _correct_span(row: Record) -> str:
    """Bounds of the USD per 1000 right answers."""
    low, high = 1000 * row["per_correct_lower"], 1000 * row["per_correct_upper"]
    if np.isnan(low):
        return ABSENT
    return f"{significant(low)}–{significant(high)}" if np.isfinite(high) else f"{significant(low)} or more"


def _points(value: float) -> str:
    return ABSENT if np.isnan(value) else f"{100 * value:+.1f}"


def _point_span(row: Difference) -> str:
    low, high = _points(row.difference.lower), _points(row.difference.upper)
    return low if low == ABSENT else f"{low} to {high}"


def _p(row: Difference) -> str:
    return ABSENT if np.isnan(row.p_holm) else p_text(row.p_holm)
