"""What functions of `evalcube` return: tables to look at, values to compute with, records of what was done."""

from __future__ import annotations

from evalcube.flows.cube_like import CubeLike as CubeLike  # noqa: PLC0414 - handed on to type checkers
from evalcube.flows.read.dataset import CubeAccessor
from evalcube.flows.read.estimate import EvaluationEstimate, SweepEstimate
from evalcube.flows.read.gate import GateResult
from evalcube.flows.read.results import (
    ComparisonResult,
    LeaderboardResult,
    MetricsResult,
    RankingResult,
    TableResult,
)
from evalcube.flows.read.selection import OpenPart
from evalcube.flows.read.trials.read import Trials
from evalcube.flows.read.verdict import CubeVerdict
from evalcube.flows.run.probe.probe import ProbeResult
from evalcube.flows.run.summary import RunSummary
from evalcube.flows.share.difference import Difference
from evalcube.flows.share.export import Exported
from evalcube.flows.share.imports.logs import ImportSummary
from evalcube.flows.share.merge import Merged
from evalcube.flows.share.publish.publish import Published
from evalcube.flows.share.publish.pull import Pulled
from evalcube.flows.state.damage import Verification
from evalcube.flows.state.rescoring import Rescoring
from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.analyze.render.charts import Picture
from evalcube.stages.analyze.verdict import Verdict

__all__ = [
    "ComparisonResult",
    "CubeAccessor",
    "CubeVerdict",
    "Difference",
    "Estimate",
    "EvaluationEstimate",
    "Exported",
    "GateResult",
    "ImportSummary",
    "LeaderboardResult",
    "Merged",
    "MetricsResult",
    "OpenPart",
    "Picture",
    "ProbeResult",
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
