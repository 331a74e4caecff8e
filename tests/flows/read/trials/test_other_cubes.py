"""Trials of cubes that were merged, thinned out, or lie in a bucket."""

import pytest

from evalcube.flows.read.trials.read import trials
from evalcube.flows.share.export import export
from evalcube.flows.share.merge import merge_cubes
from tests.flows.support import evalcube, reset, sweep_config, write_config
from tests.storage.support import buckets

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def teams(tmp_path_factory, _served):
    """A folder with the cubes of two teams, which share questions and a cache."""
    reset(_served)
    folder = tmp_path_factory.mktemp("teams")
    for name, trials_ in (("one", 4), ("two", 6)):
        config = sweep_config(
            folder, _served.base_url, trials=trials_, cells=2, models=(name,), cube=f"{name}.zarr"
        )
        code, _, errors = evalcube("run", write_config(folder, config, f"{name}.yaml"), "--quiet", cwd=folder)
        assert code == 0, errors
    return folder


def rows(*cubes, **options):
    """Rows by what they are of, without the cube's address."""
    found = {}
    for row in trials(list(cubes), **options).rows():
        place = (row["model"], row["task"], row["params"], row["trial"], row["repeat"])
        found[place] = {name: value for name, value in row.items() if name != "cube"}
    return found


def test_merged_cube__has_the_rows_of_its_sources(teams):
    assert evalcube("merge", "both.zarr", "one.zarr", "two.zarr", cwd=teams)[0] == 0

    merged = rows(teams / "both.zarr", cache=teams / "cache")

    apart = rows(teams / "one.zarr", teams / "two.zarr", cache=teams / "cache")
    assert merged == apart
    assert len(merged) == 3 * (4 + 6)
    assert all(row["response"] is not None for row in merged.values())


def test_forgotten_trials__are_rows_no_more(teams, tmp_path):
    assert evalcube("merge", tmp_path / "left.zarr", "one.zarr", "two.zarr", cwd=teams)[0] == 0
    code, _, errors = evalcube("forget", tmp_path / "left.zarr", "--where", "model=one", "--yes", cwd=teams)
    assert code == 0, errors

    left = rows(tmp_path / "left.zarr", cache=teams / "cache")

    assert left == rows(teams / "two.zarr", cache=teams / "cache")


def test_cube_in_a_bucket__has_the_same_rows_and_is_exported(teams, tmp_path, monkeypatch):
    buckets.in_memory(monkeypatch)
    merge_cubes("s3://bucket/one.zarr", [str(teams / "one.zarr")])

    lying = rows("s3://bucket/one.zarr", cache=teams / "cache", where=["task=arithmetic", "tokens=1.."])
    done = export("s3://bucket/one.zarr", output=tmp_path / "out", cache=teams / "cache")

    assert lying == rows(teams / "one.zarr", where=["task=arithmetic", "tokens=1.."])
    assert (done.trials, len(done.files)) == (12, 2)
