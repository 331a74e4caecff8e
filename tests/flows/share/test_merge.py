"""What contradicts is counted, shown and decided; what does not fit together is refused in words that help."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from evalcube.flows.errors import SweepError
from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.read.merged.provenance import sources_of
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.statistics import table
from evalcube.flows.share.merge import ConflictError, merge_cubes
from evalcube.flows.state.records import MERGED, NOTES, read_notes
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import Status
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.regions import Region, region_digest
from evalcube.storage.errors import CubeDamagedError, CubeExistsError
from tests.flows.read.merged.generated import Recipe, bytes_of, content, make_cube
from tests.flows.support import change_attributes, evalcube

pytestmark = pytest.mark.long

OURS = Recipe(models=("alpha", "beta"), depths=(), trials=(0, 4), at=1_000)
THEIRS = replace(OURS, models=("beta", "gamma"), salt="theirs", at=2_000)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two teams' cubes, which tests copy."""
    folder = tmp_path_factory.mktemp("made")
    make_cube(folder / "ours.zarr", OURS)
    make_cube(folder / "theirs.zarr", THEIRS)
    return folder


@pytest.fixture
def ours(made: Path, tmp_path: Path) -> str:
    """The address of one team's cube."""
    return str(shutil.copytree(made / "ours.zarr", tmp_path / "ours.zarr"))


@pytest.fixture
def pair(made: Path, ours: str, tmp_path: Path) -> tuple[str, str]:
    """Two teams' cubes, which have one model in common."""
    return ours, str(shutil.copytree(made / "theirs.zarr", tmp_path / "theirs.zarr"))


def test_merge_cubes__contradictions_are_refused_and_named(pair: tuple[str, str], tmp_path: Path) -> None:
    output = tmp_path / "out.zarr"

    with pytest.raises(ConflictError, match="12 trials have other") as caught:
        merge_cubes(str(output), pair)

    (conflict,) = caught.value.conflicts
    assert (conflict.model, conflict.task, conflict.trials) == ("beta", "arithmetic", 12)
    assert (conflict.kept, conflict.hidden, conflict.by_nature) == (*pair, False)
    assert 0 < conflict.status_changes <= 12
    assert conflict.example["kept"] != conflict.example["hidden"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours.zarr", "theirs.zarr"]


def test_merge_cubes__prefer_decides(pair: tuple[str, str], tmp_path: Path) -> None:
    outcomes = {}
    for name, cubes, prefer in (
        ("first", pair, "first"),
        ("other", pair[::-1], "first"),
        ("newer", pair, "newer"),
        ("newer, back", pair[::-1], "newer"),
    ):
        output = str(tmp_path / f"{name}.zarr")
        done = merge_cubes(output, cubes, prefer=prefer)
        assert sum(conflict.trials for conflict in done.conflicts) == 12
        outcomes[name] = content(output)

    ours, theirs = content(pair[0]), content(pair[1])
    shared = [key for key in ours if key in theirs and key[1:] == ("trials",)]
    assert len(shared) == 3
    assert all(outcomes["first"][key] == ours[key] for key in shared)
    assert outcomes["other"] == outcomes["newer"] == outcomes["newer, back"]
    assert all(outcomes["newer"][key] == theirs[key] for key in shared)


def test_merge_cubes__what_no_time_decides_is_refused(pair: tuple[str, str], tmp_path: Path) -> None:
    shutil.rmtree(pair[1])
    make_cube(pair[1], replace(THEIRS, at=OURS.at))

    with pytest.raises(ConflictError, match="which is newer"):
        merge_cubes(str(tmp_path / "out.zarr"), pair, prefer="newer")


@pytest.mark.usefixtures("ours")
def test_show__reads_the_cache_of_the_side_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    make_cube(tmp_path / "theirs.zarr", replace(OURS, salt="theirs", at=2_000))
    for name in ("ours", "theirs"):
        view = Reader(tmp_path / f"{name}.zarr").view(0, 0, 0, 0)
        body = {"choices": [{"message": {"content": name}, "finish_reason": "stop"}]}
        open_cache(str(tmp_path / f"{name}.replies")).put_many(
            [(view.digest, Record(200, view.latency, json.dumps(body).encode()).encode())]
        )

    for prefer, shown in (("first", "ours"), ("newer", "theirs")):
        output = f"{prefer}.zarr"
        code, said, errors = evalcube(
            "merge", output, "ours.zarr", "theirs.zarr", "--prefer", prefer, cwd=tmp_path
        )

        assert code == 0, errors
        assert f"decided by --prefer {prefer}" in said
        assert Reader(tmp_path / output).view(0, 0, 0, 0).response == shown


def test_merge_cubes__finished_trials_hide_transport_errors(ours: str, tmp_path: Path) -> None:
    urls = [str(tmp_path / "failed.zarr"), ours]
    make_cube(urls[0], replace(OURS, failed=0.5))

    done = merge_cubes(str(tmp_path / "out.zarr"), urls)

    assert done.conflicts == ()
    assert content(tmp_path / "out.zarr") == content(urls[1])
    with Ledger(Cube.open(str(tmp_path / "out.zarr")).records) as ledger:
        assert all(receipt.complete and not receipt.transport for receipt in ledger.receipts())


REFUSED = {
    "seed": ({"seed": 7}, "has seed 7"),
    "label": (
        {"samplers": {"greedy": {"temperature": 1}}},
        r"'alpha / .*temperature 0 / 1 in .*--rename .*theirs.zarr:alpha=alpha-theirs",
    ),
    "criteria": (
        {
            "tasks": {
                "arithmetic": {
                    "manifold": [{"points": [{"length": 3}]}],
                    "assertions": [{"type": "contains", "value": "Answer"}],
                }
            }
        },
        r"task 'arithmetic' has assertions .*--rename .*theirs.zarr:arithmetic=arithmetic-theirs",
    ),
}


def test_merge_cubes__refuses_all_contradictions_at_once_with_a_line_that_ends_them(
    ours: str, tmp_path: Path
) -> None:
    urls = [ours, *(str(tmp_path / f"{name}.zarr") for name in ("ann", "ben"))]
    for url, limit in zip(urls[1:], (100, 50), strict=True):
        make_cube(
            url, replace(OURS, changes={"samplers": {"greedy": {"temperature": 0, "max_tokens": limit}}})
        )

    with pytest.raises(SweepError) as caught:
        merge_cubes(str(tmp_path / "out.zarr"), urls)

    assert "max_tokens 200 / 100" in caught.value.message
    assert "max_tokens 200 / 50" in caught.value.message
    words = caught.value.remedy.split(" ")
    renames = [words[place + 1] for place, word in enumerate(words) if word == "--rename"]
    assert merge_cubes(str(tmp_path / "out.zarr"), urls, rename=renames).sizes["model"] == 3 * len(
        OURS.models
    )
    rows = table(str(tmp_path / "out.zarr"), by=["source"]).to_dataframe()
    assert sorted(rows["source"]) == ["ann", "ben", "ours"]


def test_merged__points_say_of_which_cubes_they_are_where_all_asked_one_model(tmp_path: Path) -> None:
    urls = [str(tmp_path / f"{name}.zarr") for name in ("ann", "ben")]
    for url, lengths in zip(urls, ((3, 4), (4, 5)), strict=True):
        make_cube(url, replace(OURS, lengths=lengths, depths=()))

    merge_cubes(str(tmp_path / "out.zarr"), urls)

    rows = table(str(tmp_path / "out.zarr"), by=["source"]).to_dataframe()
    assert sorted(rows["source"]) == ["ann", "ann, ben", "ben"]


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_merge_cubes__what_does_not_fit_is_refused(
    ours: str, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    urls = [ours, str(tmp_path / "theirs.zarr")]
    make_cube(urls[1], replace(OURS, changes=changes))

    with pytest.raises(SweepError, match=message):
        merge_cubes(str(tmp_path / "out.zarr"), urls)

    assert not (tmp_path / "out.zarr").exists()


def test_merge_cubes__renamed_models_stand_side_by_side(ours: str, tmp_path: Path) -> None:
    urls = [ours, str(tmp_path / "theirs.zarr")]
    make_cube(urls[1], replace(OURS, changes={"samplers": {"greedy": {"temperature": 1}}}))
    output = str(tmp_path / "out.zarr")

    merge_cubes(output, urls, rename=[f"{urls[1]}:{name}={name}-warm" for name in ("alpha", "beta")])

    assert list(Cube.open(output).read_label("model_name")) == ["alpha", "alpha-warm", "beta", "beta-warm"]
    with pytest.raises(SweepError, match="nor a task 'gamma'"):
        merge_cubes(str(tmp_path / "x.zarr"), urls, rename=[f"{urls[1]}:gamma=delta"])
    for text in ("alpha=beta", f"{urls[1]}:alpha", f"{urls[1]}:alpha= ", f"{urls[1]}:alpha=\x1b[2J"):
        with pytest.raises(SweepError, match="no new name"):
            merge_cubes(str(tmp_path / "x.zarr"), urls, rename=[text])


def test_merge_cubes__a_place_that_is_taken_is_refused(pair: tuple[str, str]) -> None:
    before = bytes_of(pair[1])

    with pytest.raises(CubeExistsError):
        merge_cubes(pair[1], pair)

    assert bytes_of(pair[1]) == before


def test_merge_cubes__damaged_regions_are_refused(pair: tuple[str, str], tmp_path: Path) -> None:
    chunk = Path(pair[1], "tokens", "c.1.0.0.0.0")  # of the model that the other cube has not
    data = bytearray(chunk.read_bytes())
    data[-1] ^= 1
    chunk.write_bytes(data)

    with pytest.raises(CubeDamagedError, match="a chunk of array 'tokens' cannot be decoded"):
        merge_cubes(str(tmp_path / "out.zarr"), pair, prefer="first")
    assert not (tmp_path / "out.zarr").exists()


def test_merge_cubes__inputs_are_only_read(pair: tuple[str, str], tmp_path: Path) -> None:
    def state() -> list[tuple[str, int, int]]:
        return sorted(
            (str(path), path.stat().st_mtime_ns, path.stat().st_size)
            for url in pair
            for path in Path(url).rglob("*")
        )

    before = state()

    merge_cubes(str(tmp_path / "out.zarr"), pair, prefer="first")

    assert state() == before


def test_merge_cubes__provenance_names_each_source_once(pair: tuple[str, str], tmp_path: Path) -> None:
    first, second = str(tmp_path / "first.zarr"), str(tmp_path / "second.zarr")
    merge_cubes(first, pair, prefer="first")

    merge_cubes(second, [first, pair[0]], prefer="first")

    sources, _ = sources_of(Cube.open(second))
    assert [source.name for source in sources] == ["ours", "theirs"]
    assert [source.models for source in sources] == [
        ["alpha", "beta"],
        ["beta", "gamma"],
    ]
    assert [(source.first, source.last, source.trials) for source in sources] == [
        (1_000, 1_000, 24),
        (2_000, 2_000, 24),
    ]


def test_merge_cubes__what_a_hostile_cube_says_of_its_sources_is_bounded(
    pair: tuple[str, str], tmp_path: Path
) -> None:

    document = json.loads(Path(pair[0], "zarr.json").read_text())
    entry = {
        "name": "x",
        "ledger": "0" * 64,
        "spec": "0" * 64,
        "models": [],
        "tasks": [],
        "trials": 1,
        "graders": [],
    }
    document["attributes"][MERGED] = {
        "sources": [
            *({**entry, "ledger": f"{number:064x}"} for number in range(5_000)),
            {**entry, "name": "x" * 10**6},
            {**entry, "more": 1},
            "nothing",
        ],
        "more": {"deep": [[[[]]]]},
    }
    Path(pair[0], "zarr.json").write_text(json.dumps(document))

    merge_cubes(str(tmp_path / "out.zarr"), pair, prefer="first")

    assert len(json.dumps(Cube.open(str(tmp_path / "out.zarr")).attrs[MERGED])) < 100_000


def test_merge_cubes__a_description_that_lies_is_refused(pair: tuple[str, str], tmp_path: Path) -> None:
    def lie(spec: dict[str, Any]) -> None:
        spec["evaluations"][0]["request_model"] = "another"

    change_attributes(pair[1], lie)

    with pytest.raises(CubeDamagedError, match="not the digest of its fields"):
        merge_cubes(str(tmp_path / "out.zarr"), pair, prefer="first")


def test_merge_cubes__flags_that_contradict_are_compared_again(pair: tuple[str, str], tmp_path: Path) -> None:
    cube = Cube.open(pair[1], writable=True)
    flags = cube.read_duplicates()[0]
    flags[0, 1] = 1 - flags[0, 1]
    cube.write_duplicates(0, flags)

    done = merge_cubes(str(tmp_path / "out.zarr"), pair, prefer="first")

    assert any("do not agree which prompts" in note for note in done.notes)
    merged = Cube.open(str(tmp_path / "out.zarr")).read_duplicates()[0]
    assert (merged[0] == 255).all()
    assert (merged[1] != 255).all()


def test_status__the_codes_that_the_overlay_ranks() -> None:
    assert [int(code) for code in Status] == [0, 1, 2, 3, 4, 254, 255]


def test_read__what_the_ledger_vouches_for_while_a_run_goes_on(pair: tuple[str, str]) -> None:
    one, region = Input(pair[0]), Region(0, 0, 0)
    before = one.receipts[region]
    cube = Cube.open(pair[0], writable=True)
    arrays = cube.read_region(region)
    arrays["tokens"] = arrays["tokens"] + np.int32(1)
    digest = cube.write_region(region, arrays)

    with pytest.raises(CubeDamagedError, match="is not what was recorded"):
        one.read_region(region)
    other = replace(before, region=Region(0, 7, 0))
    with Ledger(cube.records) as ledger:
        ledger.append(other)
        ledger.append(replace(before, generation=before.generation + 1, digest=digest))
    found = one.read_region(region)

    assert found is not None
    assert found[0].generation == before.generation + 1
    assert np.array_equal(found[1]["tokens"], arrays["tokens"])
    assert one.read_region(other.region) is None  # as it was not there when the cube was listed


def test_read__asks_for_chunks_again_only_where_a_region_is_not_as_recorded(
    pair: tuple[str, str], monkeypatch: Any
) -> None:
    one, region = Input(pair[0]), Region(0, 0, 0)
    asked, look = [], Cube.chunk_problems
    monkeypatch.setattr(Cube, "chunk_problems", lambda *given: asked.append(given) or look(*given))

    assert (one.read_region(region) is None, asked) == (False, [])
    stored = zarr.open_group(pair[0], mode="r+")["status"]
    stored[0] = np.full(stored.shape[1:], 77, np.uint8)
    before = one.receipts[region]
    stored = one.cube.stored_arrays(region, one.cube.trial_arrays)
    arrays = one.cube.shape_of(before).crop(stored, before.trials, before.repeats)
    one.receipts[region] = replace(before, digest=region_digest(arrays))
    with pytest.raises(CubeDamagedError, match="holds invalid values"):
        one.read_region(region)
    assert asked


def test_merge_cubes__keeps_notes_that_all_have_in_common(pair: tuple[str, str], tmp_path: Path) -> None:
    for url, cache in zip(pair, ("one", "other"), strict=True):
        notes = {"name": "both", "cache": cache, "config": {"models": []}, "imported": {"tool": "x"}}
        Cube.open(url, writable=True).records.put(NOTES, json.dumps(notes).encode())
    output = str(tmp_path / "out.zarr")

    merge_cubes(output, pair, prefer="first")

    assert read_notes(Cube.open(output).records) == {"name": "both", "imported": {"tool": "x"}, "files": {}}
