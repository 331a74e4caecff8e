"""Which part of a cube conditions mean, and what its plan and prices say."""

import math
import re

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.read.trials.open_cube import OpenCube
from evalcube.flows.read.trials.read import trials
from tests.flows.read.trials.rows import rows


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        (["row_id=france,peru"], {"france", "peru"}),
        ({"row_id": "italy"}, {"italy"}),
        (["rubric=Names Tokyo."], {"japan"}),
        ({"rubric": ["Names Paris.", "Names Rome."]}, {"france", "italy"}),
        ({"row_id": ["italy", "spain"]}, {"italy", "spain"}),
        ({"row_id": lambda name: name.startswith("po")}, {"portugal", "poland"}),
    ],
)
def test_where__takes_names_of_rows(condition, names, judged):
    found = rows(judged, where=condition, columns=["row_id", "model"])

    assert {row["row_id"] for row in found} == names
    assert len(found) == 2 * len(names)


def test_where__says_that_no_row_is_called_so(judged, swept):
    for folder in (judged, swept):
        with pytest.raises(SweepError, match="`where`: there is no row_id"):
            rows(folder, where=["row_id=atlantis"])


@pytest.mark.parametrize(
    ("options", "keeps"),
    [
        ({"where": ["model=beta"]}, lambda r: r["model"] == "beta"),
        (
            {"where": ["task=arithmetic", "param_length=4.."]},
            lambda r: r["task"] < "b" and r["param_length"] > 3,
        ),
        ({"where": {"tier": "hard"}}, lambda r: "hard" in r["tiers"]),
        ({"where": ["trial=1,3", "repeat=1"]}, lambda r: r["trial"] in (1, 3) and r["repeat"] == 1),
        ({"where": ["tokens=15..20"]}, lambda r: 15 <= r["tokens"] <= 20),
        ({"where": {"latency": lambda seconds: seconds < 0.01}}, lambda r: r["latency"] < 0.01),
        ({"status": ["incorrect", "invalid"]}, lambda r: r["status"] in ("incorrect", "invalid")),
        ({"status": ["answered"]}, lambda _: False),
        ({"grep": "brackets"}, lambda r: "brackets" in r["prompt"] + r["response"]),
        ({"regex": r"Answer: \d$"}, lambda r: bool(re.search(r"Answer: \d$", r["response"]))),
        ({"grep": "Answer", "within": ["prompt"], "status": ["correct"]}, lambda r: r["status"] == "correct"),
    ],
    # Functions in conditions would have their addresses in the names, which differ in each process.
    ids=lambda value: (
        re.sub(r"<function <lambda> at \w+>", "a function", str(value)) if isinstance(value, dict) else ""
    ),
)
def test_conditions__keep_the_rows_that_fulfil_them(options, keeps, swept):
    every = rows(swept)

    found = rows(swept, **options)

    assert found == [row for row in every if keeps(row)]
    assert trials(swept / "cube.zarr", **options).count() == len(found)


@pytest.mark.parametrize(
    ("config", "known"), [({"prices": {"prompt": 0, "completion": 0}}, True), ({}, False)]
)
def test_prices__of_zero_are_known_where_the_config_declares_them(config, known, swept, monkeypatch):
    opened = OpenCube(swept / "cube.zarr", {}, None)
    monkeypatch.setattr(opened.cube, "read_label", lambda _: np.zeros(2))
    opened.reader.notes = {"config": {"models": [{"name": "alpha", **config}, {"name": "beta"}]}}

    assert [math.isnan(row[0]) for row in opened.prices] == [not known, True]
    assert opened.cached_prices.tolist() == [0, 0]
    opened = OpenCube(swept / "cube.zarr", {}, None)
    prices = {"prompt": 2.0, "completion": 4.0, "cached": 0.5}
    opened.reader.notes = {"config": {"models": [{"name": "alpha", "prices": prices}]}}
    assert opened.cached_prices.tolist() == [-1.5, 0]


def test_conditions__take_a_number_as_it_is_shown(swept):
    shown = [row["latency"] for row in rows(swept)]

    found = rows(swept, where=[f"latency={shown[0]}"])

    assert [row["latency"] for row in found] == [one for one in shown if one == shown[0]]
