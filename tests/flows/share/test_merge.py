"""What contradicts is counted, shown and decided; what does not fit together is refused in words that help."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalcube.flows.read.reader import Reader
from evalcube.flows.share.merge import ConflictError, merge_cubes
from evalcube.flows.state.records import NOTES, read_notes
from evalcube.stages.reply.forms import Record
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.errors import CubeDamagedError, CubeExistsError
from tests.flows.read.merged.generated import bytes_of, make_cube
from tests.flows.read.merged.two_teams import OURS
from tests.flows.support import change_attributes, evalcube

pytestmark = pytest.mark.long


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


def test_merge_cubes__keeps_notes_that_all_have_in_common(pair: tuple[str, str], tmp_path: Path) -> None:
    for url, cache in zip(pair, ("one", "other"), strict=True):
        notes = {"name": "both", "cache": cache, "config": {"models": []}, "imported": {"tool": "x"}}
        Cube.open(url, writable=True).records.put(NOTES, json.dumps(notes).encode())
    output = str(tmp_path / "out.zarr")

    merge_cubes(output, pair, prefer="first")

    assert read_notes(Cube.open(output).records) == {"name": "both", "imported": {"tool": "x"}, "files": {}}
