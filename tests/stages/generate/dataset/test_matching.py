"""How text answers are read as a data set declares, and graders of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalcube.stages.generate import TASKS, Cell, Trial
from evalcube.stages.generate.dataset import DatasetParams
from evalcube.stages.generate.dataset.matching import GradingContext, load_grader, verdict_of
from evalcube.stages.generate.errors import CodeError, TaskError
from evalcube.stages.named_code import allow_code
from tests.cases import with_cases

DATASET = TASKS["dataset"]


def asked(tmp_path: Path, **params: Any) -> tuple[Cell, Trial]:
    file = tmp_path / "capitals.jsonl"
    file.write_text('{"prompt": "What is the capital of China?", "answer": "Beijing", "name": "cn"}\n')
    return _cell(DatasetParams(file=str(file), id="name", **params))


def _cell(params: DatasetParams) -> tuple[Cell, Trial]:
    cell = Cell(DATASET, DATASET.resolve(params), 1)
    return cell, cell.trial(0)


def outcome(cell: Cell, trial: Trial, reply: str) -> bool | None:
    parsed = cell.parse(reply, trial)
    return None if parsed is None else cell.grade(parsed, trial)


SENTENCE = "The capital of China is Beijing."


@pytest.mark.parametrize(
    ("params", "reply", "right"),
    [
        ({}, "Answer: Beijing", True),
        ({}, "Beijing.", True),
        ({}, "Shanghai", False),
        ({}, SENTENCE, True),
        ({}, "The capital of China is not Beijing.", False),
        ({"match": "exact"}, "beijing", True),
        ({"match": "exact"}, SENTENCE, False),
        ({"match": "exact"}, "I think.\nAnswer: Beijing", True),
        ({"match": "contains"}, SENTENCE, True),
        ({"match": "contains"}, "It is Shanghai.", False),
        ({"match": "contains"}, "It is not Beijing.", False),
        ({"match": "contains"}, "Beijingers live there", False),
        ({"match": "contains"}, "Beijing is old.\nAnswer: Shanghai", False),
        ({"match": "contains"}, "  ", None),
        ({"match": "prefix"}, "Beijing, of course.", True),
        ({"match": "prefix"}, SENTENCE, False),
        ({"match": "regex", "pattern": r"capital of \w+ is (\w+)"}, SENTENCE, True),
        ({"match": "regex", "pattern": r"capital of \w+ is (\w+)"}, "Answer: Beijing", None),
        ({"match": "regex", "pattern": r"[A-Z]\w+ing"}, "Nanjing? No, Beijing.", True),
    ],
)
def test_match__reads_as_declared(
    tmp_path: Path, params: dict[str, Any], reply: str, right: bool | None
) -> None:
    assert outcome(*asked(tmp_path, **params), reply) is right


@with_cases(
    "reference",
    ["CO₂", "北京，上海", "「東京」", "नमस्ते।", "Ｎ／Ａ", "R&amp;D", r"\text{hi}", "<b>bold</b>", "a\u200bb"],
)
def test_match__finds_a_reference_as_it_is_written(tmp_path: Path, reference: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(json.dumps({"prompt": "?", "answer": reference}))

    for match in ("contains", "prefix"):
        assert outcome(*_cell(DatasetParams(file=str(file), match=match)), reference) is True


def test_match__the_prompt_asks_for_what_is_read(tmp_path: Path) -> None:
    closings = {
        match: asked(tmp_path, match=match, **({"pattern": "."} if match == "regex" else {}))[1].prompt
        for match in ("auto", "exact", "contains", "prefix", "regex")
    }

    assert closings["auto"].endswith("Answer: <text>")
    assert closings["regex"].endswith("China?")
    assert len(set(closings.values())) == 5


def test_match__a_pattern_that_explodes_on_a_reply_ends_in_time(tmp_path: Path) -> None:
    cell, trial = asked(tmp_path, match="regex", pattern=r"(a+)+$")

    assert outcome(cell, trial, "a" * 200 + "b") is None  # without a limit it would be for ever


def by_length(reply: str, context: GradingContext) -> bool | None:
    """Right are replies as long as the reference."""
    return None if not reply else len(reply) == len(context.reference) and context.id == "cn"


def nothing_of_the_kind(words: str) -> bool:
    """Not a grader."""
    return bool(words)


def test_grader__decides(tmp_path: Path) -> None:
    allow_code([f"{__name__}:by_length"])
    cell, trial = asked(tmp_path, grader=f"{__name__}:by_length")

    assert [outcome(cell, trial, reply) for reply in ("abcdefg", "abc", "")] == [True, False, None]


@with_cases(("said", "meant"), [(True, True), (np.False_, False), (1, True), (0.0, False), (None, None)])
def test_judged__takes_truths(said: object, meant: bool | None) -> None:
    assert verdict_of("mine", said) is meant


@with_cases("said", ["wrong", "", 0.5, 2, [True], {}, object()])
def test_judged__refuses_what_is_no_truth(said: object) -> None:
    with pytest.raises(TaskError, match=r"'mine' returned "):
        verdict_of("mine", said)


@with_cases(
    "name", ["nowhere", "nowhere:at_all", "os:nothing", "os:system", f"{__name__}:nothing_of_the_kind"]
)
def test_grader__refuses_other_functions(name: str) -> None:
    allow_code([name])

    with pytest.raises(TaskError, match="grader"):
        load_grader(name)


def test_load_grader__imports_nothing_that_only_a_cube_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "hostile_module.py").write_text(f"open({str(ran)!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(CodeError, match="'hostile_module:grade'"):
        load_grader("hostile_module:grade")

    assert not ran.exists()


def test_grader__a_row_has_its_number_and_name(tmp_path: Path) -> None:
    _, trial = asked(tmp_path)

    assert (trial.extras["row"], trial.extras["id"]) == (1, "cn")
