"""What a sweep consists of: the sections of a config, each a class whose fields are the section's keys."""

from __future__ import annotations

from evalcube.flows.config.cluster import ChosenWorkers, ClusterSection, SlurmSection
from evalcube.flows.config.judges import CompositeConfig, JudgeConfig, LayerWeights, Sampler
from evalcube.flows.config.limits import BatchSetting, ConnectionSearch, Limits, Precision, Spend
from evalcube.flows.config.manifold import AxisRange, AxisWindow, Manifold, TaskConfig
from evalcube.flows.config.models import EvaluationRule, Model, Prices, SimulatedModel, Sweep
from evalcube.flows.config.serving import Serve
from evalcube.flows.config.views import Policy, PolicyRule, ViewConfig

__all__ = [
    "AxisRange",
    "AxisWindow",
    "BatchSetting",
    "ChosenWorkers",
    "ClusterSection",
    "CompositeConfig",
    "ConnectionSearch",
    "EvaluationRule",
    "JudgeConfig",
    "LayerWeights",
    "Limits",
    "Manifold",
    "Model",
    "Policy",
    "PolicyRule",
    "Precision",
    "Prices",
    "Sampler",
    "Serve",
    "SimulatedModel",
    "SlurmSection",
    "Spend",
    "Sweep",
    "TaskConfig",
    "ViewConfig",
]
