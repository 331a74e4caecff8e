"""The public face: ``import evalcube as ec``. Names are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deploy.clusters import ExistingScheduler, LocalProcesses
    from deploy.errors import DeployError
    from flows.config import load_config
    from flows.errors import ConfigError, EvalcubeError, SweepError, TemplateError
    from flows.estimate import estimate
    from flows.report import leaderboard, open_cube, report
    from flows.summary import RunSummary
    from flows.sweep import run
    from stages.analyze.intervals import wilson
    from stages.generate import TASKS, Task, TaskError, TaskParams, Trial
    from stages.infer.endpoint import InferenceError
    from storage.errors import StorageError

__all__ = [
    "TASKS",
    "ConfigError",
    "DeployError",
    "EvalcubeError",
    "ExistingScheduler",
    "InferenceError",
    "LocalProcesses",
    "RunSummary",
    "StorageError",
    "SweepError",
    "Task",
    "TaskError",
    "TaskParams",
    "TemplateError",
    "Trial",
    "estimate",
    "leaderboard",
    "load_config",
    "open_cube",
    "report",
    "run",
    "wilson",
]

_HOMES = {
    "TASKS": "stages.generate",
    "ConfigError": "flows.errors",
    "DeployError": "deploy.errors",
    "EvalcubeError": "flows.errors",
    "ExistingScheduler": "deploy.clusters",
    "InferenceError": "stages.infer.endpoint",
    "LocalProcesses": "deploy.clusters",
    "RunSummary": "flows.summary",
    "StorageError": "storage.errors",
    "SweepError": "flows.errors",
    "Task": "stages.generate",
    "TaskError": "stages.generate",
    "TaskParams": "stages.generate",
    "TemplateError": "flows.errors",
    "Trial": "stages.generate",
    "estimate": "flows.estimate",
    "leaderboard": "flows.report",
    "load_config": "flows.config",
    "open_cube": "flows.report",
    "report": "flows.report",
    "run": "flows.sweep",
    "wilson": "stages.analyze.intervals",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOMES:
        raise AttributeError(f"module 'evalcube' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
