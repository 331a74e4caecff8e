"""A cube that grows along models, tasks, points and judges: what was there stays, and a kill leaves old or new."""

import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from storage_workers import make_cube

from evalcube._arrays import as_xarray
from evalcube.storage.cube.cube import Cube, Region, region_digest
from evalcube.storage.cube.directory.objects import Directory
from evalcube.storage.cube.integrity import stored_problems
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.schema import LAYERS
from evalcube.storage.errors import CubeDamagedError, CubeMismatchError, StorageError
from tests.storage.cube.growths import SMALL, arrays_of, grown, labels, receipt, recorded
from tests.storage.support import buckets
from tests.storage.support.slashes import with_slashes

pytestmark = pytest.mark.long


class Killed(BaseException):
    """Ends a test's growth wherever it is."""


def whole(url):
    """All that readers see of a cube; it is read a hundred times."""
    cube = Cube.open(url)
    return as_xarray(cube.load()), cube.attrs, cube.sizes, cube.shapes


def same(left, right):
    return left[0].identical(right[0]) and left[1:] == right[1:]


def killed_growths(monkeypatch, holder, name, fresh, step=1):
    """Yield cubes whose growth was killed, each after more calls of `holder.name`, until one grows whole."""
    call = getattr(holder, name)
    for left in itertools.count(0, step):
        cube = fresh(left)
        budget = iter(range(left))

        def until_killed(*args, budget=budget, **options):
            if next(budget, None) is None:
                raise Killed
            return call(*args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(holder, name, until_killed)
            try:
                grown(cube)
            except Killed:
                pass
            else:
                return
        yield left, cube.url


def grown_again(url, old, new):
    """Grow a cube whose growth was killed, which must be old or new; whether it was new, and the cube."""
    found = whole(url)
    is_new = same(found, new)
    assert is_new or same(found, old), url
    cube = Cube.open(url, writable=True)
    cube.restore_metadata()
    if not is_new:
        grown(cube)
    return is_new, cube


@pytest.mark.parametrize("models", [3, 30])
def test_extend__makes_arrays_in_the_chunks_of_a_new_cube(tmp_path, models):
    cube = recorded(tmp_path / "c.zarr")
    sizes = {"model": models, "task": 4, "params": 5}
    grown(cube, sizes=sizes, coordinates=labels(models, 4, 5, ("easy", "hard", "extreme")))
    new = make_cube(tmp_path / "new.zarr", sizes={**SMALL, **sizes})

    for name in ("counters", "planned_trials", "planned_repeats"):
        assert cube.group.chunks(name) == new.group.chunks(name), name


def test_extend__plain_xarray_reads_it(tmp_path):
    cube = recorded(tmp_path / "c.zarr")
    grown(cube)

    for consolidated in (True, False):
        plain = xr.open_zarr(tmp_path / "c.zarr", consolidated=consolidated).load()
        assert plain.sizes["task"] == 4
        assert plain["model_name"].values.tolist() == ["m0", "m1", "m2"]
        assert plain.identical(cube.dataset().load())


def test_cube__of_an_earlier_version_grows_and_is_mended_as_one_of_today(tmp_path):
    cubes = [recorded(tmp_path / f"{name}.zarr", layers=["fact"]) for name in ("now", "then")]
    cubes[1] = Cube.open(with_slashes(cubes[1].url), writable=True)
    assert same(*(whole(cube.url) for cube in cubes))

    for cube in cubes:
        grown(cube, layers=["fact", "looping"])
        for model in (0, 2):
            region = Region(model, 0, 0)
            cube.write_region(region, arrays_of(cube, region))
        cube.grow(trial=40)
        cube.write_duplicates(1, np.ones((5, 40), np.uint8))
        cube.drop_chunks("duplicate")
        cube.restore_index("trial")
        assert cube.unwritten_flags().all()

    assert same(*(whole(cube.url) for cube in cubes))
    kept = [Path(cubes[1].url, "status", "c", str(model), "0", "0", "0", "0") for model in range(3)]
    assert [chunk.is_file() for chunk in kept] == [True] * 3
    assert sum(path.is_dir() for path in Path(cubes[0].url, "status").iterdir()) == 0


def test_extend__twice_and_along_trials_between(tmp_path):
    cube = recorded(tmp_path / "c.zarr")
    newest = Ledger(cube.records).newest()
    grown(cube)
    cube.grow(trial=40)

    cube.extend(sizes={"model": 30}, coordinates=labels(30, 4, 5), attrs={"name": "again"})
    cube.write_counters({29: np.ones((4, 5, 20))})
    cube.grow(trial=50)

    sizes = Cube.open(cube.url).sizes
    assert (sizes["model"], sizes["trial"], sizes["tier"]) == (30, 50, 2)
    assert cube.dataset()["model_name"].values.tolist() == [f"m{i}" for i in range(30)]
    assert cube.read_counters()[:2, :2, :3].tolist() == [[[[n] * 20] * 3] * 2 for n in (1.0, 2.0)]
    for one in newest.values():
        assert stored_problems(cube, one)[0] == {}
    assert cube.shared_problems() == {}
    assert cube.unwritten_flags().all()  # nobody has compared prompts


def test_extend__brings_layers_and_judges(tmp_path):
    cube = recorded(tmp_path / "c.zarr")
    judged = {"judge_name": 1, "judge_repeat": 1}
    cube.extend(sizes=judged, coordinates=labels(2, 2, 3), attrs={}, layers=list(LAYERS))
    region = Region(1, 0, 0)
    first = receipt(cube, region, cube.write_region(region, arrays_of(cube, region)), generation=2)

    cube.extend(
        sizes={"judge_name": 2, "judge_repeat": 3},
        coordinates=labels(2, 2, 3),
        attrs={},
        layers=list(LAYERS),
    )

    assert cube.region_shape(region) == (2, 3, 8, 1)
    readings = cube.read_region(region)["judge_readings"]
    assert readings.shape == (2, 3, 8, 1, 2, 3)
    assert np.isnan(readings[..., 1, :]).all()
    assert (readings[..., 0, 0] == 4).all()
    assert [shape.layers for shape in cube.shapes] == [(), tuple(LAYERS), tuple(LAYERS)]
    for one in [*Ledger(cube.records).newest().values(), first]:
        if one.region != region or one is first:
            assert stored_problems(cube, one)[0] == {}


def test_extend__after_a_kill_at_any_write_the_cube_is_old_or_new(tmp_path, monkeypatch):
    recorded(tmp_path / "whole.zarr")
    shutil.copytree(tmp_path / "whole.zarr", tmp_path / "old.zarr")
    old = whole(tmp_path / "whole.zarr")
    grown(Cube.open(tmp_path / "whole.zarr", writable=True))
    new = whole(tmp_path / "whole.zarr")
    assert not same(old, new)

    def fresh(left):
        path = tmp_path / f"{left}.zarr"
        shutil.copytree(tmp_path / "old.zarr", path)
        return Cube.open(path, writable=True)

    seen = []
    for left, path in killed_growths(monkeypatch, Directory, "put", fresh, step=4):
        is_new, _ = grown_again(path, old, new)
        seen.append(is_new)
        if left % 8 == 0:
            assert same(whole(path), new)
            assert xr.open_zarr(path, consolidated=False).load().identical(new[0])

    assert seen == sorted(seen)
    assert {False, True} == set(seen)


def test_extend__refuses_what_no_cube_does(tmp_path):
    cube = recorded(tmp_path / "c.zarr")
    with pytest.raises(CubeMismatchError, match="model is 2"):
        cube.extend(sizes={"model": 1}, coordinates=labels(1, 2, 3), attrs={})
    with pytest.raises(CubeMismatchError, match="'model_name'"):
        cube.extend(sizes={"model": 3}, coordinates=labels(2, 2, 3), attrs={})
    with pytest.raises(CubeMismatchError, match="no JSON"):
        cube.extend(sizes={"model": 3}, coordinates=labels(3, 2, 3), attrs={"x": float("inf")})

    other = Cube.open(cube.url, writable=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cube, "refresh", lambda: None)
        same = other.space.get("zarr.json").data
        again = lambda *_: other.space.put("zarr.json", same) and {}  # noqa: E731
        patch.setattr("evalcube.storage.cube.growing.Extension._stage_arrays", again)
        with pytest.raises(StorageError, match="another process"):
            grown(cube)

    assert Cube.open(cube.url).sizes["model"] == 2


@pytest.mark.parametrize(
    "shapes",
    [
        "no list",
        [],
        [{"sizes": {"task": 2, "params": 3}}],
        [{"sizes": {"task": 2, "params": 9}, "layers": []}],
        [{"sizes": {"task": 1, "params": 1}, "layers": []}],
        [{"sizes": {"task": 2, "params": 3}, "layers": ["judge"]}],
        [{"sizes": {"task": 2.0, "params": 3}, "layers": []}],
    ],
)
def test_open__refuses_shapes_that_no_region_has_had(tmp_path, shapes):
    cube = recorded(tmp_path / "c.zarr")
    text = (tmp_path / "c.zarr/zarr.json").read_text()
    document = json.loads(text)
    document["attributes"]["region_shapes"] = shapes
    (tmp_path / "c.zarr/zarr.json").write_text(json.dumps(document))

    with pytest.raises(CubeDamagedError, match="metadata are damaged"):
        Cube.open(cube.url)


def test_shape_of__refuses_a_receipt_of_another_copy(tmp_path):
    cube = recorded(tmp_path / "c.zarr")
    one = receipt(cube, Region(0, 0, 0), "0" * 32)

    with pytest.raises(CubeDamagedError, match="1 growths"):
        cube.shape_of(replace(one, shape=1))


def test_region_digest__of_what_was_recorded_is_the_same_after_growth(tmp_path):
    cube = recorded(tmp_path / "c.zarr")
    region = Region(0, 0, 0)
    before = region_digest(cube.read_region(region))
    grown(cube)

    assert region_digest(cube.shapes[0].crop(cube.read_region(region), 8, 1)) == before


def test_extend__in_a_bucket_a_kill_at_any_put_leaves_it_old_or_new(tmp_path, monkeypatch):
    obstore = pytest.importorskip("obstore")
    buckets.in_memory(monkeypatch)
    old = whole(recorded(tmp_path / "old.zarr").url)
    grown(Cube.open(tmp_path / "old.zarr", writable=True))
    new = whole(tmp_path / "old.zarr")

    def fresh(left):
        return recorded(f"s3://bucket/{left}.zarr")

    seen = []
    for left, url in killed_growths(monkeypatch, obstore, "put", fresh, step=9):
        seen.append(grown_again(url, old, new)[0])
        assert same(whole(url), new), left

    assert seen == sorted(seen)
    assert not seen[0]
    assert same(whole(f"s3://bucket/{left + 9}.zarr"), new)
