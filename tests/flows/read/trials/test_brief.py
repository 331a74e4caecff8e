"""The table of trials for people tells rows apart at any width, and says how many there are."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from evalcube.flows.plan.filters import telling
from evalcube.flows.read.trials.brief import brief_table
from evalcube.flows.read.trials.columns import COLUMNS
from evalcube.flows.read.trials.read import Trials
from evalcube.stages.analyze.render.table import left_out, terminal
from tests.cases import with_cases
from tests.flows.support import evalcube
from tests.growth import grows_in_proportion

NAMES = (
    *("model", "task", "params", "trial", "repeat", "status", "tokens", "latency"),
    *("prompt", "reference", "answer"),
)
ROW = {
    "model": "org/some-model-72b-instruct",
    "task": "arithmetic",
    "params": '{"length": 4, "max_depth": 0}',
    "trial": 10,
    "repeat": 1,
    "status": "incorrect",
    "tokens": 1228,
    "latency": 0.0101,
    "prompt": "Compute what is asked for: 3 + 4 - 5 * 6",
    "reference": "a reference that is long",
    "answer": "an answer that is long",
}


def table_of(width, rows):
    columns = [column for column in COLUMNS if column.name in NAMES]
    return brief_table(columns, rows, (), width, {"arithmetic": {"length"}})


def drawn(width, rows=(ROW,)):
    table = table_of(width, rows)
    file = io.StringIO()
    Console(file=file, width=width).print(terminal(table, width=width))
    return file.getvalue(), left_out(table, width=width)


@with_cases("width", [76, 80, 100, 140, 200])
def test_brief_table__tells_a_row_at_any_width(width):
    text, hidden = drawn(width)

    head, _, *lines = text.splitlines()
    assert head.split() == [name for name in NAMES if name not in hidden]
    assert {"model", "task", "trial", "status", "prompt", "reference", "answer"}.isdisjoint(hidden)
    assert len(lines) == 1
    assert lines[0].startswith(ROW["model"][:2])
    assert all(word in lines[0] for word in ("arithmetic", "incorrect", "Comp"))


def test_brief_table__what_goes_first_is_what_tells_least():
    assert [drawn(width)[1] for width in (200, 125, 118, 80)] == [
        (),
        ("latency",),
        ("tokens", "latency"),
        ("params", "tokens", "latency"),
    ]


def test_brief_table__cuts_names_where_they_do_not_differ():
    names = [f"org/some-model-72b-instruct-{end}" for end in ("v1", "v2")] + [
        "org/another-model-72b-instruct-v1"
    ]

    lines = drawn(80, [ROW | {"model": name} for name in names])[0].splitlines()[2:]

    assert len({line.split()[0] for line in lines}) == len(names)
    assert all("…" in line.split()[0] for line in lines)


def test_brief_table__leaves_out_what_questions_of_a_task_begin_with():
    texts = ("Compute this: 1 + 2 Say it.", "Compute this: 3 + 4 Say it.", "Which word is last: a b")
    rows = [ROW | {"prompt": text} for text in texts]
    alone = ROW | {"task": "boolean", "prompt": "Compute this: 1 + 2"}

    text = drawn(200, [*rows, alone])[0]

    assert "…1 + 2 Say it." in text
    assert "…3 + 4 Say it." in text
    assert "word is last: a b" in text
    assert "Compute this: 1 + 2" in text


def test_brief_table__takes_time_in_proportion_to_its_rows():
    rows = [ROW | {"prompt": f"Compute this: {number} {'+ 1 ' * 20}"} for number in range(2000)]

    assert grows_in_proportion(lambda size: terminal(table_of(200, rows[:size]), width=200), 2000)


@pytest.mark.parametrize(
    ("names", "shown"), [(("greedy", "warm"), {"sampler"}), (("greedy", "greedy"), set())]
)
def test_distinguishing__names_what_differs_within_a_model(names, shown):
    rows = [
        SimpleNamespace(
            model="a", template=SimpleNamespace(name="p"), sampler=SimpleNamespace(name=name), revision=""
        )
        for name in names
    ]
    table = SimpleNamespace(_opened=[SimpleNamespace(plan=SimpleNamespace(evaluations=rows))])

    assert Trials.distinguishing.fget(table) == shown


def test_telling__of_a_data_set_is_its_file():
    params = {"file": "/home/me/capitals.jsonl", "kind": "text", "sha256": "0f3e", "where": {}}

    assert telling(params, set()) == {"file": "capitals.jsonl"}
    assert telling(params, {"kind"}) == {"kind": "text"}
    assert telling({"length": 3}, set()) == {"length": 3}


@pytest.mark.parametrize("window", [("--limit", 0), ("--limit", 3), ()])
def test_trials__say_how_many_there_are(window, small_sweep):
    output = evalcube("trials", "cube.zarr", *window, "--status", "correct,incorrect", cwd=small_sweep)[1]

    rows = {"--limit 0": 0, "--limit 3": 3}.get(" ".join(map(str, window)))
    assert "No trial fulfils" not in output
    assert (f"{rows} of 10 trials;" in output) == (rows is not None)
