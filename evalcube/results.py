"""What functions of `evalcube` return: tables to look at, values to compute with, records of what was done."""

from __future__ import annotations

from evalcube.flows.cubes.dataset import CubeAccessor
from evalcube.flows.cubes.results import (
    ComparisonResult,
    LeaderboardResult,
    MetricsResult,
    RankingResult,
    TableResult,
)
from evalcube.flows.cubes.selection import OpenPart
from evalcube.flows.cubes.verdict import CubeVerdict
from evalcube.flows.formats.export import Exported
from evalcube.flows.imports.logs import ImportSummary
from evalcube.flows.merge.difference import Difference
from evalcube.flows.merge.write import Merged
from evalcube.flows.nouns import CubeLike as CubeLike  # noqa: PLC0414 - handed on to type checkers
from evalcube.flows.plan.estimate import EvaluationEstimate, SweepEstimate
from evalcube.flows.plan.rescoring import Rescoring
from evalcube.flows.publish.publish import Published
from evalcube.flows.publish.pull import Pulled
from evalcube.flows.rework.damage import Verification
from evalcube.flows.run.summary import RunSummary
from evalcube.flows.trials.read import Trials
from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.analyze.verdict import Verdict

__all__ = [
    "ComparisonResult",
    "CubeAccessor",
    "CubeVerdict",
    "Difference",
    "Estimate",
    "EvaluationEstimate",
    "Exported",
    "ImportSummary",
    "LeaderboardResult",
    "Merged",
    "MetricsResult",
    "OpenPart",
    "Published",
    "Pulled",
    "RankingResult",
    "Rescoring",
    "RunSummary",
    "SweepEstimate",
    "TableResult",
    "Trials",
    "Verdict",
    "Verification",
]
