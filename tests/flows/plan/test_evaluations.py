"""Labels of evaluations, by which plain xarray selects them."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import Evaluation, NamedTemplate
from evalcube.flows.state.store import open_store
from tests.flows.support import sweep_config

MODELS = ("alpha", "beta")


@pytest.fixture
def config(tmp_path):
    return sweep_config(tmp_path, "http://127.0.0.1:1/v1", trials=4, models=MODELS)


def test_cube__is_selected_by_labels_in_plain_xarray(config):
    open_store(build_plan(from_mapping(config)), config["cube"])

    cube = xr.open_zarr(config["cube"])

    assert cube.indexes.keys() >= {"model", "task", "tier", "counter"}
    assert cube.sel(model="beta")["model_name"].values == "beta"
    assert cube["counters"].sel(model="alpha", task="boolean", counter="trials").shape == (4,)
    assert cube["in_tier"].sel(tier="hard", task="boolean").values.tolist() == [True, False, False, False]


def test_labels__are_different_though_names_are_the_same(config):
    plan = build_plan(from_mapping(config))
    first, last = plan.evaluations
    template = NamedTemplate(
        name=first.template.name, source=[{"role": "user", "content": "Say: {{ prompt }}"}]
    )
    other = Evaluation.of(template, first.sampler, model=first.model, request_model=first.request_model)
    assert (other.label, other.eval_id == first.eval_id) == (first.label, False)

    labels = replace(plan, evaluations=(first, other, last)).labels

    assert labels == (f"alpha / {first.eval_id[:8]}", f"alpha / {other.eval_id[:8]}", "beta")
    assert np.unique(labels).size == len(labels)
