"""The public names and where they come from: the one list, which type checkers, editors and `evalcube` itself read."""

from collections.abc import Callable
from typing import TypeVar

from evalcube import config as config
from evalcube import plugins as plugins
from evalcube import results as results
from evalcube import stats as stats
from evalcube.deploy.errors import DeployError as DeployError
from evalcube.flows.config.judges import Sampler as Sampler
from evalcube.flows.config.manifold import Manifold as Manifold
from evalcube.flows.config.models import Model as Model
from evalcube.flows.config.models import Sweep as Sweep
from evalcube.flows.config.suites import load_suite as load_suite
from evalcube.flows.errors import ConfigError as ConfigError
from evalcube.flows.errors import SweepError as SweepError
from evalcube.flows.errors import TemplateError as TemplateError
from evalcube.flows.keep import rescore as _rescore
from evalcube.flows.read import estimate as _estimate
from evalcube.flows.read import status as _status
from evalcube.flows.read import verdict as _verdict
from evalcube.flows.read.catalogue import tasks as tasks
from evalcube.flows.read.dataset import open_cube as open_cube
from evalcube.flows.read.gate import gate as gate
from evalcube.flows.read.report import report as report
from evalcube.flows.read.selection import Part as Part
from evalcube.flows.read.statistics import compare as compare
from evalcube.flows.read.statistics import leaderboard as leaderboard
from evalcube.flows.read.statistics import metrics as metrics
from evalcube.flows.read.statistics import rank as rank
from evalcube.flows.read.statistics import table as table
from evalcube.flows.read.trials.read import trials as trials
from evalcube.flows.run.probe.probe import probe as probe
from evalcube.flows.run.sweep import run as run
from evalcube.flows.run.upsample import upsample as upsample
from evalcube.flows.share import difference as _difference
from evalcube.flows.share import merge as _write
from evalcube.flows.share.export import export as export
from evalcube.flows.share.imports.logs import import_logs as import_logs
from evalcube.flows.share.publish import publish as _publish
from evalcube.flows.share.publish import pull as _pull
from evalcube.flows.state import verify as _verify
from evalcube.flows.versions import show_versions as show_versions
from evalcube.stages.generate import TaskError as TaskError
from evalcube.stages.infer.endpoint import InferenceError as InferenceError
from evalcube.storage.errors import StorageError as StorageError

# A stub hands on what it imports under the same name; these have another name at home.
diff = _difference.diff_cubes
merge = _write.merge_cubes
plan = _estimate.estimate
publish = _publish.publish_cube
pull = _pull.pull_cube
rescore = _rescore.rescore_cube
status = _status.cube_status
verdict = _verdict.cube_verdict
verify = _verify.verify_cube

__version__: str

_Named = TypeVar("_Named")

def known_as(module: str, name: str = "") -> Callable[[_Named], _Named]: ...

class EvalcubeError(Exception):
    message: str
    remedy: str
    def __init__(self, message: str, remedy: str = "") -> None: ...
