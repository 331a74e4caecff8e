"""What a run notes beside its cube for whoever goes on with it."""

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.sweep import _notes
from evalcube.flows.state.store import open_store
from tests.flows.support import sweep_config


@pytest.mark.parametrize("address", ["s3://bucket/caches", "redis://127.0.0.1:6379/0", "caches/mine"])
def test_notes__have_addresses_that_mean_the_same_from_anywhere(tmp_path, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    settings = from_mapping(sweep_config(tmp_path, "http://127.0.0.1:1/v1", cache=address))

    plan = build_plan(settings)
    notes = _notes(settings, open_store(plan, settings.cube))

    assert notes["cache"] == (address if "://" in address else str(tmp_path / address))
    assert notes["config"]["cache"] == notes["cache"]
    assert notes["config"]["cube"] == str(tmp_path / "cube.zarr")
