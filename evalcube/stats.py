"""Formulas on arrays and datasets: scores, rates, intervals, comparisons, pass@k and its family, tokens and cost."""

from __future__ import annotations

from evalcube import known_as
from evalcube.stages.analyze.formulas.compare.paired import compare_pairs, holm, mcnemar, paired_difference
from evalcube.stages.analyze.formulas.compare.ranks import overlap_clusters, rank_intervals
from evalcube.stages.analyze.formulas.compare.repeated import design_effect, sign_flip
from evalcube.stages.analyze.formulas.compare.winrates import bradley_terry, expected_wins, win_rates
from evalcube.stages.analyze.formulas.estimators import estimate as estimate_success
from evalcube.stages.analyze.formulas.forensics import pareto_front
from evalcube.stages.analyze.formulas.intervals import wilson, wilson_bounds
from evalcube.stages.analyze.formulas.outcomes.binary import (
    auc_at_k,
    auc_at_k_ci,
    g_pass_at_k,
    g_pass_at_k_ci,
    pass_at_k,
    pass_at_k_ci,
    pass_hat_k,
    pass_hat_k_ci,
    unanimous_at_k,
    unanimous_at_k_ci,
)
from evalcube.stages.analyze.formulas.outcomes.blends import (
    geom_at_k,
    geom_at_k_ci,
    geom_ds_at_k,
    geom_ds_at_k_ci,
)
from evalcube.stages.analyze.formulas.outcomes.categorical import (
    avg,
    avg_ci,
    bayes,
    bayes_ci,
    max_at_k,
    max_at_k_ci,
)
from evalcube.stages.analyze.formulas.outcomes.counts import Categories, Successes
from evalcube.stages.analyze.formulas.outcomes.profiles import TailPassProfile, tailpass, tailpass_empirical
from evalcube.stages.analyze.formulas.outcomes.spectrum import (
    geo_spectrum_at_k,
    geo_spectrum_at_k_ci,
    geo_spectrum_star_at_k,
    geo_spectrum_star_at_k_ci,
    threshold_spectrum_at_k,
    threshold_spectrum_at_k_ci,
)
from evalcube.stages.analyze.formulas.outcomes.thresholds import (
    g_pass_at_k_tau,
    g_pass_at_k_tau_ci,
    maj_at_k,
    maj_at_k_ci,
    mg_pass_at_k,
    mg_pass_at_k_ci,
)
from evalcube.stages.analyze.formulas.reasonscore import score_per_token
from evalcube.stages.analyze.formulas.reasonscore import tier_score as reason_score_v1
from evalcube.stages.analyze.formulas.reasonscore_v2 import tier_score as reason_score_v2
from evalcube.stages.analyze.formulas.sequential import confidence_sequence
from evalcube.stages.analyze.formulas.stratified import stratified
from evalcube.stages.analyze.labelled.aggregate import aggregate, points
from evalcube.stages.analyze.labelled.forensics import (
    compression_table,
    cost_table,
    hazard_table,
    pareto_rows,
)
from evalcube.stages.analyze.labelled.outcomes import cube_outcome_metrics, cube_outcomes, outcome_metrics
from evalcube.stages.analyze.labelled.selection import restrict
from evalcube.stages.analyze.verdict import verdict
from evalcube.stages.score.recount import recount

__all__ = [
    "Categories",
    "Successes",
    "TailPassProfile",
    "aggregate",
    "auc_at_k",
    "auc_at_k_ci",
    "avg",
    "avg_ci",
    "bayes",
    "bayes_ci",
    "bradley_terry",
    "compare_pairs",
    "compression_table",
    "confidence_sequence",
    "cost_table",
    "cube_outcome_metrics",
    "cube_outcomes",
    "design_effect",
    "estimate_success",
    "expected_wins",
    "g_pass_at_k",
    "g_pass_at_k_ci",
    "g_pass_at_k_tau",
    "g_pass_at_k_tau_ci",
    "geo_spectrum_at_k",
    "geo_spectrum_at_k_ci",
    "geo_spectrum_star_at_k",
    "geo_spectrum_star_at_k_ci",
    "geom_at_k",
    "geom_at_k_ci",
    "geom_ds_at_k",
    "geom_ds_at_k_ci",
    "hazard_table",
    "holm",
    "maj_at_k",
    "maj_at_k_ci",
    "max_at_k",
    "max_at_k_ci",
    "mcnemar",
    "mg_pass_at_k",
    "mg_pass_at_k_ci",
    "outcome_metrics",
    "overlap_clusters",
    "paired_difference",
    "pareto_front",
    "pareto_rows",
    "pass_at_k",
    "pass_at_k_ci",
    "pass_hat_k",
    "pass_hat_k_ci",
    "points",
    "rank_intervals",
    "reason_score_v1",
    "reason_score_v2",
    "recount",
    "restrict",
    "score_per_token",
    "sign_flip",
    "stratified",
    "tailpass",
    "tailpass_empirical",
    "threshold_spectrum_at_k",
    "threshold_spectrum_at_k_ci",
    "unanimous_at_k",
    "unanimous_at_k_ci",
    "verdict",
    "wilson",
    "wilson_bounds",
    "win_rates",
]

for _name in __all__:
    _formula = globals()[_name]
    known_as(__name__, "" if _formula.__name__ in __all__ else _name)(_formula)  # some have several names
