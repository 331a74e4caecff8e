"""Descriptions of sweeps that cubes have: which are taken, and what is told of the others."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.spec import (
    damaged_at,
    described_base,
    description,
    description_problem,
    filled_base,
    in_short,
    joined_base,
    parse_spec,
)
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS
from tests.flows.support import sweep_config

SIZES = {"model": 2, "task": 2, "params": 4, "counter": len(COUNTERS + QUESTION_COUNTERS)}


@pytest.fixture
def spec(tmp_path) -> dict[str, Any]:
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1", models=("a", "b"))
    return copy.deepcopy(build_plan(from_mapping(config)).spec())


def test_parse_spec__takes_a_description_whose_sizes_are_the_cubes(spec) -> None:
    parsed = parse_spec(spec, SIZES)

    assert parse_spec(spec) == parsed
    assert [task.label for task in parsed.tasks] == ["arithmetic", "boolean"]
    for name, size in SIZES.items():
        with pytest.raises(SweepError, match=rf"lists {size} along {name}, .* have {size + 1}\."):
            parse_spec(spec, {**SIZES, name: size + 1})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": 2}, r"has format 2; this version reads format 1"),
        ({"seed": 2**63}, r"damaged .* spec\.seed"),
        ({"seed": -1}, r"damaged .* spec\.seed"),
        ({"tasks": []}, r"damaged .* spec\.tasks"),
        ({"evaluations": []}, r"damaged .* spec\.evaluations"),
        ({"asserted_prices": [["\ud800"]]}, r"damaged .* spec"),
    ],
)
def test_parse_spec__names_what_no_sweep_wrote(spec, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(SweepError, match=problem):
        parse_spec(spec | change)


@pytest.mark.parametrize("document", [None, [], "text", {}])
def test_parse_spec__refuses_what_is_no_description(document: object) -> None:
    with pytest.raises(SweepError, match="damaged or not by evalcube"):
        parse_spec(document)


def test_parse_spec__takes_the_largest_seed_and_weight_and_refuses_half_a_character(spec) -> None:
    spec["seed"], spec["tasks"][0]["points"][0]["base"] = 2**63 - 1, 2**53

    assert parse_spec(spec).seed == 2**63 - 1
    for wrong in (0, 2**53 + 1):
        spec["tasks"][0]["points"][0]["base"] = wrong
        with pytest.raises(SweepError, match=r"spec\.tasks\[0\]\.points\[0\]\.base"):
            parse_spec(spec)
    spec["tasks"][0]["points"][0]["base"] = 1
    spec["evaluations"][0]["sampler"]["params"]["top_p"] = float("nan")
    with pytest.raises(SweepError, match=r"evaluations\[0\]\.sampler\.params.* without NaN"):
        parse_spec(spec)
    spec["evaluations"][0]["sampler"]["params"]["top_p"] = 0.5
    spec["tasks"][0]["label"] = "\ud800"
    with pytest.raises(SweepError, match="half a character"):
        parse_spec(spec)


def test_description_problem__is_a_digest_that_is_not_of_what_it_stands_beside(spec) -> None:
    attrs: dict[str, Any] = copy.deepcopy(description(spec))
    assert description_problem(attrs, parse_spec(spec)) is None
    assert description_problem({"spec": spec}, parse_spec(spec)) is None

    attrs["spec"]["seed"] += 1
    assert "digest" in str(description_problem(attrs, parse_spec(attrs["spec"])))
    spec["evaluations"][1]["eval_id"] = "x"
    assert "evaluations[1].eval_id is 'x'" in str(description_problem({"spec": spec}, parse_spec(spec)))


def test_damage__is_told_in_one_line_and_values_in_eighty_characters() -> None:
    assert "damaged or not by evalcube: spec: a b" in damaged_at("spec", "a\n  b").message
    assert in_short({"a": 1}) == '{"a": 1}'
    assert [len(in_short("x" * count)) for count in (78, 79, 200)] == [80, 80, 80]
    assert [in_short("x" * count).endswith("...") for count in (78, 79)] == [False, True]


def test_base__is_the_stored_design_and_the_described_one_of_later_points(spec) -> None:
    spec["tasks"][0]["points"][2]["base"] = 5
    described = described_base(parse_spec(spec), 4)
    assert described.tolist() == [[8, 8, 5, 8], [8, 0, 0, 0]]

    stored = np.zeros((2, 2, 4), np.int64)
    stored[0, 0, :2] = 4

    # A later point weighs no more than those of the first plan; an evaluation without any is as described.
    assert filled_base(stored, described, 2)[0].tolist() == [[4, 4, 4, 4], [4, 0, 0, 0]]
    assert filled_base(stored, described, 2)[1].tolist() == described.tolist()
    for none in (None, stored[:1], stored[..., :3]):
        assert filled_base(none, described, 2).tolist() == [described.tolist()] * 2


def test_joined_base__weighs_points_alike_where_designs_contradict() -> None:
    one = np.array([[[8, 16, 0], [4, 4, 0]]])

    assert joined_base([one, 2 * one]).tolist() == (2 * one).tolist()
    assert joined_base([one, np.array([[[8, 8, 0], [0, 4, 9]]])]).tolist() == [[[1, 1, 0], [4, 4, 9]]]
