"""A finished sweep whose results are taken away."""

import shutil

import pytest

from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from tests.flows.keep.forgetting import config_of
from tests.flows.shared_cluster import SHARED
from tests.flows.support import reset


@pytest.fixture(scope="module")
def swept(tmp_path_factory, _served):
    """A folder with a finished sweep of two models, whose questions lie in several regions."""
    reset(_served)
    folder = tmp_path_factory.mktemp("swept")
    run(config_of(folder, _served), cluster=SHARED)
    upsample(config_of(folder, _served), repeats=2, cluster=SHARED)
    return folder


@pytest.fixture
def sweep(swept, tmp_path, _served):
    """The config of a copy of it, with both repeats."""
    reset(_served)
    shutil.copytree(swept, tmp_path, dirs_exist_ok=True)
    return {**config_of(tmp_path, _served), "repeats": 2}


@pytest.fixture
def served(_served):
    return _served
