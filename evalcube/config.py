# ruff: noqa: PLC0414 - the one list of the names, which is handed on to type checkers
"""What a sweep consists of: the sections of a config, each a class whose fields are the section's keys."""

from evalcube.flows.config.cluster import ChosenWorkers as ChosenWorkers
from evalcube.flows.config.cluster import ClusterSection as ClusterSection
from evalcube.flows.config.cluster import SlurmSection as SlurmSection
from evalcube.flows.config.judges import CompositeConfig as CompositeConfig
from evalcube.flows.config.judges import JudgeConfig as JudgeConfig
from evalcube.flows.config.judges import LayerWeights as LayerWeights
from evalcube.flows.config.judges import Sampler as Sampler
from evalcube.flows.config.limits import BatchSetting as BatchSetting
from evalcube.flows.config.limits import ConnectionSearch as ConnectionSearch
from evalcube.flows.config.limits import Limits as Limits
from evalcube.flows.config.limits import Precision as Precision
from evalcube.flows.config.limits import Spend as Spend
from evalcube.flows.config.manifold import AxisRange as AxisRange
from evalcube.flows.config.manifold import AxisWindow as AxisWindow
from evalcube.flows.config.manifold import Manifold as Manifold
from evalcube.flows.config.manifold import TaskConfig as TaskConfig
from evalcube.flows.config.models import EvaluationRule as EvaluationRule
from evalcube.flows.config.models import Model as Model
from evalcube.flows.config.models import Prices as Prices
from evalcube.flows.config.models import SimulatedModel as SimulatedModel
from evalcube.flows.config.models import Sweep as Sweep
from evalcube.flows.config.serving import Serve as Serve
from evalcube.flows.config.views import Policy as Policy
from evalcube.flows.config.views import PolicyRule as PolicyRule
from evalcube.flows.config.views import ViewConfig as ViewConfig

__all__ = [name for name in dir() if not name.startswith("_")]
