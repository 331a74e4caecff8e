"""The public names and where they come from: the one list, which type checkers, editors and `evalcube` itself read."""

from deploy.clusters import ExistingScheduler as ExistingScheduler
from deploy.clusters import LocalProcesses as LocalProcesses
from deploy.clusters import ThisProcess as ThisProcess
from deploy.errors import DeployError as DeployError
from flows.config.load import load_config as load_config
from flows.config.precision import Precision as Precision
from flows.config.suites import load_suite as load_suite
from flows.config.views import View as View
from flows.cubes.report import open_cube as open_cube
from flows.cubes.report import report as report
from flows.cubes.selection import OpenPart as OpenPart
from flows.cubes.selection import Part as Part
from flows.cubes.selection import open_part as open_part
from flows.cubes.statistics import compare as compare
from flows.cubes.statistics import leaderboard as leaderboard
from flows.cubes.statistics import rank as rank
from flows.cubes.verdict import cube_verdict as cube_verdict
from flows.errors import ConfigError as ConfigError
from flows.errors import SweepError as SweepError
from flows.errors import TemplateError as TemplateError
from flows.plan.estimate import estimate as estimate
from flows.run.summary import RunSummary as RunSummary
from flows.run.sweep import run as run
from flows.run.upsample import upsample as upsample
from flows.trials.read import Trials as Trials
from flows.trials.read import trials as trials
from stages.analyze.formulas import estimators, reasonscore, reasonscore_v2
from stages.analyze.formulas.compare.clusters import overlap_clusters as overlap_clusters
from stages.analyze.formulas.compare.paired import compare_pairs as compare_pairs
from stages.analyze.formulas.compare.paired import holm as holm
from stages.analyze.formulas.compare.paired import mcnemar as mcnemar
from stages.analyze.formulas.compare.paired import paired_difference as paired_difference
from stages.analyze.formulas.compare.ranks import rank_intervals as rank_intervals
from stages.analyze.formulas.compare.ratings import bradley_terry as bradley_terry
from stages.analyze.formulas.compare.ratings import expected_wins as expected_wins
from stages.analyze.formulas.compare.repeated import design_effect as design_effect
from stages.analyze.formulas.compare.repeated import sign_flip as sign_flip
from stages.analyze.formulas.compare.winrates import win_rates as win_rates
from stages.analyze.formulas.forensics.cost import pareto_front as pareto_front
from stages.analyze.formulas.intervals import wilson as wilson
from stages.analyze.formulas.intervals import wilson_bounds as wilson_bounds
from stages.analyze.formulas.outcomes import Categories as Categories
from stages.analyze.formulas.outcomes import Successes as Successes
from stages.analyze.formulas.outcomes import TailPassProfile as TailPassProfile
from stages.analyze.formulas.outcomes import auc_at_k as auc_at_k
from stages.analyze.formulas.outcomes import auc_at_k_ci as auc_at_k_ci
from stages.analyze.formulas.outcomes import avg as avg
from stages.analyze.formulas.outcomes import avg_ci as avg_ci
from stages.analyze.formulas.outcomes import bayes as bayes
from stages.analyze.formulas.outcomes import bayes_ci as bayes_ci
from stages.analyze.formulas.outcomes import g_pass_at_k as g_pass_at_k
from stages.analyze.formulas.outcomes import g_pass_at_k_ci as g_pass_at_k_ci
from stages.analyze.formulas.outcomes import g_pass_at_k_tau as g_pass_at_k_tau
from stages.analyze.formulas.outcomes import g_pass_at_k_tau_ci as g_pass_at_k_tau_ci
from stages.analyze.formulas.outcomes import geo_spectrum_at_k as geo_spectrum_at_k
from stages.analyze.formulas.outcomes import geo_spectrum_at_k_ci as geo_spectrum_at_k_ci
from stages.analyze.formulas.outcomes import geo_spectrum_star_at_k as geo_spectrum_star_at_k
from stages.analyze.formulas.outcomes import geo_spectrum_star_at_k_ci as geo_spectrum_star_at_k_ci
from stages.analyze.formulas.outcomes import geom_at_k as geom_at_k
from stages.analyze.formulas.outcomes import geom_at_k_ci as geom_at_k_ci
from stages.analyze.formulas.outcomes import geom_ds_at_k as geom_ds_at_k
from stages.analyze.formulas.outcomes import geom_ds_at_k_ci as geom_ds_at_k_ci
from stages.analyze.formulas.outcomes import maj_at_k as maj_at_k
from stages.analyze.formulas.outcomes import maj_at_k_ci as maj_at_k_ci
from stages.analyze.formulas.outcomes import max_at_k as max_at_k
from stages.analyze.formulas.outcomes import max_at_k_ci as max_at_k_ci
from stages.analyze.formulas.outcomes import mg_pass_at_k as mg_pass_at_k
from stages.analyze.formulas.outcomes import mg_pass_at_k_ci as mg_pass_at_k_ci
from stages.analyze.formulas.outcomes import pass_at_k as pass_at_k
from stages.analyze.formulas.outcomes import pass_at_k_ci as pass_at_k_ci
from stages.analyze.formulas.outcomes import pass_hat_k as pass_hat_k
from stages.analyze.formulas.outcomes import pass_hat_k_ci as pass_hat_k_ci
from stages.analyze.formulas.outcomes import tailpass as tailpass
from stages.analyze.formulas.outcomes import tailpass_empirical as tailpass_empirical
from stages.analyze.formulas.outcomes import threshold_spectrum_at_k as threshold_spectrum_at_k
from stages.analyze.formulas.outcomes import threshold_spectrum_at_k_ci as threshold_spectrum_at_k_ci
from stages.analyze.formulas.outcomes import unanimous_at_k as unanimous_at_k
from stages.analyze.formulas.outcomes import unanimous_at_k_ci as unanimous_at_k_ci
from stages.analyze.formulas.reasonscore import score_per_token as score_per_token
from stages.analyze.formulas.sequential import confidence_sequence as confidence_sequence
from stages.analyze.formulas.stratified import stratified as stratified
from stages.analyze.labelled.aggregate import aggregate as aggregate
from stages.analyze.labelled.aggregate import points as points
from stages.analyze.labelled.forensics import compression_table as compression_table
from stages.analyze.labelled.forensics import cost_table as cost_table
from stages.analyze.labelled.forensics import hazard_table as hazard_table
from stages.analyze.labelled.forensics import pareto_rows as pareto_rows
from stages.analyze.labelled.outcomes import cube_outcome_metrics as cube_outcome_metrics
from stages.analyze.labelled.outcomes import cube_outcomes as cube_outcomes
from stages.analyze.labelled.outcomes import outcome_metrics as outcome_metrics
from stages.analyze.labelled.restriction import restrict as restrict
from stages.analyze.labelled.results import Estimate as Estimate
from stages.analyze.labelled.results import Leaderboard as Leaderboard
from stages.analyze.verdict import Verdict as Verdict
from stages.analyze.verdict import verdict as verdict
from stages.generate import TASKS as TASKS
from stages.generate import Task as Task
from stages.generate import TaskError as TaskError
from stages.generate import TaskParams as TaskParams
from stages.generate import Trial as Trial
from stages.generate.contract import check_task as check_task
from stages.generate.dataset.matching import GradingContext as GradingContext
from stages.generate.stream import Stream as Stream
from stages.infer.endpoint import InferenceError as InferenceError
from stages.process.assertions import model
from stages.score.recount import recount as recount
from storage.errors import StorageError as StorageError

# A stub hands on what it imports under the same name; these have another name at home.
AssertionContext = model.Context
estimate_success = estimators.estimate
reason_score_v1 = reasonscore.tier_score
reason_score_v2 = reasonscore_v2.tier_score

class EvalcubeError(Exception):
    message: str
    remedy: str
    def __init__(self, message: str, remedy: str = "") -> None: ...
