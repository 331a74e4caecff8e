"""Damaged cubes are seen, named and healed, to the very bytes of their arrays."""

import json
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalcube.flows.errors import SweepError
from evalcube.flows.read.status import cube_status
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.state.store import CHANGING
from evalcube.flows.state.verify import verify_cube
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Ledger
from tests.flows.keep.own_metadata import change_own, killed_growth, longer, of_another_type, unpickling
from tests.flows.shared_cluster import SHARED
from tests.flows.support import evalcube, reset, set_faults, simulator_stats, sweep_config, write_config

TRIALS = (
    "status",
    "tokens",
    "prompt_tokens",
    "reasoning_bytes",
    "compressed_bytes",
    "guess_chance",
    "latency",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory, _served):
    """A folder with a finished sweep of two models."""
    reset(_served)
    folder = tmp_path_factory.mktemp("made")
    run(sweep_config(folder, _served.base_url, models=("alpha", "beta"), repeats=2), cluster=SHARED)
    return folder


@pytest.fixture(scope="module")
def asserted(tmp_path_factory, _served):
    """A folder with a finished sweep of two models whose outputs have layer scores."""
    reset(_served)
    folder = tmp_path_factory.mktemp("asserted")
    config = sweep_config(folder, _served.base_url, models=("alpha", "beta"), trials=4, cells=1)
    config["tasks"]["arithmetic"]["assertions"] = [{"type": "min_length", "value": 1}]
    run(config, cluster=SHARED)
    return folder


@pytest.fixture
def sweep(made, tmp_path, _served):
    """A copy of it, and its config."""
    reset(_served)
    return copied(made, tmp_path / "sweep"), sweep_config(
        tmp_path / "sweep", _served.base_url, models=("alpha", "beta"), repeats=2
    )


def copied(made, folder):
    shutil.copytree(made, folder)
    return folder / "cube.zarr"


def content(cube):
    """All values of all arrays, as bytes or texts."""
    group = zarr.open_group(cube, mode="r")
    values = {name: np.asarray(array[...]) for name, array in group.arrays()}
    return {
        name: array.tolist() if array.dtype == object else array.tobytes() for name, array in values.items()
    }


def chunks(cube):
    """All files with values."""
    return sorted(Path(cube).glob("*/c.*"))


def truncate(path, place):
    data = path.read_bytes()
    path.write_bytes(data[: place % len(data)])


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= 1 << place % 8
    path.write_bytes(data)


def delete(path, place):  # noqa: ARG001 - as the others
    path.unlink()


@pytest.fixture(scope="module")
def made_content(made):
    """What its cube holds."""
    return content(made / "cube.zarr")


@settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([truncate, flip, delete]), st.integers(0, 10_000), st.integers(0, 10_000))
@example(delete, 152, 0)  # a price
def test_heal__any_damage_of_a_chunk_to_the_very_bytes(made, made_content, damage, which, place):
    with tempfile.TemporaryDirectory() as folder:
        cube, expected = copied(made, Path(folder) / "sweep"), made_content
        path = chunks(cube)[which % len(chunks(cube))]
        array = path.relative_to(cube).parts[0]
        damage(path, place)
        try:
            unchanged = content(cube) == expected
        except Exception:  # noqa: BLE001 - whatever codecs raise
            unchanged = False

        found = verify_cube(cube)
        healed = verify_cube(cube, heal=True, cache=Path(folder) / "sweep" / "cache")

        if array in CHANGING:
            return  # the config's: a run writes them anew
        assert unchanged or not found.whole
        assert healed.whole
        if found.damages:
            assert array in {damage.array for damage in healed.damages}
            assert content(cube) == expected
            assert verify_cube(cube).damages == []


@pytest.mark.parametrize(
    ("array", "damage"),
    [("status", truncate), ("tokens", flip), ("latency", delete)],
)
def test_run__does_a_damaged_region_again_from_the_cache(sweep, simulator, array, damage):
    cube, config = sweep
    expected = content(cube)
    damage(cube / array / "c.0.0.0.0.0", 47)

    if damage is not flip:
        status = cube_status(cube)
        assert (status["damaged"], status["complete"]) == (1, False)
        assert status["models"][0]["done"] == 0
    summary = run(config, cluster=SHARED)

    assert (summary.reason, summary.sent) == ("complete", 0)
    assert simulator_stats(simulator)["requests"] == 0
    assert content(cube) == expected
    assert cube_status(cube)["complete"]


def test_run__brings_back_a_deleted_array(sweep, simulator):
    cube, config = sweep
    expected = content(cube)
    metadata = (cube / "status" / "zarr.json").read_bytes()
    for name in ("status", "task", "difficulty", "price_prompt", "trial"):
        shutil.rmtree(cube / name)

    assert cube_status(cube)["done"] == 0
    assert run(config, cluster=SHARED).sent == simulator_stats(simulator)["requests"] == 0

    assert content(cube) == expected
    assert (cube / "status" / "zarr.json").read_bytes() == metadata


def test_heal__brings_back_a_deleted_array(sweep, simulator):  # noqa: ARG001 - nothing is asked of it
    cube, _ = sweep
    expected = content(cube)
    for name in ("tokens", "counters", "duplicate", "planned_trials", "cell_id", "repeat"):
        shutil.rmtree(cube / name)

    found = verify_cube(cube, heal=True)

    assert found.whole
    assert {"tokens", "counters", "duplicate", "planned_trials", "cell_id", "repeat"} <= {
        damage.array for damage in found.damages
    }
    assert content(cube) == expected


def test_heal__says_at_once_whom_it_waits_for(sweep):
    """A process elsewhere that may have ended; its lease would be watched for a minute."""
    cube, _ = sweep
    lease = {"token": "t", "process": vars_of("far-away"), "since": time.time(), "ttl": 1.0}
    (cube / "_evalcube" / "lease.json").write_text(json.dumps(lease))

    code, _, errors = evalcube("cube", "verify", cube, "--heal", cwd=cube.parent)

    assert code == 0
    assert "process 77 on far-away" in errors
    assert "taken over" in errors


def vars_of(host):
    return {"host": host, "boot": "another boot", "pid": 77, "start": 5}


def test_heal__says_what_it_would_cost_where_the_cache_lacks_replies(sweep, simulator):
    cube, config = sweep
    expected = content(cube)
    truncate(cube / "status" / "c.1.0.0.0.0", 20)
    shutil.rmtree(cube.parent / "cache")
    open_cache(str(cube.parent / "cache")).close()

    code, output, errors = evalcube("cube", "verify", cube, "--heal", "--cache", "cache", cwd=cube.parent)

    assert code == 2
    assert "beta" in output
    assert "'status' is cut off" in output
    assert "80 requests" in errors
    assert run(config, cluster=SHARED).sent == simulator_stats(simulator)["requests"] == 80
    assert verify_cube(cube).whole
    assert [name for name in TRIALS if name != "latency" and content(cube)[name] != expected[name]] == []


def test_heal__leaves_transport_errors_as_they_were(tmp_path, simulator):
    set_faults(simulator, [{"kind": "status", "status": 500, "share": 0.4}])
    config = sweep_config(tmp_path, simulator.base_url)
    summary = run(config, cluster=SHARED)
    assert 0 < summary.transport < summary.trials
    expected = content(tmp_path / "cube.zarr")
    flip(tmp_path / "cube.zarr" / "status" / "c.0.0.0.0.0", 30)

    assert verify_cube(tmp_path / "cube.zarr", heal=True).whole

    assert content(tmp_path / "cube.zarr") == expected


def test_verify__command(sweep):
    cube, config = sweep
    write_config(cube.parent, config)
    assert evalcube("cube", "verify", cube, cwd=cube.parent)[0] == 0
    truncate(cube / "counters" / "c.0.0.0.0", 20)

    code, output, errors = evalcube("cube", "verify", cube, "--json", cwd=cube.parent)
    assert (code, "--heal" in errors) == (2, True)
    document = json.loads(output)
    assert (document["whole"], document["regions"]) == (False, 2)
    assert document["damages"][0]["array"] == "counters"

    code, output, _ = evalcube("cube", "verify", "--heal", cube, cwd=cube.parent)
    assert (code, "healed: `counters`" in output) == (0, True)
    assert evalcube("run", "sweep.yaml", "--quiet", cwd=cube.parent)[0] == 0


def test_heal__with_a_receipt_that_says_more_than_there_is(sweep):
    cube, _ = sweep
    expected = content(cube)
    with Ledger(Cube.open(cube).records) as ledger:
        for receipt in list(ledger.newest().values()):
            ledger.append(replace(receipt, trials=2**40, repeats=2**40))
    truncate(next(path for path in chunks(cube) if path.relative_to(cube).parts[0] == "tokens"), 21)
    truncate(next(path for path in chunks(cube) if path.relative_to(cube).parts[0] == "planned_trials"), 21)

    assert verify_cube(cube, heal=True, cache=cube.parent / "cache").whole
    assert content(cube) == expected


@pytest.mark.parametrize(
    ("array", "damage"),
    [("counters", truncate), ("duplicate", flip), ("planned_trials", truncate), ("planned_repeats", flip)],
)
def test_run__mends_what_all_models_share(sweep, simulator, array, damage):
    cube, config = sweep
    expected = content(cube)
    damage(next(path for path in chunks(cube) if path.relative_to(cube).parts[0] == array), 21)
    noted = []

    summary = run(config, cluster=SHARED, subscribers=[noted.append])

    assert (summary.reason, summary.done, summary.sent) == ("complete", summary.trials, 0)
    assert any(f"`{array}` of the cube" in getattr(event, "message", "") for event in noted)
    assert content(cube) == expected
    assert verify_cube(cube).damages == []
    assert simulator_stats(simulator)["requests"] == 0


def test_run__keeps_what_was_measured_further_where_the_plan_is_damaged(sweep, simulator):
    cube, config = sweep
    upsample(config, trials=12, where=["task=boolean"], cluster=SHARED)
    expected, asked = content(cube), simulator_stats(simulator)["requests"]
    truncate(next(path for path in chunks(cube) if path.relative_to(cube).parts[0] == "planned_trials"), 21)

    run(config, cluster=SHARED)

    assert content(cube) == expected
    assert simulator_stats(simulator)["requests"] == asked


@pytest.mark.parametrize(
    ("array", "command"),
    [
        ("counters", ("rank",)),
        ("status", ("compare", "alpha", "beta")),
    ],
)
def test_commands__that_read_a_damaged_chunk_say_so_in_one_line(asserted, tmp_path, command, array):
    cube = copied(asserted, tmp_path / "sweep")
    for path in chunks(cube):
        if path.relative_to(cube).parts[0] == array:
            truncate(path, 21)

    name, *arguments = command
    code, output, errors = evalcube(name, cube, *arguments, cwd=cube.parent)

    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert f"array '{array}' cannot" in errors
    assert "verify --heal" in errors


def test_verify__is_not_for_a_cube_under_way(sweep):
    cube, _ = sweep
    with Lease.acquire(Cube.open(cube).records), pytest.raises(SweepError, match="works on cube"):
        verify_cube(cube)


def test_verify__finds_that_the_ledger_is_lost(sweep):
    cube, _ = sweep
    (cube / "_evalcube" / "ledger.jsonl").unlink()

    code, output, errors = evalcube("cube", "verify", cube, cwd=cube.parent)

    assert code == 2
    assert "`counters` counts" in output + errors
    assert "no receipt" in output + errors


@pytest.mark.parametrize("change", [longer, unpickling, of_another_type])
def test_heal__arrays_whose_own_metadata_are_not_the_cubes(made, tmp_path, change):
    cube = copied(made, tmp_path / "sweep")
    before = json.loads((cube / "status/zarr.json").read_text())
    change_own(cube, change)

    found = verify_cube(cube)
    healed = verify_cube(cube, heal=True, cache=tmp_path / "sweep" / "cache")

    (damage,) = found.damages
    assert damage.array == "status/zarr.json"
    assert damage.problem.startswith("differs")
    assert healed.whole
    assert json.loads((cube / "status/zarr.json").read_text()) == before
    assert verify_cube(cube).damages == []


def test_verify__what_a_killed_growth_left_is_no_damage(made, tmp_path):
    cube = copied(made, tmp_path / "sweep")
    change_own(cube, killed_growth)

    assert verify_cube(cube).damages == []


def test_run__has_an_arrays_own_metadata_from_the_cubes(sweep):
    cube, config = sweep
    before = json.loads((cube / "status/zarr.json").read_text())
    change_own(cube, longer)

    run(config, cluster=SHARED)

    assert json.loads((cube / "status/zarr.json").read_text()) == before


def test_verify__another_difficulty_is_another_version_of_the_code(sweep):
    cube, _ = sweep
    zarr.open_group(cube, mode="r+")["difficulty"][0, 0] = 3.5

    found = verify_cube(cube)

    assert not found.damages


def test_verify__weights_of_points_that_are_not_the_descriptions(sweep):
    cube, _ = sweep
    expected = content(cube)
    zarr.open_group(cube, mode="r+")["base_trials"][0, 0, 0] = 3

    found, healed = verify_cube(cube), verify_cube(cube, heal=True)

    assert [damage.problem.split()[0] for damage in found.damages] == ["differs"]
    assert healed.whole
    assert content(cube) == expected


def test_heal__says_what_weights_of_a_merged_cube_are_lost(sweep, tmp_path):
    cube, _ = sweep
    merge_cubes(tmp_path / "both.zarr", [cube])
    assert verify_cube(tmp_path / "both.zarr").whole
    shutil.rmtree(tmp_path / "both.zarr" / "base_trials")

    healed = verify_cube(tmp_path / "both.zarr", heal=True)

    assert not healed.whole
    (damage,) = (one for one in healed.damages if not one.healed)
    assert damage.array == "base_trials"
    assert "merge the cubes" in damage.problem
    assert verify_cube(tmp_path / "both.zarr").whole
