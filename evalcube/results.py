# ruff: noqa: PLC0414 - the one list of the names, which is handed on to type checkers
"""What functions of `evalcube` return: tables to look at, values to compute with, records of what was done."""

from evalcube.flows.cube_like import CubeLike as CubeLike
from evalcube.flows.cube_like import OneCube as OneCube
from evalcube.flows.plan.filters import Where as Where
from evalcube.flows.read.dataset import CubeAccessor as CubeAccessor
from evalcube.flows.read.dataset import CubeDataset as CubeDataset
from evalcube.flows.read.estimate import EvaluationEstimate as EvaluationEstimate
from evalcube.flows.read.estimate import SweepEstimate as SweepEstimate
from evalcube.flows.read.gate import GateResult as GateResult
from evalcube.flows.read.results import ComparisonResult as ComparisonResult
from evalcube.flows.read.results import LeaderboardResult as LeaderboardResult
from evalcube.flows.read.results import MetricsResult as MetricsResult
from evalcube.flows.read.results import RankingResult as RankingResult
from evalcube.flows.read.results import TableResult as TableResult
from evalcube.flows.read.selection import OpenPart as OpenPart
from evalcube.flows.read.trials.read import Trials as Trials
from evalcube.flows.read.verdict import CubeVerdict as CubeVerdict
from evalcube.flows.run.probe.probe import ProbeResult as ProbeResult
from evalcube.flows.run.spending import Amount as Amount
from evalcube.flows.run.summary import RunSummary as RunSummary
from evalcube.flows.run.sweep import Graders as Graders
from evalcube.flows.share.difference import Difference as Difference
from evalcube.flows.share.export import Exported as Exported
from evalcube.flows.share.imports.logs import ImportSummary as ImportSummary
from evalcube.flows.share.merge import Merged as Merged
from evalcube.flows.share.publish.publish import Published as Published
from evalcube.flows.share.publish.pull import Pulled as Pulled
from evalcube.flows.state.damage import Verification as Verification
from evalcube.flows.state.rescoring import Rescoring as Rescoring
from evalcube.stages.analyze.formulas.allocation import Purpose as Purpose
from evalcube.stages.analyze.formulas.design import Weigh as Weigh
from evalcube.stages.analyze.formulas.estimators import Mode as Mode
from evalcube.stages.analyze.labelled.leaderboard import BoardWeigh as BoardWeigh
from evalcube.stages.analyze.labelled.results import Estimate as Estimate
from evalcube.stages.analyze.labelled.scores import Version as Version
from evalcube.stages.analyze.render.charts import Picture as Picture
from evalcube.stages.analyze.verdict import Verdict as Verdict

# Types of arguments are at hand here for annotations, and are no results.
__all__ = [
    name
    for name, thing in sorted(globals().items())
    if str(getattr(thing, "__module__", "")).startswith("evalcube") and name[0].isupper()
]
