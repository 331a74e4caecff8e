"""The table of trials: each row says of a trial what `show` and the cube's arrays say."""

import shutil

import pytest

import evalcube as ec
from evalcube.flows.errors import SweepError
from evalcube.flows.read.trials.read import trials
from tests.flows.read.trials.rows import rows
from tests.flows.support import evalcube


def test_rows__stand_in_the_order_of_the_plan(swept):
    places = [(r["model"], r["task"], r["param_length"], r["trial"], r["repeat"]) for r in rows(swept)]

    assert places == sorted(places)


def test_rows__stand_in_the_same_order_if_they_are_read_in_small_parts(swept, monkeypatch):
    whole = rows(swept)
    monkeypatch.setattr("evalcube.flows.read.trials.search._SPAN_CELLS", 1)

    parts = rows(swept)

    assert parts != whole
    assert sorted(parts, key=str) == sorted(whole, key=str)
    for first, second in zip(parts[::2], parts[1::2], strict=True):
        assert (first["repeat"], second["repeat"]) == (0, 1)
        assert first["prompt"] == second["prompt"]


def test_several_cubes__say_that_trials_have_several_rows(swept, judged, tmp_path):
    shutil.copytree(swept / "cube.zarr", tmp_path / "cube.zarr")
    cubes = [swept / "cube.zarr", tmp_path / "cube.zarr", judged / "cube.zarr"]

    (note,) = trials(cubes[:2], where=["task=arithmetic", "model=beta"]).notes

    assert note.startswith("3 cells are in several of these cubes")
    assert trials([cubes[0], cubes[2]]).notes == ()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--limit", "0"), "0 of 80 trials;"),
        (("--where", "tokens=100000.."), "No trial fulfils all of this."),
        (("--columns", ""), "--columns: it names no column. There are: cube, model"),
        (
            ("--where", "status=correct"),
            "--where: it knows nothing of outcomes. Give --status correct for that",
        ),
    ],
)
def test_trials__says_why_there_are_no_rows(swept, options, says):
    code, text, error = evalcube("trials", "cube.zarr", *options, cwd=swept)

    assert code == (2 if says.startswith("--") else 0)
    assert says in " ".join((text + error).split())
    assert ("No trial fulfils" in text) == says.startswith("No trial")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["tokns"]}, "`columns`: there is no 'tokns'. Did you mean 'tokens'"),
        ({"columns": ["length", "param_length"]}, "named twice"),
        ({"status": ["wrong"]}, "`status`: there is no 'wrong'"),
        ({"sort": "messages"}, "`sort`: messages holds a list"),
        ({"sort": "response"}, "Give a `limit`"),
        ({"sort": "latncy"}, "`sort`: there is no 'latncy'. Did you mean 'latency'"),
        ({"regex": "("}, "`regex`: '\\(' is no regular expression"),
        ({"grep": "x", "within": ["promt"]}, "`within`: there is no 'promt'. Did you mean 'prompt'"),
        ({"limit": -1}, "`limit`: -1 is less than 0"),
        ({"where": ["tokens=1", "tokens=2"]}, "`where`: 'tokens' is given twice"),
        ({"where": ["tokens=many"]}, "tokens is a number, but 'many' is none"),
        ({"where": {"tokens": "15..20"}}, "tokens is a number, and '15..20' is none"),
        ({"where": {"latency": (1, [])}}, "latency is a number"),
        ({"where": ["model=gamma"]}, "there is no model 'gamma'"),
    ],
)
def test_mistakes__are_one_clear_message(options, message, swept):
    with pytest.raises(SweepError, match=message):
        trials(swept / "cube.zarr", **options)


def test_public_name__is_this(swept):
    assert isinstance(ec.trials(swept / "cube.zarr"), ec.results.Trials)
    with pytest.raises(SweepError, match="no cube"):
        ec.trials([])


@pytest.mark.parametrize(
    "options",
    [{"reader": "theirs"}, {"reader": "theirs", "where": ["trial=0"]}, {"where": ["disagree=true"]}],
)
def test_trials__of_a_second_reader_that_there_is_not_are_refused(swept, options):
    with pytest.raises(SweepError, match="no task here has a second reader"):
        trials(swept / "cube.zarr", **options)


@pytest.mark.parametrize("options", [{"offset": -1}, {"limit": -1}, {"limit": 1.5}, {"reader": "mine"}])
def test_trials__refuse_numbers_and_readers_that_mean_nothing(swept, options):
    with pytest.raises(SweepError, match=f"`{next(iter(options))}`"):
        trials(swept / "cube.zarr", **options)
