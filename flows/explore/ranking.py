"""The first level: all evaluations ranked, with what tells them apart."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flows.cubes.statistics import leaderboard_of
from flows.explore.endpoint import Endpoint, Json
from flows.explore.explored import Explored
from flows.explore.query import Query
from stages.analyze.formulas.compare.clusters import overlap_clusters
from stages.analyze.formulas.estimators import MODES
from stages.analyze.labelled import axes
from stages.analyze.labelled.ranking import cluster_name
from stages.analyze.labelled.scores import VERSIONS


def ranking(explored: Explored, query: Query) -> Json:
    """The leaderboard of the part that is meant, and groups of evaluations that its intervals do not tell apart."""
    opened = explored.part(query)
    board = leaderboard_of(
        opened,
        version=query.choice("score", VERSIONS, "auto"),  # type: ignore[arg-type]
        mode=query.choice("mode", MODES, "C_P"),  # type: ignore[arg-type]
        draws=1000,
    )
    ends = np.array(
        [
            [lead.lower, lead.upper] if row.rank is not None else [np.nan, np.nan]
            for row, lead in zip(board.rows, map(board.leading, board.rows), strict=True)
        ]
    ).reshape(-1, 2)
    clusters = list(reversed(overlap_clusters(ends[:, 0], ends[:, 1], strict=False)))
    labels = dict(zip(axes.names(explored.whole().dataset, "eval_id"), explored.labels(), strict=True))
    document = board.to_dict()
    for place, row in enumerate(document["rows"]):  # type: ignore[var-annotated, arg-type]
        row["label"] = labels[row["eval_id"]]
        row["groups"] = "".join(cluster_name(n) for n, members in enumerate(clusters) if place in members)
    return {**document, "warnings": list(opened.warnings)}


def parts(explored: Explored) -> Iterable[Query]:
    """The parts that a bundle knows: all, each task, each tier."""
    dataset = explored.whole().dataset
    tasks, tiers = axes.names(dataset, "task"), axes.names(dataset, "tier")
    yield Query()
    yield from (Query.make(task=task) for task in tasks if len(tasks) > 1)
    yield from (Query.make(tier=tier) for tier in tiers if len(tiers) > 1)


ENDPOINTS = (Endpoint("ranking", ranking, parts),)
