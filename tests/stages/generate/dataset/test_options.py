"""Options: shuffled, labelled, and answers that name one in many ways."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stages.generate.dataset.support import (
    HOSTILE,
    IN_FILES,
    cell,
    one,
    problem,
    trials,
    write_csv,
    write_jsonl,
)


@IN_FILES
@given(
    options=st.lists(HOSTILE, min_size=2, max_size=9, unique_by=str.strip),
    question=HOSTILE,
    data=st.data(),
)
def test_options__shuffling_keeps_the_truth(
    tmp_path: Path, options: list[str], question: str, data: st.DataObject
) -> None:
    right = data.draw(st.integers(0, len(options) - 1))
    row = {"prompt": question, "options": options, "answer": right}
    trial = one(tmp_path, row, options="options", answer_is="index", seed=data.draw(st.integers(0, 99)))
    choices = trial.extras["choices"]

    assert sorted(choices) == sorted(option.strip() for option in options)
    assert choices[trial.options.index(trial.answer)] == options[right].strip()
    assert trial.guess_chance == 1 / len(options)
    assert all(
        f"\n{name}) {text}\n" in trial.prompt for name, text in zip(trial.options, choices, strict=True)
    )


def test_options__every_place_is_as_likely_for_the_right_one(tmp_path: Path) -> None:
    rows = [{"prompt": f"q{i}", "options": list("wxyz"), "answer": "w"} for i in range(2000)]
    places = Counter(
        trial.answer for trial in trials(cell(write_jsonl(tmp_path / "a.jsonl", rows), options="options"))
    )

    assert all(abs(places[letter] / 2000 - 0.25) < 0.045 for letter in "ABCD")


@pytest.mark.parametrize(
    ("row", "params"),
    [
        ({"options": ["no", "yes"], "answer": "yes"}, {"options": "options"}),
        ({"options": ["no", "yes"], "answer": "B"}, {"options": "options"}),
        ({"options": ["no", "yes"], "answer": "b"}, {"options": "options", "answer_is": "letter"}),
        ({"options": ["no", "yes"], "answer": 1}, {"options": "options", "answer_is": "index"}),
        ({"options": ["no", "yes"], "answer": "2"}, {"options": "options", "answer_is": "number"}),
        ({"options": ["no", "yes"], "answer": ["yes"]}, {"options": "options"}),
        ({"choices": {"text": ["no", "yes"]}, "answer": "B"}, {"options": "choices.text"}),
        ({"A": "no", "B": "yes", "answer": "B"}, {"options": ["A", "B"]}),
        ({"o": {"1": "no", "2": "yes"}, "answer": "yes"}, {"options": ["o.1", "o.2"]}),
    ],
)
def test_options__answers_are_named_in_many_ways(
    tmp_path: Path, row: dict[str, Any], params: dict[str, Any]
) -> None:
    trial = one(tmp_path, {"prompt": "Well?", **row}, option_order="file", **params)

    assert trial.extras["choices"] == ["no", "yes"]
    assert (trial.options, trial.answer) == (("A", "B"), "B")


@pytest.mark.parametrize(
    ("row", "options"),
    [
        ({"options": ["no", "yes", "", None]}, "options"),
        ({"a": "no", "b": "yes", "c": "", "d": None}, ["a", "b", "c", "d"]),
    ],
)
def test_options__padding_is_none(tmp_path: Path, row: dict[str, Any], options: Any) -> None:
    whole = {name: "x" for name in row if name != "options"} | {"options": ["x", "y"]}
    rows = [{"prompt": "Well?", "answer": "B", **row}, {"prompt": "All?", "answer": "A", **whole}]
    source = cell(
        write_jsonl(tmp_path / "a.jsonl", rows[:1]), options=options, option_order="file", answer_is="letter"
    )

    assert source.trial(0).extras["choices"] == ["no", "yes"]
    assert source.trial(0).answer == "B"


def test_options__csv_lists_are_json(tmp_path: Path) -> None:
    rows = [{"prompt": "q", "options": ["x, y", "z"], "answer": "z"}]

    trial = cell(write_csv(tmp_path / "a.csv", rows), options="options", option_order="file").trial(0)

    assert trial.extras["choices"] == ["x, y", "z"]


def test_options__are_left_out_of_open_questions(tmp_path: Path) -> None:
    row = {"prompt": "2 + 3?", "options": ["4", "5"], "answer": "B"}
    trial = one(tmp_path, row, options="options", kind="number")

    assert (trial.answer, trial.options, trial.guess_chance) == ("5", (), 0)
    assert "4" not in trial.prompt


@pytest.mark.parametrize(
    ("row", "params", "message"),
    [
        ({"options": ["a", "b"], "answer": "c"}, {}, "'c', which is none of the 2 options"),
        ({"options": ["a", "b"], "answer": 2}, {}, "say answer_is: number"),
        ({"options": ["a", "b"], "answer": "C"}, {"answer_is": "letter"}, "none of the 2 options by letter"),
        ({"options": ["1", "0"], "answer": "1"}, {}, "one option's text and another's letter or index"),
        ({"options": ["a", "b"], "answer": 1}, {}, "whether they count from 0"),
        ({"options": ["a"], "answer": "a"}, {}, "from 2 to 100 options, not 1"),
        ({"options": [str(i) for i in range(101)], "answer": "a"}, {}, "from 2 to 100 options, not 101"),
        ({"options": [], "answer": "a"}, {}, "options, not 0"),
        ({"options": ["a", "a "], "answer": "a"}, {}, "stands there twice"),
        ({"options": ["a", ""], "answer": "a"}, {}, "from 2 to 100 options, not 1"),
        ({"options": ["a", "", "c"], "answer": "a"}, {}, "is empty before others; take it out"),
        ({"options": {"A": "x", "B": "y"}, "answer": "A"}, {}, r"write options: \[options.A, options.B\]"),
        ({"options": {"label": ["A"], "n": 1}, "answer": "A"}, {}, r"write options: options.label$"),
        ({"options": ["a", {}], "answer": "a"}, {}, "must hold a text or a number"),
        ({"options": "ab", "answer": "a"}, {}, r"must hold a list .* \[\[A, B, C\]\]"),
        ({"options": ["a", "b"], "answer": ["a", "b"]}, {}, "names several options"),
        ({"options": ["a", "b"], "answer": {"x": 1}}, {}, "must hold a text or a number"),
    ],
)
def test_options__bad_ones_are_refused(
    tmp_path: Path, row: dict[str, Any], params: dict[str, Any], message: str
) -> None:
    error = problem(tmp_path, [{"prompt": "q", **row}], options="options", **params)

    assert re.search(message, str(error)), str(error)
