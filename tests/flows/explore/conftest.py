"""One explored cube for all tests of the explorer."""

import pytest

from evalcube.flows.explore.explored import Explored
from tests.flows.explore.browsing import served
from tests.flows.support import evalcube, reset, sweep_config, write_config


@pytest.fixture(scope="session")
def explored_cube(tmp_path_factory, _served):
    """A finished sweep of four models, three of them checkpoints, over two tasks; its replies are in a cache."""
    reset(_served)
    folder = tmp_path_factory.mktemp("explored")
    config = sweep_config(
        folder, _served.base_url, trials=6, models=("alpha", "beta", "gamma", "<b>delta</b>")
    )
    for step, model in enumerate(config["models"]):
        model["simulate"] |= {"ability": 1.0 + step, "reasoning": "think"}
        model["facets"] = {"step": 1000 * 2**step, "family": "even" if step % 2 else "odd"}
        model["prices"] = {"prompt": 1, "completion": 2 + step}
    code, _, errors = evalcube("run", write_config(folder, config), "--workers", 1, "--quiet", cwd=folder)
    assert code == 0, errors
    return config["cube"]


@pytest.fixture(scope="session")
def address(explored_cube):
    """Where the cube is explored."""
    with served(Explored([explored_cube])) as base:
        yield base
