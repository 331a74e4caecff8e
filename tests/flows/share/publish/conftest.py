"""A finished sweep, and the publication of another."""

import shutil

import pytest

from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from evalcube.flows.share.publish.publish import publish_cube
from tests.flows.shared_cluster import SHARED
from tests.flows.support import reset, sweep_config


@pytest.fixture(scope="session")
def made(tmp_path_factory, _served):
    """A folder with a finished sweep of two models, in regions of which one is cut."""
    reset(_served)
    folder = tmp_path_factory.mktemp("made")
    config = sweep_config(folder, _served.base_url, models=("alpha", "beta"), trials=8, repeats=2)
    config["models"][0]["facets"] = {"family": "greek"}
    config["tasks"]["arithmetic"]["assertions"] = [{"type": "min_length", "value": 1}]
    run(config, cluster=SHARED)
    upsample(config, trials=12, where=["task=boolean"], cluster=SHARED)
    return folder


@pytest.fixture(scope="session")
def done(made, tmp_path_factory):
    """What was returned when its cube was published, with a tag, a licence and replies."""
    return publish_cube(
        str(made / "cube.zarr"),
        str(tmp_path_factory.mktemp("done") / "out"),
        tag="v1",
        with_replies=True,
        licence="CC-BY-4.0",
        by="Team <A> <ann@team.example>",
    )


@pytest.fixture
def cube(made, tmp_path):
    """A copy of its cube, with the cache beside it."""
    shutil.copytree(made, tmp_path / "made")
    return str(tmp_path / "made" / "cube.zarr")


@pytest.fixture(scope="session")
def published(tmp_path_factory, _served):
    """A folder with a sweep of two models, and its publication with a tag and replies."""
    reset(_served)
    folder = tmp_path_factory.mktemp("published")
    config = sweep_config(folder, _served.base_url, models=("alpha", "beta"), trials=4, cells=2)
    run(config, cluster=SHARED)
    publish_cube(config["cube"], str(folder / "out"), tag="v1", licence="CC0-1.0", with_replies=True)
    return folder


@pytest.fixture
def out(published, tmp_path):
    """The address below which a copy of the publication is."""
    shutil.copytree(published / "out", tmp_path / "theirs" / "out")
    return str(tmp_path / "theirs" / "out")


@pytest.fixture
def stranger(monkeypatch, tmp_path):
    """A user who has run nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
