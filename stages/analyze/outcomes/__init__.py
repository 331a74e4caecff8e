"""Outcome matrices (questions × samples) -> Pass@k and its family, with intervals; see `labelled` for cubes."""

from stages.analyze.outcomes.bayesian import avg, avg_ci, bayes, bayes_ci
from stages.analyze.outcomes.binary import (
    auc_at_k,
    auc_at_k_ci,
    g_pass_at_k,
    g_pass_at_k_ci,
    g_pass_at_k_tau,
    g_pass_at_k_tau_ci,
    mg_pass_at_k,
    mg_pass_at_k_ci,
    pass_at_k,
    pass_at_k_ci,
    pass_hat_k,
    pass_hat_k_ci,
    unanimous_at_k,
    unanimous_at_k_ci,
)
from stages.analyze.outcomes.counts import Categories, Successes
from stages.analyze.outcomes.labelled import cube_outcome_metrics, cube_outcomes, outcome_metrics
from stages.analyze.outcomes.majority import maj_at_k, maj_at_k_ci
from stages.analyze.outcomes.maximum import max_at_k, max_at_k_ci
from stages.analyze.outcomes.profiles import TailPassProfile, tailpass, tailpass_empirical
from stages.analyze.outcomes.spectrum import (
    geo_spectrum_at_k,
    geo_spectrum_at_k_ci,
    geo_spectrum_star_at_k,
    geo_spectrum_star_at_k_ci,
    geom_at_k,
    geom_at_k_ci,
    geom_ds_at_k,
    geom_ds_at_k_ci,
    threshold_spectrum_at_k,
    threshold_spectrum_at_k_ci,
)

__all__ = [
    "Categories",
    "Successes",
    "TailPassProfile",
    "auc_at_k",
    "auc_at_k_ci",
    "avg",
    "avg_ci",
    "bayes",
    "bayes_ci",
    "cube_outcome_metrics",
    "cube_outcomes",
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
    "maj_at_k",
    "maj_at_k_ci",
    "max_at_k",
    "max_at_k_ci",
    "mg_pass_at_k",
    "mg_pass_at_k_ci",
    "outcome_metrics",
    "pass_at_k",
    "pass_at_k_ci",
    "pass_hat_k",
    "pass_hat_k_ci",
    "tailpass",
    "tailpass_empirical",
    "threshold_spectrum_at_k",
    "threshold_spectrum_at_k_ci",
    "unanimous_at_k",
    "unanimous_at_k_ci",
]
