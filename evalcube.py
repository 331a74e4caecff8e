"""The public face: ``import evalcube as ec``. Names are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deploy.clusters import ExistingScheduler, LocalProcesses
    from deploy.errors import DeployError
    from flows.config import load_config
    from flows.config.precision import Precision
    from flows.config.suites import load_suite
    from flows.config.views import View
    from flows.cubes.report import open_cube, report
    from flows.cubes.selection import OpenPart, Part, open_part
    from flows.cubes.statistics import compare, leaderboard, rank
    from flows.cubes.verdict import cube_verdict
    from flows.errors import ConfigError, SweepError, TemplateError
    from flows.plan.estimate import estimate
    from flows.run.summary import RunSummary
    from flows.run.sweep import run
    from flows.run.upsample import upsample
    from stages.analyze.formulas.compare.clusters import overlap_clusters
    from stages.analyze.formulas.compare.paired import compare_pairs, holm, mcnemar, paired_difference
    from stages.analyze.formulas.compare.ranks import rank_intervals
    from stages.analyze.formulas.compare.ratings import bradley_terry, expected_wins
    from stages.analyze.formulas.compare.repeated import design_effect, sign_flip
    from stages.analyze.formulas.compare.winrates import win_rates
    from stages.analyze.formulas.estimators import estimate as estimate_success
    from stages.analyze.formulas.forensics.cost import pareto_front
    from stages.analyze.formulas.intervals import wilson, wilson_bounds
    from stages.analyze.formulas.outcomes import (
        Categories,
        Successes,
        TailPassProfile,
        auc_at_k,
        auc_at_k_ci,
        avg,
        avg_ci,
        bayes,
        bayes_ci,
        g_pass_at_k,
        g_pass_at_k_ci,
        g_pass_at_k_tau,
        g_pass_at_k_tau_ci,
        geo_spectrum_at_k,
        geo_spectrum_at_k_ci,
        geo_spectrum_star_at_k,
        geo_spectrum_star_at_k_ci,
        geom_at_k,
        geom_at_k_ci,
        geom_ds_at_k,
        geom_ds_at_k_ci,
        maj_at_k,
        maj_at_k_ci,
        max_at_k,
        max_at_k_ci,
        mg_pass_at_k,
        mg_pass_at_k_ci,
        pass_at_k,
        pass_at_k_ci,
        pass_hat_k,
        pass_hat_k_ci,
        tailpass,
        tailpass_empirical,
        threshold_spectrum_at_k,
        threshold_spectrum_at_k_ci,
        unanimous_at_k,
        unanimous_at_k_ci,
    )
    from stages.analyze.formulas.reasonscore import score_per_token
    from stages.analyze.formulas.reasonscore import tier_score as reason_score_v1
    from stages.analyze.formulas.reasonscore_v2 import tier_score as reason_score_v2
    from stages.analyze.formulas.sequential import confidence_sequence
    from stages.analyze.formulas.stratified import stratified
    from stages.analyze.labelled.aggregate import aggregate, points
    from stages.analyze.labelled.forensics import compression_table, cost_table, hazard_table, pareto_rows
    from stages.analyze.labelled.outcomes import cube_outcome_metrics, cube_outcomes, outcome_metrics
    from stages.analyze.labelled.restriction import restrict
    from stages.analyze.labelled.results import Estimate, Leaderboard
    from stages.analyze.verdict import Verdict, verdict
    from stages.generate import TASKS, Task, TaskError, TaskParams, Trial
    from stages.infer.endpoint import InferenceError
    from stages.score.recount import recount
    from storage.errors import StorageError


class EvalcubeError(Exception):
    """Base of all errors that a user can mend: what is wrong, and what to do about it.

    ::

        EvalcubeError
        ├── ConfigError       a config with problems, all of them at once
        ├── TemplateError     a prompt template that does not compile or renders no messages
        ├── SweepError        a sweep that cannot run, or a cube that cannot be read, as asked
        ├── StorageError      a cube or cache that cannot be opened, read or written; see `storage.errors`
        ├── DeployError       a cluster or model server that did not start, answer or stop; see `deploy.errors`
        ├── TaskError         a task, its params or a plugin; also a ValueError
        └── InferenceError    an endpoint that cannot be asked as configured

    Parameters
    ----------
    message
        The rule that was broken, with the offending value, and where.
    remedy
        What to do about it; may be empty.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


__all__ = [
    "TASKS",
    "Categories",
    "ConfigError",
    "DeployError",
    "Estimate",
    "EvalcubeError",
    "ExistingScheduler",
    "InferenceError",
    "Leaderboard",
    "LocalProcesses",
    "OpenPart",
    "Part",
    "Precision",
    "RunSummary",
    "StorageError",
    "Successes",
    "SweepError",
    "TailPassProfile",
    "Task",
    "TaskError",
    "TaskParams",
    "TemplateError",
    "Trial",
    "Verdict",
    "View",
    "aggregate",
    "auc_at_k",
    "auc_at_k_ci",
    "avg",
    "avg_ci",
    "bayes",
    "bayes_ci",
    "bradley_terry",
    "compare",
    "compare_pairs",
    "compression_table",
    "confidence_sequence",
    "cost_table",
    "cube_outcome_metrics",
    "cube_outcomes",
    "cube_verdict",
    "design_effect",
    "estimate",
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
    "leaderboard",
    "load_config",
    "load_suite",
    "maj_at_k",
    "maj_at_k_ci",
    "max_at_k",
    "max_at_k_ci",
    "mcnemar",
    "mg_pass_at_k",
    "mg_pass_at_k_ci",
    "open_cube",
    "open_part",
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
    "rank",
    "rank_intervals",
    "reason_score_v1",
    "reason_score_v2",
    "recount",
    "report",
    "restrict",
    "run",
    "score_per_token",
    "sign_flip",
    "stratified",
    "tailpass",
    "tailpass_empirical",
    "threshold_spectrum_at_k",
    "threshold_spectrum_at_k_ci",
    "unanimous_at_k",
    "unanimous_at_k_ci",
    "upsample",
    "verdict",
    "wilson",
    "wilson_bounds",
    "win_rates",
]

_HOMES = {
    "TASKS": "stages.generate",
    "Categories": "stages.analyze.formulas.outcomes",
    "ConfigError": "flows.errors",
    "DeployError": "deploy.errors",
    "Estimate": "stages.analyze.labelled.results",
    "ExistingScheduler": "deploy.clusters",
    "InferenceError": "stages.infer.endpoint",
    "Leaderboard": "stages.analyze.labelled.results",
    "LocalProcesses": "deploy.clusters",
    "OpenPart": "flows.cubes.selection",
    "Part": "flows.cubes.selection",
    "Precision": "flows.config.precision",
    "RunSummary": "flows.run.summary",
    "StorageError": "storage.errors",
    "Successes": "stages.analyze.formulas.outcomes",
    "SweepError": "flows.errors",
    "TailPassProfile": "stages.analyze.formulas.outcomes",
    "Task": "stages.generate",
    "TaskError": "stages.generate",
    "TaskParams": "stages.generate",
    "TemplateError": "flows.errors",
    "Trial": "stages.generate",
    "Verdict": "stages.analyze.verdict",
    "View": "flows.config.views",
    "aggregate": "stages.analyze.labelled.aggregate",
    "auc_at_k": "stages.analyze.formulas.outcomes",
    "auc_at_k_ci": "stages.analyze.formulas.outcomes",
    "avg": "stages.analyze.formulas.outcomes",
    "avg_ci": "stages.analyze.formulas.outcomes",
    "bayes": "stages.analyze.formulas.outcomes",
    "bayes_ci": "stages.analyze.formulas.outcomes",
    "bradley_terry": "stages.analyze.formulas.compare.ratings",
    "compare": "flows.cubes.statistics",
    "compare_pairs": "stages.analyze.formulas.compare.paired",
    "compression_table": "stages.analyze.labelled.forensics",
    "confidence_sequence": "stages.analyze.formulas.sequential",
    "cost_table": "stages.analyze.labelled.forensics",
    "cube_outcome_metrics": "stages.analyze.labelled.outcomes",
    "cube_outcomes": "stages.analyze.labelled.outcomes",
    "cube_verdict": "flows.cubes.verdict",
    "design_effect": "stages.analyze.formulas.compare.repeated",
    "estimate": "flows.plan.estimate",
    "estimate_success": "stages.analyze.formulas.estimators:estimate",
    "expected_wins": "stages.analyze.formulas.compare.ratings",
    "g_pass_at_k": "stages.analyze.formulas.outcomes",
    "g_pass_at_k_ci": "stages.analyze.formulas.outcomes",
    "g_pass_at_k_tau": "stages.analyze.formulas.outcomes",
    "g_pass_at_k_tau_ci": "stages.analyze.formulas.outcomes",
    "geo_spectrum_at_k": "stages.analyze.formulas.outcomes",
    "geo_spectrum_at_k_ci": "stages.analyze.formulas.outcomes",
    "geo_spectrum_star_at_k": "stages.analyze.formulas.outcomes",
    "geo_spectrum_star_at_k_ci": "stages.analyze.formulas.outcomes",
    "geom_at_k": "stages.analyze.formulas.outcomes",
    "geom_at_k_ci": "stages.analyze.formulas.outcomes",
    "geom_ds_at_k": "stages.analyze.formulas.outcomes",
    "geom_ds_at_k_ci": "stages.analyze.formulas.outcomes",
    "hazard_table": "stages.analyze.labelled.forensics",
    "holm": "stages.analyze.formulas.compare.paired",
    "leaderboard": "flows.cubes.statistics",
    "load_config": "flows.config",
    "load_suite": "flows.config.suites",
    "maj_at_k": "stages.analyze.formulas.outcomes",
    "maj_at_k_ci": "stages.analyze.formulas.outcomes",
    "max_at_k": "stages.analyze.formulas.outcomes",
    "max_at_k_ci": "stages.analyze.formulas.outcomes",
    "mcnemar": "stages.analyze.formulas.compare.paired",
    "mg_pass_at_k": "stages.analyze.formulas.outcomes",
    "mg_pass_at_k_ci": "stages.analyze.formulas.outcomes",
    "open_cube": "flows.cubes.report",
    "open_part": "flows.cubes.selection",
    "outcome_metrics": "stages.analyze.labelled.outcomes",
    "overlap_clusters": "stages.analyze.formulas.compare.clusters",
    "paired_difference": "stages.analyze.formulas.compare.paired",
    "pareto_front": "stages.analyze.formulas.forensics.cost",
    "pareto_rows": "stages.analyze.labelled.forensics",
    "pass_at_k": "stages.analyze.formulas.outcomes",
    "pass_at_k_ci": "stages.analyze.formulas.outcomes",
    "pass_hat_k": "stages.analyze.formulas.outcomes",
    "pass_hat_k_ci": "stages.analyze.formulas.outcomes",
    "points": "stages.analyze.labelled.aggregate",
    "rank": "flows.cubes.statistics",
    "rank_intervals": "stages.analyze.formulas.compare.ranks",
    "reason_score_v1": "stages.analyze.formulas.reasonscore:tier_score",
    "reason_score_v2": "stages.analyze.formulas.reasonscore_v2:tier_score",
    "recount": "stages.score.recount",
    "report": "flows.cubes.report",
    "restrict": "stages.analyze.labelled.restriction",
    "run": "flows.run.sweep",
    "score_per_token": "stages.analyze.formulas.reasonscore",
    "sign_flip": "stages.analyze.formulas.compare.repeated",
    "stratified": "stages.analyze.formulas.stratified",
    "tailpass": "stages.analyze.formulas.outcomes",
    "tailpass_empirical": "stages.analyze.formulas.outcomes",
    "threshold_spectrum_at_k": "stages.analyze.formulas.outcomes",
    "threshold_spectrum_at_k_ci": "stages.analyze.formulas.outcomes",
    "unanimous_at_k": "stages.analyze.formulas.outcomes",
    "unanimous_at_k_ci": "stages.analyze.formulas.outcomes",
    "upsample": "flows.run.upsample",
    "verdict": "stages.analyze.verdict",
    "wilson": "stages.analyze.formulas.intervals",
    "wilson_bounds": "stages.analyze.formulas.intervals",
    "win_rates": "stages.analyze.formulas.compare.winrates",
}
"""Name -> the module that has it, and after a colon its name there if that is another."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOMES:
        raise AttributeError(f"module 'evalcube' has no attribute {name!r}")
    from importlib import import_module

    module, _, original = _HOMES[name].partition(":")
    return getattr(import_module(module), original or name)


def __dir__() -> list[str]:
    return sorted(__all__)
