"""Ratings by people: how they correct verdicts and boards, and which are refused."""

import json

import numpy as np
import pytest

import evalcube as ec
from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.read.gold import read_gold, with_ratings
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.read.verdict import cube_verdict
from evalcube.stages.analyze.labelled.additions import PEOPLE_SCORE
from tests.flows.judging import judged_config, write_rows
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.flows.read.test_verdict import NOWHERE, UNITS, written_cube


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A cube of two variants, which tests only read: its address and arrays."""
    return written_cube(tmp_path_factory.mktemp("written"))


@pytest.fixture
def written(made):
    """The address of the cube."""
    return made[0]


@pytest.mark.parametrize("name", ["gold.jsonl", "gold.csv"])
def test_cube_verdict__gold_by_id_or_unit(made, tmp_path, name):
    url, arrays = made
    plan = build_plan(from_mapping(judged_config(tmp_path, NOWHERE)))
    cell = plan.tasks[0].cells[0].cell
    judged = arrays[0]["judge"][0, 0, :, 0].tolist()
    rows = [
        {"id": cell.trial(i).extras["id"], "unit": "", "score": round(judged[i])}
        if i % 2
        else {"id": "", "unit": f"dataset/0/{i}", "score": round(judged[i])}
        for i in range(UNITS)
    ]
    lines = [json.dumps({**row, "note": "a\u2028b"}, ensure_ascii=False) for row in rows]
    if name.endswith("csv"):
        lines = ["unit,id,score", *(f"{row['unit']},{row['id']},{row['score']}" for row in rows)]
    (tmp_path / name).write_text("\n".join(lines))

    found = cube_verdict(url, "before", ["after"], gold=tmp_path / name)

    assert found.verdict.gold.units == UNITS
    assert found.verdict.gold.pearson > 0.8
    other = cube_verdict(url, "before", ["after"], gold=tmp_path / name, gold_variant="after")
    assert other.verdict.gold.pearson < found.verdict.gold.pearson


def test_cube_verdict__an_id_is_that_of_the_part_that_is_asked_for(tmp_path):
    write_rows(tmp_path / "rows.jsonl", lambda row: {**row, "id": row["id"].replace("japan", "france")})
    url, _ = written_cube(tmp_path)
    (tmp_path / "gold.jsonl").write_text('{"id": "france", "score": 4}')

    found = cube_verdict(
        ec.open_cube(url).isel(trial=slice(0, 10)), "before", ["after"], gold=tmp_path / "gold.jsonl"
    )

    assert (found.units, found.verdict.gold.units) == (10, 1)


def test_cube_verdict__ratings_of_one_variant_count_however_rows_name_it(written, tmp_path):
    names = ({}, {"variant": "before"}, {"variant": "0"})
    rows = [{"unit": f"dataset/0/{i}", "score": 4, **names[i % 3]} for i in range(UNITS)]
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, rows)))

    found = cube_verdict(written, "before", ["after"], gold=tmp_path / "gold.jsonl")

    assert found.verdict.gold.units == UNITS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"unit": "dataset/0/1", "score": 7}', r"gold.jsonl:1: score: .* less than or equal to 5, got 7"),
        ('{"unit": "dataset/0/1", "score": true}', "gold.jsonl:1: score: must be a number, got true"),
        ('{"unit": "dataset/0/1"}', "has neither score nor correct"),
        ('{"unit": "dataset/0/1", "score": " "}', "has neither score nor correct"),
        (
            '{"unit": "dataset/0/1", "correct": "maybe"}',
            "gold.jsonl:1: correct: .* valid boolean.*, got 'maybe'",
        ),
        ('{"unit": "dataset/0/1", "score": 3, "variant": "x"}', "`variant`: no evaluation is called 'x'"),
        ('{"score": 3}', "has neither unit nor id"),
        ('\n{"unit": "u", "score": 3', "gold.jsonl:2: is no JSON object"),
        ('{"unit": "u", "score": 3}\n{"unit": "u", "score": 4}', "gold.jsonl:2: unit 'u' is rated twice"),
        ('{"id": "mars", "score": 3}', "none of the 1 rated units is compared here: 'mars'.*dataset/0/0"),
        ("", "has no rows"),
    ],
)
def test_cube_verdict__wrong_gold_is_told(written, tmp_path, content, message):
    (tmp_path / "gold.jsonl").write_text(content)

    with pytest.raises(SweepError, match=message):
        cube_verdict(written, "before", ["after"], gold=tmp_path / "gold.jsonl")


def test_read_gold__takes_texts_without_the_blanks_around_them(tmp_path):
    (tmp_path / "gold.csv").write_text("unit,variant,correct,score\nqa/0/1 , after, true, 4\n")

    found = read_gold(tmp_path / "gold.csv", {})

    assert (found.right, found.scores) == ({"after": {"qa/0/1": 1.0}}, {"after": {"qa/0/1": 4.0}})


def test_leaderboard__says_which_ratings_correct_too_few_answers(written, tmp_path):
    rows = [{"unit": f"dataset/0/{i}", "variant": "after", "score": 4, "correct": True} for i in range(10)]
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, rows)))

    found = leaderboard(written, gold=tmp_path / "gold.jsonl")

    assert found.records() == leaderboard(written).records()
    assert any("10 answers" in note for note in found.notes)


def test_with_ratings__the_only_variant_needs_no_name(tmp_path):
    cube = make_cube(tmp_path / "one.zarr", Recipe(models=("alpha",), lengths=(3,), depths=(), trials=(0, 2)))
    (tmp_path / "gold.jsonl").write_text('{"unit": "arithmetic/0/1", "score": 4}')

    rated = with_ratings(cube.dataset(), Reader(cube.url), tmp_path / "gold.jsonl")

    np.testing.assert_array_equal(rated[PEOPLE_SCORE].values.ravel(), [np.nan, 4])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"unit": "dataset/0/1", "score": 4}, "rows do not name the `variant`"),
        ({"unit": "dataset/7/1", "score": 4, "variant": "after"}, "unit 'dataset/7/1' is not in this part"),
        ({"unit": f"dataset/0/{'9' * 5000}", "score": 4, "variant": "after"}, "is not in this part"),
    ],
)
def test_leaderboard__wrong_gold_is_told(written, tmp_path, row, message):
    (tmp_path / "gold.jsonl").write_text(json.dumps(row))

    with pytest.raises(SweepError, match=message):
        leaderboard(written, gold=tmp_path / "gold.jsonl")
