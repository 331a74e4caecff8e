"""The public names and where they come from: the one list, which type checkers, editors and `evalcube` itself read."""

from evalcube.deploy.clusters import ExistingScheduler as ExistingScheduler
from evalcube.deploy.clusters import LocalProcesses as LocalProcesses
from evalcube.deploy.clusters import ThisProcess as ThisProcess
from evalcube.deploy.errors import DeployError as DeployError
from evalcube.flows.config.load import load_config as load_config
from evalcube.flows.config.precision import Precision as Precision
from evalcube.flows.config.suites import load_suite as load_suite
from evalcube.flows.config.views import View as View
from evalcube.flows.cubes.report import open_cube as open_cube
from evalcube.flows.cubes.report import report as report
from evalcube.flows.cubes.selection import OpenPart as OpenPart
from evalcube.flows.cubes.selection import Part as Part
from evalcube.flows.cubes.selection import open_part as open_part
from evalcube.flows.cubes.statistics import compare as compare
from evalcube.flows.cubes.statistics import leaderboard as leaderboard
from evalcube.flows.cubes.statistics import rank as rank
from evalcube.flows.cubes.verdict import cube_verdict as cube_verdict
from evalcube.flows.errors import ConfigError as ConfigError
from evalcube.flows.errors import SweepError as SweepError
from evalcube.flows.errors import TemplateError as TemplateError
from evalcube.flows.plan.estimate import estimate as estimate
from evalcube.flows.run.summary import RunSummary as RunSummary
from evalcube.flows.run.sweep import run as run
from evalcube.flows.run.upsample import upsample as upsample
from evalcube.flows.trials.read import Trials as Trials
from evalcube.flows.trials.read import trials as trials
from evalcube.stages.analyze.formulas import estimators, reasonscore, reasonscore_v2
from evalcube.stages.analyze.formulas.compare.clusters import overlap_clusters as overlap_clusters
from evalcube.stages.analyze.formulas.compare.paired import compare_pairs as compare_pairs
from evalcube.stages.analyze.formulas.compare.paired import holm as holm
from evalcube.stages.analyze.formulas.compare.paired import mcnemar as mcnemar
from evalcube.stages.analyze.formulas.compare.paired import paired_difference as paired_difference
from evalcube.stages.analyze.formulas.compare.ranks import rank_intervals as rank_intervals
from evalcube.stages.analyze.formulas.compare.ratings import bradley_terry as bradley_terry
from evalcube.stages.analyze.formulas.compare.ratings import expected_wins as expected_wins
from evalcube.stages.analyze.formulas.compare.repeated import design_effect as design_effect
from evalcube.stages.analyze.formulas.compare.repeated import sign_flip as sign_flip
from evalcube.stages.analyze.formulas.compare.winrates import win_rates as win_rates
from evalcube.stages.analyze.formulas.forensics.cost import pareto_front as pareto_front
from evalcube.stages.analyze.formulas.intervals import wilson as wilson
from evalcube.stages.analyze.formulas.intervals import wilson_bounds as wilson_bounds
from evalcube.stages.analyze.formulas.outcomes import Categories as Categories
from evalcube.stages.analyze.formulas.outcomes import Successes as Successes
from evalcube.stages.analyze.formulas.outcomes import TailPassProfile as TailPassProfile
from evalcube.stages.analyze.formulas.outcomes import auc_at_k as auc_at_k
from evalcube.stages.analyze.formulas.outcomes import auc_at_k_ci as auc_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import avg as avg
from evalcube.stages.analyze.formulas.outcomes import avg_ci as avg_ci
from evalcube.stages.analyze.formulas.outcomes import bayes as bayes
from evalcube.stages.analyze.formulas.outcomes import bayes_ci as bayes_ci
from evalcube.stages.analyze.formulas.outcomes import g_pass_at_k as g_pass_at_k
from evalcube.stages.analyze.formulas.outcomes import g_pass_at_k_ci as g_pass_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import g_pass_at_k_tau as g_pass_at_k_tau
from evalcube.stages.analyze.formulas.outcomes import g_pass_at_k_tau_ci as g_pass_at_k_tau_ci
from evalcube.stages.analyze.formulas.outcomes import geo_spectrum_at_k as geo_spectrum_at_k
from evalcube.stages.analyze.formulas.outcomes import geo_spectrum_at_k_ci as geo_spectrum_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import geo_spectrum_star_at_k as geo_spectrum_star_at_k
from evalcube.stages.analyze.formulas.outcomes import geo_spectrum_star_at_k_ci as geo_spectrum_star_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import geom_at_k as geom_at_k
from evalcube.stages.analyze.formulas.outcomes import geom_at_k_ci as geom_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import geom_ds_at_k as geom_ds_at_k
from evalcube.stages.analyze.formulas.outcomes import geom_ds_at_k_ci as geom_ds_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import maj_at_k as maj_at_k
from evalcube.stages.analyze.formulas.outcomes import maj_at_k_ci as maj_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import max_at_k as max_at_k
from evalcube.stages.analyze.formulas.outcomes import max_at_k_ci as max_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import mg_pass_at_k as mg_pass_at_k
from evalcube.stages.analyze.formulas.outcomes import mg_pass_at_k_ci as mg_pass_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import pass_at_k as pass_at_k
from evalcube.stages.analyze.formulas.outcomes import pass_at_k_ci as pass_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import pass_hat_k as pass_hat_k
from evalcube.stages.analyze.formulas.outcomes import pass_hat_k_ci as pass_hat_k_ci
from evalcube.stages.analyze.formulas.outcomes import tailpass as tailpass
from evalcube.stages.analyze.formulas.outcomes import tailpass_empirical as tailpass_empirical
from evalcube.stages.analyze.formulas.outcomes import threshold_spectrum_at_k as threshold_spectrum_at_k
from evalcube.stages.analyze.formulas.outcomes import threshold_spectrum_at_k_ci as threshold_spectrum_at_k_ci
from evalcube.stages.analyze.formulas.outcomes import unanimous_at_k as unanimous_at_k
from evalcube.stages.analyze.formulas.outcomes import unanimous_at_k_ci as unanimous_at_k_ci
from evalcube.stages.analyze.formulas.reasonscore import score_per_token as score_per_token
from evalcube.stages.analyze.formulas.sequential import confidence_sequence as confidence_sequence
from evalcube.stages.analyze.formulas.stratified import stratified as stratified
from evalcube.stages.analyze.labelled.aggregate import aggregate as aggregate
from evalcube.stages.analyze.labelled.aggregate import points as points
from evalcube.stages.analyze.labelled.forensics import compression_table as compression_table
from evalcube.stages.analyze.labelled.forensics import cost_table as cost_table
from evalcube.stages.analyze.labelled.forensics import hazard_table as hazard_table
from evalcube.stages.analyze.labelled.forensics import pareto_rows as pareto_rows
from evalcube.stages.analyze.labelled.outcomes import cube_outcome_metrics as cube_outcome_metrics
from evalcube.stages.analyze.labelled.outcomes import cube_outcomes as cube_outcomes
from evalcube.stages.analyze.labelled.outcomes import outcome_metrics as outcome_metrics
from evalcube.stages.analyze.labelled.restriction import restrict as restrict
from evalcube.stages.analyze.labelled.results import Estimate as Estimate
from evalcube.stages.analyze.labelled.results import Leaderboard as Leaderboard
from evalcube.stages.analyze.verdict import Verdict as Verdict
from evalcube.stages.analyze.verdict import verdict as verdict
from evalcube.stages.generate import TASKS as TASKS
from evalcube.stages.generate import Task as Task
from evalcube.stages.generate import TaskError as TaskError
from evalcube.stages.generate import TaskParams as TaskParams
from evalcube.stages.generate import Trial as Trial
from evalcube.stages.generate.contract import check_task as check_task
from evalcube.stages.generate.dataset.matching import GradingContext as GradingContext
from evalcube.stages.generate.stream import Stream as Stream
from evalcube.stages.infer.endpoint import InferenceError as InferenceError
from evalcube.stages.process.assertions import model
from evalcube.stages.score.recount import recount as recount
from evalcube.storage.errors import StorageError as StorageError

# A stub hands on what it imports under the same name; these have another name at home.
AssertionContext = model.Context
estimate_success = estimators.estimate
reason_score_v1 = reasonscore.tier_score
reason_score_v2 = reasonscore_v2.tier_score

__version__: str

class EvalcubeError(Exception):
    message: str
    remedy: str
    def __init__(self, message: str, remedy: str = "") -> None: ...
