"""Which trials are found, in which order, and within which time."""

import shutil

import numpy as np
import pytest
import zarr

from evalcube.flows.errors import SweepError
from evalcube.flows.read.reader import STATUSES, Reader
from evalcube.flows.read.trials.columns import COLUMNS, objects
from evalcube.flows.read.trials.read import trials
from evalcube.flows.read.trials.search import Order, sort_rows
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from tests.flows.read.trials.rows import hostile, rows


@pytest.mark.parametrize(
    "sort", ["latency", "-latency", "tokens", "-model", "answer", "-cost", "param_prob_not"]
)
@pytest.mark.parametrize("limit", [None, 7])
def test_sort__is_that_of_all_rows_and_absent_values_come_last(sort, limit, swept):
    every = rows(swept, columns=None)
    name, down = sort.removeprefix("-"), sort.startswith("-")
    there = sorted((r for r in every if r[name] is not None), key=lambda r: r[name], reverse=down)

    found = rows(swept, sort=sort, limit=limit, offset=2)

    expected = (there + [r for r in every if r[name] is None])[2:]
    assert found == expected[:limit]
    assert len(trials(swept / "cube.zarr", sort=sort, limit=limit, offset=2)) == len(found)


@pytest.mark.parametrize("down", [False, True])
def test_sort__of_texts_is_that_of_python_and_keeps_those_that_are_equal_as_they_came(down):
    names = ["b", None, "\ud800", "a", "\U0001f600", "b", "", "\uffff", None]
    found = {"cube": np.zeros(len(names)), "place": np.arange(len(names))}
    order = Order(next(one for one in COLUMNS if one.name == "answer"), down)

    (kept,) = sort_rows([(found, objects(names))], order, None)

    there = [place for place, name in enumerate(names) if name is not None]
    there.sort(key=lambda place: names[place], reverse=down)
    assert kept["place"].tolist() == [*there, 1, 8]


def test_sort__keeps_no_more_rows_than_are_shown(swept, monkeypatch):
    monkeypatch.setattr("evalcube.flows.read.trials.search._SPARE", 0)
    monkeypatch.setattr("evalcube.flows.read.trials.search._SPAN_CELLS", 1)
    whole = rows(swept, sort="latency", columns=["latency", "trial"])

    assert rows(swept, sort="latency", columns=["latency", "trial"], limit=2, offset=3) == whole[3:5]


def test_limit__reads_no_further(swept, monkeypatch):
    monkeypatch.setattr("evalcube.flows.read.trials.search._SPAN_CELLS", 1)
    read = []
    honest = Cube.read_span
    monkeypatch.setattr(Cube, "read_span", lambda *args: read.append(args) or honest(*args))

    assert len(rows(swept, limit=3, columns=["status"])) == 3
    assert {args[1] for args in read} == {0}


def test_missing_trials__are_rows_only_if_they_are_named(swept, tmp_path):
    shutil.copytree(swept / "cube.zarr", tmp_path / "cube.zarr")
    cube = Cube.open(tmp_path / "cube.zarr", writable=True)
    region = next(cube.regions())
    arrays = cube.read_region(region)
    arrays["status"][0, 0, 0, 0] = Status.MISSING
    arrays["status"][0, 0, 1, 0] = Status.TRANSPORT
    cube.write_region(region, arrays)

    assert len(rows(tmp_path)) == 78
    assert [row["trial"] for row in rows(tmp_path, status=["missing", "transport"], columns=["trial"])] == [
        0,
        1,
    ]


def test_codes_that_nobody_writes__are_trials_that_are_missing(swept, tmp_path):
    shutil.copytree(swept / "cube.zarr", tmp_path / "cube.zarr")
    zarr.open_group(tmp_path / "cube.zarr", mode="r+")["status"][0] = 77

    found = [rows(tmp_path, status=[status], where=["model=alpha"]) for status in STATUSES]

    assert dict(zip(STATUSES, map(len, found), strict=True)) == dict.fromkeys(STATUSES, 0) | {"missing": 40}
    assert {row["status"] for row in found[STATUSES.index("missing")]} == {"missing"}
    assert Reader(tmp_path / "cube.zarr").view(0, 0, 0, 0).status == "missing"


def test_regex__that_runs_out_of_time_is_no_match_and_given_up_if_it_goes_on(swept, tmp_path, monkeypatch):
    monkeypatch.setattr("evalcube.flows.read.trials.search.SECONDS", 0.01)
    cache = hostile(swept, tmp_path, ["a" * 40 + "!"])
    table = trials(
        swept / "cube.zarr", cache=cache, regex="(a|a)+$", within=["response"], limit=1, where=["trial=0"]
    )
    monkeypatch.setattr("evalcube.flows.read.trials.search._MOST_SLOW", 100)

    assert list(table.rows()) == []
    assert table.notes[-1].startswith("The regular expression ran out of time on 16 texts")
    monkeypatch.setattr("evalcube.flows.read.trials.search._MOST_SLOW", 3)
    with pytest.raises(SweepError, match=r"`regex`: .* 3 others"):
        list(trials(swept / "cube.zarr", cache=cache, regex="(a|a)+$", within=["response"]).rows())
