"""A sweep whose trials are read."""

import pytest

from tests.flows.support import evalcube, reset, sweep_config, write_config


@pytest.fixture(scope="session")
def swept(tmp_path_factory, _served):
    """A folder with a sweep of two models, several tasks and repeats."""
    reset(_served)
    folder = tmp_path_factory.mktemp("swept")
    config = sweep_config(folder, _served.base_url, trials=5, cells=3, models=("alpha", "beta"), repeats=2)
    config["samplers"]["greedy"]["temperature"] = 1
    for model in config["models"]:
        model["simulate"] = {"ability": 1.0, "tokens": 20}
        model["prices"] = {"prompt": 1, "completion": 2}
    assert evalcube("run", write_config(folder, config), "--quiet", cwd=folder)[0] == 0
    return folder
