"""The table of trials: each row says of a trial what `show` and the cube's arrays say."""

import json
import math
import re
import shutil

import numpy as np
import pytest
import zarr

import evalcube as ec
from evalcube.flows.errors import SweepError
from evalcube.flows.read.reader import STATUSES, Reader
from evalcube.flows.read.trials.columns import COLUMNS, arrow_schema, objects
from evalcube.flows.read.trials.open_cube import OpenCube
from evalcube.flows.read.trials.read import trials
from evalcube.flows.read.trials.search import Order, sort_rows
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import Status
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from tests.flows.support import evalcube, reset, sweep_config, write_config


@pytest.fixture(scope="module")
def swept(tmp_path_factory, _served):
    """A folder with a sweep of two models, several tasks and repeats."""
    reset(_served)
    folder = tmp_path_factory.mktemp("swept")
    config = sweep_config(folder, _served.base_url, trials=5, cells=3, models=("alpha", "beta"), repeats=2)
    config["samplers"]["greedy"]["temperature"] = 1
    for model in config["models"]:
        model["simulate"] = {"ability": 1.0, "tokens": 20}
        model["prices"] = {"prompt": 1, "completion": 2}
    assert evalcube("run", write_config(folder, config), "--quiet", cwd=folder)[0] == 0
    return folder


def rows(folder, **options):
    return list(trials(folder / "cube.zarr", **options).rows())


def test_rows__are_what_show_says_of_each_trial(swept):
    reader = Reader(swept / "cube.zarr")

    found = rows(swept)

    assert len(found) == 2 * (3 + 1) * 5 * 2
    for row in found[::7]:
        task, slot = reader.point(row["task"], row["params"])
        view = reader.view(
            reader.plan.evaluation_index(row["model"]), task, slot, row["trial"], row["repeat"]
        )
        for name in (
            "task",
            "trial",
            "repeat",
            "status",
            "response",
            "reasoning",
            "reference",
            "tokens",
            "digest",
        ):
            assert row[name] == getattr(view, name), name
        assert (row["answer"], row["messages"]) == (view.parsed, list(view.messages))
        assert row["latency"] == pytest.approx(view.latency, rel=1e-6)
        assert json.loads(row["params"]) == dict(view.params)
        assert row["param_length"] == view.params["length"]
        assert row["cost"] == pytest.approx((row["prompt_tokens"] + 2 * row["tokens"]) / 1e6)


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


def test_rows__of_data_sets_have_row_and_name_and_opinions_of_judges(judged):
    found = rows(judged)

    assert {row["row_id"] for row in found} >= {"france", "romania"}
    for row in found:
        assert row["row_id"] in row["prompt"].lower()
        given = [one["score"] for one in row["opinions"] if one["score"] is not None]
        by_judge = {}
        for one in row["opinions"]:
            by_judge.setdefault(one["judge"], []).append(one["score"])
        assert given
        assert row["judge"] == pytest.approx(
            np.mean([np.mean(scores) for scores in by_judge.values()]), abs=1e-3
        )
        assert 1 <= row["fact"] <= 5
    bare = rows(judged, cache=judged / "nothing")[0]
    assert [one["score"] for one in bare["opinions"]] == [one["score"] for one in found[0]["opinions"]]
    assert {one["reason"] for one in bare["opinions"]} == {None}


def test_opinions__are_absent_without_judges_and_else_read_alone(swept, judged, monkeypatch):
    asked, read = [], Cube.read_region
    monkeypatch.setattr(
        Cube, "read_region", lambda cube, region, names=None: asked.append(names) or read(cube, region, names)
    )

    assert {row["opinions"] is None for row in rows(swept, columns=["opinions"])} == {True}
    assert rows(judged, columns=["opinions"], cache=judged / "nothing")[0]["opinions"]
    assert set(map(tuple, asked)) == {("judge_readings",)}


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


def test_columns__have_the_types_of_the_one_list_and_its_meanings(swept, judged):
    schemas = [trials(folder / "cube.zarr", limit=3).to_arrow().schema for folder in (swept, judged)]

    for schema in schemas:
        fixed = [field for field in schema if not field.name.startswith("param_")]
        assert fixed == list(arrow_schema(COLUMNS))
        assert schema.field("tokens").metadata[b"comment"] == b"Completion tokens, reasoning included."
    assert str(schemas[0].field("param_length").type) == "int64"
    assert str(schemas[0].field("param_prob_not").type) == "double"


def test_arrow_and_pandas__hold_what_the_rows_hold(swept):
    table = trials(swept / "cube.zarr")

    arrow, frame = table.to_arrow(), table.to_dataframe()

    plain = [{**row, "latency": None, "guess_chance": None} for row in arrow.to_pylist()]
    assert plain == [{**row, "latency": None, "guess_chance": None} for row in table.rows()]
    assert len(frame) == arrow.num_rows == sum(batch.num_rows for batch in table)
    assert list(frame["status"]) == arrow["status"].to_pylist()


def test_several_cubes__make_one_table(swept, judged):
    both = list(
        trials([swept / "cube.zarr", judged / "cube.zarr"], columns=["cube", "task", "length"]).rows()
    )

    assert {row["cube"] for row in both} == {str(folder / "cube.zarr") for folder in (swept, judged)}
    assert {row["param_length"] is None for row in both if row["cube"].startswith(str(judged))} == {True}
    mixed = trials(
        [swept / "cube.zarr", judged / "cube.zarr"], sort="tokens", columns=["tokens", "prompt", "cube"]
    )
    tokens = [row["tokens"] for row in mixed.rows()]
    assert tokens == sorted(tokens)
    assert all(("capital" in row["prompt"]) == row["cube"].startswith(str(judged)) for row in mixed.rows())


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


def test_replies_that_are_not_there__are_absent_and_said_so(swept):
    table = trials(swept / "cube.zarr", cache=swept / "nothing")

    found = list(table.rows())

    assert {row["response"] for row in found} == {row["answer"] for row in found} == {None}
    assert all(row["prompt"] and row["digest"] for row in found)
    (note,) = table.notes
    assert note.startswith("80 replies are not")
    assert trials(swept / "cube.zarr", cache=swept / "nothing", columns=["tokens"]).notes == ()


def hostile(folder, tmp_path, texts):
    """A cache in which replies say these texts, in turns."""
    cache = open_cache(tmp_path / "hostile")
    for number, row in enumerate(rows(folder, columns=["digest"])):
        message = {"content": texts[number % len(texts)]}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        cache.put(row["digest"], Record(200, math.nan, body).encode())
    cache.close()
    return tmp_path / "hostile"


def test_halves_of_surrogate_pairs__become_what_utf8_can_carry(swept, tmp_path):
    cache = hostile(swept, tmp_path, ["half \ud83d of a smile"])

    table = trials(swept / "cube.zarr", cache=cache, limit=2).to_arrow()

    assert table["response"].to_pylist() == ["half \ufffd of a smile"] * 2


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


def test_conditions__take_a_number_as_it_is_shown(swept):
    shown = [row["latency"] for row in rows(swept)]

    found = rows(swept, where=[f"latency={shown[0]}"])

    assert [row["latency"] for row in found] == [one for one in shown if one == shown[0]]


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


def test_to_dataframe__has_the_same_rows_without_arrow(swept, monkeypatch):
    found = ec.trials(swept / "cube.zarr", columns=["model", "task", "trial", "status", "tokens"])
    with_arrow = found.to_dataframe()
    monkeypatch.setattr("evalcube.flows.read.trials.read.find_spec", lambda _: None)

    without = found.to_dataframe()

    assert without.columns.tolist() == with_arrow.columns.tolist()
    assert without.astype(str).equals(with_arrow.astype(str))


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
