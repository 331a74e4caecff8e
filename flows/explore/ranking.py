"""What counters alone tell: how models rank, and estimates of any groups of points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from evalcube.flows.errors import SweepError, refused
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.overview import overview
from evalcube.flows.explore.query import Answerer, Json, Query
from evalcube.flows.plan.filters import checked_names
from evalcube.flows.read.decision import shown_decisions
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.statistics import leaderboard_of
from evalcube.flows.read.verdict import shown_standing
from evalcube.stages.analyze.formulas.estimators import MODES
from evalcube.stages.analyze.formulas.forensics import pareto_front
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.aggregate import aggregate
from evalcube.stages.analyze.labelled.columns import COLUMNS, BoardColumn
from evalcube.stages.analyze.labelled.counters import raw_task_counters
from evalcube.stages.analyze.labelled.leaderboard import row_order
from evalcube.stages.analyze.labelled.points import told_of_points
from evalcube.stages.analyze.labelled.ranking import cluster_name, numbers_of, rank_groups
from evalcube.stages.analyze.labelled.results import Leaderboard
from evalcube.stages.analyze.labelled.scores import VERSIONS
from evalcube.stages.analyze.labelled.selection import keys
from evalcube.stages.analyze.render import meaning
from evalcube.stages.reply.status import COUNTED

DRAWS = 2000
"""As of every leaderboard, so that a page shows what the command line does."""

_QUICK, _FEWEST = 12_000, 60
"""Draws of all rows together that a quick answer is made with, and the fewest of a row."""

SPENDS = ("cost_per_1000", "tokens_per_trial", "latency")
"""What evaluations spend, against which the score is held."""


def ranking(explored: Explored, query: Query) -> Json:
    """The leaderboard of the part that is meant, and groups of evaluations that its intervals do not tell apart.

    With ``quick`` intervals rest on fewer draws where there are many rows; ``final`` tells whether they are the ones of
    ``evalcube leaderboard``.
    """
    opened = explored.part(query)
    draws = DRAWS
    if query.one("quick"):
        draws = min(DRAWS, max(_FEWEST, _QUICK // opened.dataset.sizes["model"]))
    board = leaderboard_of(
        opened,
        version=query.choice("score", VERSIONS, "auto"),  # type: ignore[arg-type]  # checked
        mode=query.choice("mode", ("auto", *MODES), "auto"),  # type: ignore[arg-type]
        draws=draws,
    )
    rows: list[Json] = board.to_dict()["rows"]  # type: ignore[assignment]
    latency = _latency(opened.dataset)[row_order(opened.dataset, board)]
    by_id = explored.label_of()
    for row, letters, seconds in zip(rows, _groups(board), latency, strict=True):
        row |= {"label": by_id[row["eval_id"]], "groups": letters, "latency": seconds}
    _add_fronts(rows, board)
    head = {
        name: getattr(board, name)
        for name in ("lead", "mode", "rate_name", "version", "tiers", "tasks", "confidence")
    }
    return {
        **head,
        "rows": rows,
        "columns": [_shown_column(column, board) for column in COLUMNS if column.form],
        "notes": [*opened.warnings, *board.notes, *board.remarks],
        "meaning": _meaning(board),
        **_standing(explored, opened.selection),
        "final": draws == DRAWS,
    }


def _shown_column(column: BoardColumn, board: Leaderboard) -> Json:
    """Return what the page's tables need of a column; ``extra`` is None where its values say whether it is one."""
    fields = ("path", "head", "long_head", "hint", "form", "higher_first")
    extra = None if column.explorer is None else not column.explorer(board)
    return {name: getattr(column, name) for name in fields} | {"extra": extra}


def _standing(explored: Explored, selection: str) -> Json:
    """The decisions and the verdict on a whole cube's evaluations, where its config asks for them."""
    names = ("verdict", "no_verdict", "decisions", "no_decision")
    if selection or len(explored.cubes) > 1:
        return dict(zip(names, (None, "", [], ""), strict=True))

    def standing() -> tuple[object, ...]:
        reader = Reader(explored.cubes[0])
        verdict, without = shown_standing(reader)
        decisions, undecided = shown_decisions(reader)
        return verdict and asdict(verdict), without, [asdict(item) for item in decisions], undecided

    return dict(zip(names, explored.cached("verdict", standing), strict=True))


def _meaning(board: Leaderboard) -> Json:
    """What scores say, for those who point at one."""

    def band_rows(bands: Sequence[meaning.Band]) -> list[list[object]]:
        return [[profile.low, profile.high, profile.words] for profile in bands]

    return {
        "score": band_rows(meaning.SCORE_BANDS),
        "token": band_rows(meaning.TOKEN_BANDS),
        "short": meaning.TOKENS_OF_SHORT_ANSWERS,
        "why": meaning.WHY_1000,
        "always_right": board.ceiling_text,
        "profiles": [f"{p.name} ({', '.join(map(str, p.example))}): {p.words}" for p in meaning.PROFILES],
    }


def _groups(board: Leaderboard) -> list[str]:
    """Letters of the groups that each row belongs to, best first: rows with one in common may stand at one place."""
    by_row = numbers_of(rank_groups(board), len(board.rows))
    return [" ".join(map(cluster_name, numbers)) for numbers in by_row]


def _latency(dataset: xr.Dataset) -> Any:  # noqa: ANN401 - an array
    """Mean seconds of a reply, shape (model,); NaN where nobody has measured it."""
    summed = raw_task_counters(dataset).sum(axis=1)
    labels = axes.names(dataset, "counter")
    seconds, trials = (summed[:, labels.index(name)] for name in ("latency_sum", "trials"))
    with np.errstate(all="ignore"):
        return np.where(seconds > 0, seconds / trials, np.nan)


def _add_fronts(rows: Sequence[Json], board: Leaderboard) -> None:
    """Say of each row by what it spends it is on the Pareto front: no other one leads for as little."""
    lead = [board.leading(row).value if row.rank is not None else np.nan for row in board.rows]
    fronts: list[list[str]] = [[] for _ in rows]
    for spend in SPENDS:
        spent = np.array([np.nan if row[spend] is None else row[spend] for row in rows], dtype=np.float64)
        for index in np.flatnonzero(pareto_front(lead, spent)).tolist():
            fronts[index].append(spend)
    for row, front in zip(rows, fronts, strict=True):
        row["front"] = front


def parts(explored: Explored) -> Iterable[Query]:
    """The parts that a bundle knows: all, each task, each tier."""
    dataset = explored.whole().dataset
    tasks, tiers = axes.names(dataset, "task"), axes.names(dataset, "tier")
    yield Query()
    yield from (Query.make(task=task) for task in tasks if len(tasks) > 1)
    yield from (Query.make(tier=tier) for tier in tiers if len(tiers) > 1)


MOST_NAMES, MOST_GROUPS = 3, 100_000
MOST_LEVELS = 60
"""Levels of a parameter up to which a bundle holds curves and surfaces over it."""

MOST_BUNDLED = 20_000
"""Groups of a surface up to which a bundle holds it."""

_DIGITS = 4


def groups(explored: Explored, query: Query) -> Json:
    """Estimates with intervals and counters of groups by ``by``, names behind commas.

    Groups are in row-major order of ``levels``. Where nothing was planned or measured, estimates are null.
    """
    by = query.one("by", "model,task").split(",")
    # Evaluations that are put together answered the same questions, which only their trials tell.
    opened = explored.part(query, trials="model" not in by)
    dataset, labels = chosen(explored, query, opened.dataset)
    names = checked_names(by, keys(dataset), "by")
    if not 1 <= len(names) <= MOST_NAMES:
        raise SweepError(f"`by`: {len(names)} names are given", f"Give one to {MOST_NAMES}")
    with refused():
        estimates = aggregate(dataset, by=names, mode=query.choice("mode", MODES, "C_P")).compute()  # type: ignore[arg-type]
    sizes = [estimates.sizes[name] for name in names]
    if np.prod(sizes) > MOST_GROUPS:
        raise SweepError(f"`by`: {np.prod(sizes):,} groups", "Choose fewer models, or fewer names")
    counters = np.moveaxis(estimates["counters"].values, -1, 0)
    sums = dict(zip(estimates["counter"].values.tolist(), counters, strict=True))
    return {
        "by": names,
        "mode": estimates.attrs["mode"],
        "levels": [labels if name == "model" else estimates[name].values.tolist() for name in names],
        **{name: np.round(estimates[name].values.ravel(), _DIGITS) for name in ("point", "lower", "upper")},
        **{
            name: sums[name].ravel().astype(int) for name in ("trials", "completed", *COUNTED) if name in sums
        },
        "cut": np.round(estimates["per_trial"].sel(counter="truncated").values.ravel(), _DIGITS),
        **{name: estimates[name].values.ravel() for name in ("points", "points_planned")},
        "selection": opened.selection,
        "warnings": [*opened.warnings, *told_of_points(estimates.attrs, labels)],
    }


def chosen(explored: Explored, query: Query, dataset: xr.Dataset) -> tuple[xr.Dataset, list[str]]:
    """The evaluations of a part that a query names by ``model``, all of them if it names none, and their labels."""
    by_id = explored.label_of()
    labels = [by_id[eval_id] for eval_id in axes.names(dataset, "eval_id")]
    wanted = query.all("model")
    for name in wanted:
        explored.model(name)
    places = [labels.index(name) for name in wanted if name in labels] if wanted else list(range(len(labels)))
    if not places:
        raise SweepError(f"`model`: this part has nothing of {', '.join(wanted)}", "Widen the filters")
    return dataset.isel(model=places), [labels[row] for row in places]


def _bundled_queries(explored: Explored) -> Iterable[Query]:
    """What the views ask that show groups: by task, by tier and task, and over parameters of each task."""
    for part in parts(explored):
        for by in ("model", "model,task", "model,tier,task", "task"):
            yield Query((*part.items, ("by", by)))
    models = len(explored.labels())
    for task in overview(explored, Query())["tasks"]:
        levels = {param["name"]: len(param["levels"]) for param in task["params"]}
        several = [param["name"] for param in task["params"] if 1 < len(param["levels"]) <= MOST_LEVELS]
        for number, name in enumerate(several):
            yield Query.make(task=task["label"], by=f"model,{name}")
            for second in several[number + 1 :]:
                if models * levels[name] * levels[second] > MOST_BUNDLED:
                    continue
                yield Query.make(task=task["label"], by=f"model,{name},{second}")
        yield Query.make(task=task["label"], by="model,difficulty")


ENDPOINTS = (Answerer("ranking", ranking, parts), Answerer("groups", groups, _bundled_queries))
