"""Cubes that are shared."""

from functools import cache

import pytest

from tests.flows.read.merged.two_teams import made, ours, pair  # noqa: F401 - fixtures of the tests here
from tests.flows.share.exports import written
from tests.flows.support import evalcube, reset, sweep_config, write_config


@pytest.fixture(scope="session")
def swept(tmp_path_factory, _served):
    """A folder with a sweep of two models with prices, system message, repeats."""
    reset(_served)
    folder = tmp_path_factory.mktemp("swept")
    config = sweep_config(folder, _served.base_url, trials=4, cells=2, models=("alpha", "beta"), repeats=2)
    config["samplers"]["greedy"]["temperature"] = 1
    config["templates"] = {
        "plain": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{ prompt }}"}]
    }
    config["models"][0]["revision"] = "of-may"
    for model in config["models"]:
        model["simulate"] = {"ability": 1.0, "tokens": 20}
        model["prices"] = {"prompt": 1, "completion": 2}
    code, _, errors = evalcube("run", write_config(folder, config), "--quiet", cwd=folder)
    assert code == 0, errors
    return folder


@pytest.fixture(params=["swept", "judged"])
def folder(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """A function that gives the files of the export of a sweep, which is made once."""

    @cache
    def files_of(folder):
        return written(folder, tmp_path_factory.mktemp("exported") / "out", organization="Us", now=1.0)[1]

    return files_of
