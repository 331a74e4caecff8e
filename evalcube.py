"""The public face: ``import evalcube as ec``. Names are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deploy.clusters import ExistingScheduler, LocalProcesses
    from deploy.errors import DeployError
    from flows.config import load_config
    from flows.config.precision import Precision
    from flows.config.views import View
    from flows.errors import ConfigError, EvalcubeError, SweepError, TemplateError
    from flows.estimate import estimate
    from flows.parts import OpenPart, Part, open_part
    from flows.report import open_cube, report
    from flows.statistics import compare, leaderboard, rank
    from flows.suites import load_suite
    from flows.summary import RunSummary
    from flows.sweep import run
    from flows.upsample import upsample
    from flows.verdict import cube_verdict
    from stages.analyze.aggregate import aggregate, points
    from stages.analyze.board import Estimate, Leaderboard
    from stages.analyze.compare.clusters import overlap_clusters
    from stages.analyze.compare.paired import compare_pairs, holm, mcnemar, paired_difference
    from stages.analyze.compare.ranks import rank_intervals
    from stages.analyze.compare.ratings import bradley_terry, expected_wins
    from stages.analyze.compare.repeated import design_effect, sign_flip
    from stages.analyze.compare.winrates import win_rates
    from stages.analyze.estimators import estimate as estimate_success
    from stages.analyze.forensics.cost import pareto_front
    from stages.analyze.forensics.labelled import compression_table, cost_table, hazard_table, pareto_rows
    from stages.analyze.intervals import wilson, wilson_bounds
    from stages.analyze.outcomes import (
        Categories,
        Successes,
        TailPassProfile,
        auc_at_k,
        auc_at_k_ci,
        avg,
        avg_ci,
        bayes,
        bayes_ci,
        cube_outcome_metrics,
        cube_outcomes,
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
        outcome_metrics,
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
    from stages.analyze.reasonscore import score_per_token
    from stages.analyze.reasonscore import tier_score as reason_score_v1
    from stages.analyze.reasonscore_v2 import tier_score as reason_score_v2
    from stages.analyze.restriction import restrict
    from stages.analyze.sequential import confidence_sequence
    from stages.analyze.stratified import stratified
    from stages.analyze.verdict import Verdict, verdict
    from stages.generate import TASKS, Task, TaskError, TaskParams, Trial
    from stages.infer.endpoint import InferenceError
    from stages.score.recount import recount
    from storage.errors import StorageError

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
    "Categories": "stages.analyze.outcomes",
    "ConfigError": "flows.errors",
    "DeployError": "deploy.errors",
    "Estimate": "stages.analyze.board",
    "EvalcubeError": "flows.errors",
    "ExistingScheduler": "deploy.clusters",
    "InferenceError": "stages.infer.endpoint",
    "Leaderboard": "stages.analyze.board",
    "LocalProcesses": "deploy.clusters",
    "OpenPart": "flows.parts",
    "Part": "flows.parts",
    "Precision": "flows.config.precision",
    "RunSummary": "flows.summary",
    "StorageError": "storage.errors",
    "Successes": "stages.analyze.outcomes",
    "SweepError": "flows.errors",
    "TailPassProfile": "stages.analyze.outcomes",
    "Task": "stages.generate",
    "TaskError": "stages.generate",
    "TaskParams": "stages.generate",
    "TemplateError": "flows.errors",
    "Trial": "stages.generate",
    "Verdict": "stages.analyze.verdict",
    "View": "flows.config.views",
    "aggregate": "stages.analyze.aggregate",
    "auc_at_k": "stages.analyze.outcomes",
    "auc_at_k_ci": "stages.analyze.outcomes",
    "avg": "stages.analyze.outcomes",
    "avg_ci": "stages.analyze.outcomes",
    "bayes": "stages.analyze.outcomes",
    "bayes_ci": "stages.analyze.outcomes",
    "bradley_terry": "stages.analyze.compare.ratings",
    "compare": "flows.statistics",
    "compare_pairs": "stages.analyze.compare.paired",
    "compression_table": "stages.analyze.forensics.labelled",
    "confidence_sequence": "stages.analyze.sequential",
    "cost_table": "stages.analyze.forensics.labelled",
    "cube_outcome_metrics": "stages.analyze.outcomes",
    "cube_outcomes": "stages.analyze.outcomes",
    "cube_verdict": "flows.verdict",
    "design_effect": "stages.analyze.compare.repeated",
    "estimate": "flows.estimate",
    "estimate_success": "stages.analyze.estimators:estimate",
    "expected_wins": "stages.analyze.compare.ratings",
    "g_pass_at_k": "stages.analyze.outcomes",
    "g_pass_at_k_ci": "stages.analyze.outcomes",
    "g_pass_at_k_tau": "stages.analyze.outcomes",
    "g_pass_at_k_tau_ci": "stages.analyze.outcomes",
    "geo_spectrum_at_k": "stages.analyze.outcomes",
    "geo_spectrum_at_k_ci": "stages.analyze.outcomes",
    "geo_spectrum_star_at_k": "stages.analyze.outcomes",
    "geo_spectrum_star_at_k_ci": "stages.analyze.outcomes",
    "geom_at_k": "stages.analyze.outcomes",
    "geom_at_k_ci": "stages.analyze.outcomes",
    "geom_ds_at_k": "stages.analyze.outcomes",
    "geom_ds_at_k_ci": "stages.analyze.outcomes",
    "hazard_table": "stages.analyze.forensics.labelled",
    "holm": "stages.analyze.compare.paired",
    "leaderboard": "flows.statistics",
    "load_config": "flows.config",
    "load_suite": "flows.suites",
    "maj_at_k": "stages.analyze.outcomes",
    "maj_at_k_ci": "stages.analyze.outcomes",
    "max_at_k": "stages.analyze.outcomes",
    "max_at_k_ci": "stages.analyze.outcomes",
    "mcnemar": "stages.analyze.compare.paired",
    "mg_pass_at_k": "stages.analyze.outcomes",
    "mg_pass_at_k_ci": "stages.analyze.outcomes",
    "open_cube": "flows.report",
    "open_part": "flows.parts",
    "outcome_metrics": "stages.analyze.outcomes",
    "overlap_clusters": "stages.analyze.compare.clusters",
    "paired_difference": "stages.analyze.compare.paired",
    "pareto_front": "stages.analyze.forensics.cost",
    "pareto_rows": "stages.analyze.forensics.labelled",
    "pass_at_k": "stages.analyze.outcomes",
    "pass_at_k_ci": "stages.analyze.outcomes",
    "pass_hat_k": "stages.analyze.outcomes",
    "pass_hat_k_ci": "stages.analyze.outcomes",
    "points": "stages.analyze.aggregate",
    "rank": "flows.statistics",
    "rank_intervals": "stages.analyze.compare.ranks",
    "reason_score_v1": "stages.analyze.reasonscore:tier_score",
    "reason_score_v2": "stages.analyze.reasonscore_v2:tier_score",
    "recount": "stages.score.recount",
    "report": "flows.report",
    "restrict": "stages.analyze.restriction",
    "run": "flows.sweep",
    "score_per_token": "stages.analyze.reasonscore",
    "sign_flip": "stages.analyze.compare.repeated",
    "stratified": "stages.analyze.stratified",
    "tailpass": "stages.analyze.outcomes",
    "tailpass_empirical": "stages.analyze.outcomes",
    "threshold_spectrum_at_k": "stages.analyze.outcomes",
    "threshold_spectrum_at_k_ci": "stages.analyze.outcomes",
    "unanimous_at_k": "stages.analyze.outcomes",
    "unanimous_at_k_ci": "stages.analyze.outcomes",
    "upsample": "flows.upsample",
    "verdict": "stages.analyze.verdict",
    "wilson": "stages.analyze.intervals",
    "wilson_bounds": "stages.analyze.intervals",
    "win_rates": "stages.analyze.compare.winrates",
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
