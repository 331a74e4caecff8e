# ruff: noqa: PLC0414 - the one list of the names, which is handed on to type checkers
"""Formulas on arrays and datasets: scores, rates, intervals, comparisons, pass@k and its family, tokens and cost."""

from evalcube import known_as as _known_as
from evalcube.stages.analyze.formulas import estimators as _estimators
from evalcube.stages.analyze.formulas import reasonscore as _v1
from evalcube.stages.analyze.formulas import reasonscore_v2 as _v2
from evalcube.stages.analyze.formulas.clustering import design_effect as design_effect
from evalcube.stages.analyze.formulas.compare.paired import holm as holm
from evalcube.stages.analyze.formulas.compare.paired import paired_difference as paired_difference
from evalcube.stages.analyze.formulas.compare.ranks import overlap_clusters as overlap_clusters
from evalcube.stages.analyze.formulas.compare.ranks import rank_intervals as rank_intervals
from evalcube.stages.analyze.formulas.compare.winrates import bradley_terry as bradley_terry
from evalcube.stages.analyze.formulas.compare.winrates import expected_wins as expected_wins
from evalcube.stages.analyze.formulas.compare.winrates import win_rates as win_rates
from evalcube.stages.analyze.formulas.forensics import pareto_front as pareto_front
from evalcube.stages.analyze.formulas.intervals import wilson as wilson
from evalcube.stages.analyze.formulas.intervals import wilson_bounds as wilson_bounds
from evalcube.stages.analyze.formulas.outcomes import spectrum as _spectrum
from evalcube.stages.analyze.formulas.outcomes.binary import auc_at_k as auc_at_k
from evalcube.stages.analyze.formulas.outcomes.binary import auc_at_k_ci as auc_at_k_ci
from evalcube.stages.analyze.formulas.outcomes.binary import g_pass_at_k as g_pass_at_k
from evalcube.stages.analyze.formulas.outcomes.binary import g_pass_at_k_ci as g_pass_at_k_ci
from evalcube.stages.analyze.formulas.outcomes.binary import pass_at_k as pass_at_k
from evalcube.stages.analyze.formulas.outcomes.binary import pass_at_k_ci as pass_at_k_ci
from evalcube.stages.analyze.formulas.outcomes.binary import pass_hat_k as pass_hat_k
from evalcube.stages.analyze.formulas.outcomes.binary import pass_hat_k_ci as pass_hat_k_ci
from evalcube.stages.analyze.formulas.outcomes.binary import unanimous_at_k as unanimous_at_k
from evalcube.stages.analyze.formulas.outcomes.binary import unanimous_at_k_ci as unanimous_at_k_ci
from evalcube.stages.analyze.formulas.outcomes.blends import geom_at_k as geom_at_k
from evalcube.stages.analyze.formulas.outcomes.blends import geom_at_k_ci as geom_at_k_ci
from evalcube.stages.analyze.formulas.outcomes.blends import geom_ds_at_k as geom_ds_at_k
from evalcube.stages.analyze.formulas.outcomes.blends import geom_ds_at_k_ci as geom_ds_at_k_ci
from evalcube.stages.analyze.formulas.outcomes.categorical import avg as avg
from evalcube.stages.analyze.formulas.outcomes.categorical import avg_ci as avg_ci
from evalcube.stages.analyze.formulas.outcomes.categorical import bayes as bayes
from evalcube.stages.analyze.formulas.outcomes.categorical import bayes_ci as bayes_ci
from evalcube.stages.analyze.formulas.outcomes.categorical import max_at_k as max_at_k
from evalcube.stages.analyze.formulas.outcomes.categorical import max_at_k_ci as max_at_k_ci
from evalcube.stages.analyze.formulas.outcomes.counts import Categories as Categories
from evalcube.stages.analyze.formulas.outcomes.counts import Successes as Successes
from evalcube.stages.analyze.formulas.outcomes.profiles import TailPassProfile as TailPassProfile
from evalcube.stages.analyze.formulas.outcomes.profiles import tailpass as tailpass
from evalcube.stages.analyze.formulas.outcomes.profiles import tailpass_empirical as tailpass_empirical
from evalcube.stages.analyze.formulas.outcomes.thresholds import g_pass_at_k_tau as g_pass_at_k_tau
from evalcube.stages.analyze.formulas.outcomes.thresholds import g_pass_at_k_tau_ci as g_pass_at_k_tau_ci
from evalcube.stages.analyze.formulas.outcomes.thresholds import maj_at_k as maj_at_k
from evalcube.stages.analyze.formulas.outcomes.thresholds import maj_at_k_ci as maj_at_k_ci
from evalcube.stages.analyze.formulas.outcomes.thresholds import mg_pass_at_k as mg_pass_at_k
from evalcube.stages.analyze.formulas.outcomes.thresholds import mg_pass_at_k_ci as mg_pass_at_k_ci
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
from evalcube.stages.analyze.labelled.selection import restrict as restrict
from evalcube.stages.analyze.verdict import verdict as verdict
from evalcube.stages.score.recount import recount as recount

estimate_success = _estimators.estimate
reason_score_v1, reason_score_v2 = _v1.tier_score, _v2.tier_score
geo_spectrum_at_k, geo_spectrum_at_k_ci = _spectrum.geo_spectrum_at_k, _spectrum.geo_spectrum_at_k_ci
geo_spectrum_star_at_k = _spectrum.geo_spectrum_star_at_k
geo_spectrum_star_at_k_ci = _spectrum.geo_spectrum_star_at_k_ci
threshold_spectrum_at_k = _spectrum.threshold_spectrum_at_k
threshold_spectrum_at_k_ci = _spectrum.threshold_spectrum_at_k_ci

__all__ = [name for name in dir() if not name.startswith("_")]

for _name in __all__:
    _formula = globals()[_name]
    _known_as(__name__, "" if _formula.__name__ in __all__ else _name)(_formula)  # some have several names
