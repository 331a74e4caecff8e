"""What a cube exports in another tool's form is the same trials again when it is imported."""

import numpy as np
import pytest

from evalcube.flows.run.sweep import run
from evalcube.flows.share.exports.export import export
from evalcube.flows.share.imports.logs import import_logs
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube.cube import Cube
from tests.flows.shared_cluster import SHARED
from tests.flows.support import sweep_config

pytestmark = pytest.mark.cluster

EQUAL = (
    "trials",
    "completed",
    "correct",
    "invalid",
    "refused",
    "truncated",
    "guess_sum",
    "tokens_sum",
    "latency_sum",
)


@pytest.fixture(scope="module")
def swept(tmp_path_factory, _served):
    """A sweep with repeats, in which replies are right, wrong, cut and refused."""
    folder = tmp_path_factory.mktemp("swept")
    config = sweep_config(folder, _served.base_url, trials=6, cells=2, models=("alpha", "beta"))
    config["repeats"] = 2
    config["samplers"] = {"some": {"temperature": 0, "max_tokens": 40}}
    for model in config["models"]:
        model["simulate"] |= {"refusal": 0.2, "ability": 2.0, "tokens": 30}
    run(config, cluster=SHARED)
    return folder


def counters(path):
    """Counters by model and task: exports have one log for a task, whatever its points."""
    dataset = Cube.open(path).dataset()
    summed = dataset["counters"].sum("params").to_numpy()
    models, tasks = (dataset[name].to_numpy().tolist() for name in ("model_name", "task"))
    return {
        (model.rpartition("/")[2].partition("?")[0], task): summed[i, j]
        for i, model in enumerate(models)
        for j, task in enumerate(tasks)
    }


@pytest.mark.parametrize("form", ["inspect"])
def test_export_and_import__give_the_same_counters(swept, tmp_path, form):
    export(swept / "cube.zarr", to=form, output=tmp_path / "out", cache=swept / "cache")

    import_logs([tmp_path / "out"], tmp_path / "again.zarr", cache=tmp_path / "cache")

    before, after = counters(swept / "cube.zarr"), counters(tmp_path / "again.zarr")
    assert before.keys() == after.keys()
    for place in before:
        ours = dict(zip(COUNTERS, before[place], strict=False))
        theirs = dict(zip(COUNTERS, after[place], strict=False))
        # A log has the options of a question, and no floor above what guessing among these gains.
        for name in EQUAL if place[1] != "boolean" else set(EQUAL) - {"guess_sum"}:
            np.testing.assert_allclose(theirs[name], ours[name], rtol=1e-5, err_msg=f"{form} {place} {name}")
    total = sum(after.values())
    assert min(total[COUNTERS.index(name)] for name in ("correct", "truncated", "refused")) > 0
