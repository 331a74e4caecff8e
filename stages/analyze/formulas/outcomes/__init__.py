"""Pass@k and its family on outcome matrices (questions × samples); for cubes see `stages.analyze.labelled.outcomes`."""

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
