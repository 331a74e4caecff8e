"""Rows as trials: what fields mean, which rows are asked, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalcube.stages.generate import TaskError
from evalcube.stages.generate.dataset import rows
from evalcube.stages.generate.stream import Stream
from tests.stages.generate.dataset.support import (
    DATASET,
    HOSTILE,
    IN_FILES,
    cell,
    one,
    problem,
    trials,
    write_jsonl,
)

ROOT = Path(__file__).parents[4]

# ---- which rows


ROWS = [
    {"prompt": f"q{i}", "answer": f"a{i}", "split": "test" if i % 3 else "dev", "meta": {"level": i % 2}}
    for i in range(50)
]


def test_trial__each_row_comes_once_in_an_order_of_the_seed(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    orders = [[trial.extras["row"] for trial in trials(cell(path, seed=seed))] for seed in (1, 2)]

    assert [sorted(order) for order in orders] == [list(range(1, 51))] * 2
    assert orders[0] != orders[1] != list(range(1, 51))
    assert [trial.extras["row"] for trial in trials(cell(path, order="file"))] == list(range(1, 51))


def test_trial__beyond_the_rows_is_refused(tmp_path: Path) -> None:
    source = cell(write_jsonl(tmp_path / "a.jsonl", ROWS))

    assert source.size == 50
    for index in (50, -1):
        with pytest.raises(TaskError, match=rf"trial {index}: .*'dataset' has 50 "):
            source.trial(index)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ({"split": "test"}, 33),
        ({"split": ["test", "dev"]}, 50),
        ({"split": "test", "meta.level": 1}, 17),
        ({"meta.level": "0"}, 25),
    ],
)
def test_where__keeps_rows_with_the_values(tmp_path: Path, where: dict[str, Any], kept: int) -> None:
    source = cell(write_jsonl(tmp_path / "a.jsonl", ROWS), where=where)

    assert source.size == kept == len({trial.prompt for trial in trials(source)})


def test_where__rows_left_out_may_lack_fields(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [*ROWS, {"split": "train", "prompt": "x"}])

    assert cell(path, where={"split": "test"}).size == 33
    with pytest.raises(TaskError, match="row 51"):
        cell(path)


SCRIPT = """
import sys
from tests.stages.generate.dataset.support import cell, trials
print(repr(trials(cell(sys.argv[1], options="options"))))
"""


@pytest.mark.cluster
def test_trial__same_in_another_process(tmp_path: Path) -> None:
    rows = [{"prompt": f"q{i}", "options": [f"x{i}", f"y{i}", f"z{i}"], "answer": 0} for i in range(40)]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    environment = os.environ | {"PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT, str(path)]

    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    assert out == repr(trials(cell(path, options="options"))) + "\n"


# ---- answers


@pytest.mark.parametrize(
    ("kind", "reference", "right", "wrong"),
    [
        ("number", 72, ["72", "$72.00", "so 3 * 24 = 72"], ["73", "none"]),
        ("number", "1,234.50", ["1234.5"], ["12345"]),
        ("number", ["1/2", 0.25], ["0.5", "2/8"], ["0.75"]),
        ("text", ["Paris", "City of Paris"], ["paris.", "the City of Paris"], ["London"]),
        ("text", "007", ["007"], ["7"]),
        ("text", True, ["True"], ["false"]),
        ("json", {"a": [1, 2]}, ['{"a": [1.0, 2]}', '```json\n{\n"a": [1,2]}\n```'], ['{"a": [2, 1]}']),
        ("json", '[1, "x"]', ['[1,"x"]'], ["[1]"]),
        ("json", False, ["false"], ["0", "null"]),
    ],
)
def test_grade__compares_by_kind(
    tmp_path: Path, kind: str, reference: Any, right: list[str], wrong: list[str]
) -> None:
    source = cell(write_jsonl(tmp_path / "a.jsonl", [{"prompt": "q", "answer": reference}]), kind=kind)
    trial = source.trial(0)

    def is_right(answer: str) -> bool:
        parsed = source.parse(f"Thinking.\nAnswer: {answer}", trial)
        return parsed is not None and source.grade(parsed, trial)

    assert all(map(is_right, right))
    assert not any(map(is_right, wrong))
    assert source.grade(trial.answer, trial)


def test_grade__tolerances(tmp_path: Path) -> None:
    source = cell(
        write_jsonl(tmp_path / "a.jsonl", [{"prompt": "q", "answer": "9.81"}]),
        kind="number",
        tolerance=0.05,
        relative_tolerance=0.001,
    )

    assert source.grade("9.86", source.trial(0))
    assert not source.grade("9.8601", source.trial(0))


@IN_FILES
@given(answer=HOSTILE, kind=st.sampled_from(["text", "number", "json"]), reply=HOSTILE)
def test_answers__a_reference_is_read_back_or_refused(
    tmp_path: Path, answer: str, kind: str, reply: str
) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"prompt": "q", "answer": answer}])
    try:
        source = cell(path, kind=kind)
    except TaskError as error:
        told = str(error)
    else:
        told = ""
    if told:
        assert "(line 1): field 'answer'" in told
        return
    trial = source.trial(0)

    parsed = source.parse(f"Answer: {trial.answer}", trial)

    assert trial.answer == answer.strip() or kind == "json"
    assert parsed is not None
    assert source.grade(parsed, trial)
    source.parse(reply, trial)


def test_answers__are_read_once_however_often_a_trial_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"prompt": f"{i}?", "answer": f"a {i}"} for i in range(5)])
    reads: list[str] = []
    real = rows.RowReader._takes_whole
    monkeypatch.setattr(
        rows.RowReader, "_takes_whole", lambda self, answer: reads.append(answer) or real(self, answer)
    )
    source = cell(path)

    first = [source.trial(i) for i in range(5)]
    count = len(reads)

    assert [source.trial(i) for i in range(5)] == first
    assert 0 < len(reads) == count


def test_answers__what_stands_before_a_mark_is_cut_off(tmp_path: Path) -> None:
    row = {"prompt": "q", "answer": "48/2 = <<48/2=24>>24 clips.\n#### 72"}

    assert one(tmp_path, row, kind="number", answer_after="####").answer == "72"
    assert "holds '48/2" in str(problem(tmp_path, [row], kind="number"))


@pytest.mark.parametrize(
    ("kind", "answer", "message"),
    [
        ("number", "twelve", "with kind number, a reference is one number"),
        ("number", "3 or 4", "with kind number, a reference is one number"),
        ("text", "two\nlines", "one line of at most 2000"),
        ("text", "x" * 2001, "at most 2000 characters"),
        ("text", ["a"] * 1001, "from 1 to 1000 answers"),
        ("text", [], "from 1 to 1000 answers"),
        ("text", {"a": 1}, "must hold a text or a number"),
        ("json", "Paris", "a reference is JSON"),
        ("json", ["x" * 5001], "at most 5000 characters"),
        ("text", "\ud800", "surrogate"),
    ],
)
def test_answers__bad_references_are_refused(tmp_path: Path, kind: str, answer: Any, message: str) -> None:
    error = problem(tmp_path, [{"prompt": "q", "answer": answer}], kind=kind)

    assert message in str(error)
    assert error.field == "answer"


# ---- prompts and what is carried along


def test_prompt__states_the_format_unless_told_otherwise(tmp_path: Path) -> None:
    row = {"prompt": "Why?\n", "answer": "7"}

    assert one(tmp_path, row).prompt == "Why?\n\nEnd with a last line of the form\nAnswer: <text>"
    assert one(tmp_path, row, kind="json").prompt.endswith("Answer: <JSON>")
    assert one(tmp_path, row, instruction="").prompt == "Why?"
    assert one(tmp_path, row, instruction="Be brief.").prompt == "Why?\n\nBe brief."


def test_template__fills_in_fields_once(tmp_path: Path) -> None:
    row = {"q": {"text": "{answer} {{"}, "n": 7, "answer": "x"}
    trial = one(tmp_path, row, template="{{{n}}} {q.text} { n }", instruction="")

    assert trial.prompt == "{7} {answer} {{ 7"
    with pytest.raises(ValidationError, match="brace"):
        DATASET.Params(file="a.csv", template="{n")


def test_extras__carry_what_is_not_evaluated_here(tmp_path: Path) -> None:
    row = {"prompt": "Write a poem.", "name": 7, "checks": [{"contains": "rose"}], "guide": "Is it good?"}
    source = cell(
        write_jsonl(tmp_path / "a.jsonl", [row]), answer="", id="name", assertions="checks", rubric="guide"
    )
    trial = source.trial(0)

    assert trial.prompt == "Write a poem."
    assert trial.answer == ""
    assert trial.extras == {
        "row": 1,
        "id": "7",
        "assertions": [{"contains": "rose"}],
        "rubric": "Is it good?",
    }
    assert source.parse(" A rose. ", trial) == "A rose."
    assert not source.grade("A rose.", trial)
    hash(trial)


@pytest.mark.parametrize("checks", [[], ["x"], "x", {"a": 1}])
def test_extras__assertions_are_objects(tmp_path: Path, checks: Any) -> None:
    error = problem(tmp_path, [{"prompt": "q", "answer": "a", "checks": checks}], assertions="checks")

    assert "'checks' must hold" in str(error)


def test_generate__draws_any_row(tmp_path: Path) -> None:
    source = cell(write_jsonl(tmp_path / "a.jsonl", ROWS))

    assert len({DATASET.generate(source.params, Stream(i)).prompt for i in range(300)}) > 40


# ---- what is refused when a sweep is planned


def test_resolve__names_unknown_columns(tmp_path: Path) -> None:
    rows = [{"question": "q", "answer": "a", "meta": {"level": 1}}]

    error = problem(tmp_path, rows, prompt="qestion")
    assert re.findall("'.*?'", str(error)) == ["'qestion'", "'question'"]
    assert str(error).endswith(": question, answer, meta")
    assert (error.field, error.value) == ("prompt", "qestion")
    assert "unknown column 'q'" in str(problem(tmp_path, rows, template="{question} {q}"))
    assert "unknown column 'split'" in str(problem(tmp_path, rows, prompt="question", where={"split": 1}))
    assert "field 'meta.text'" in str(problem(tmp_path, rows, prompt="meta.text"))
    assert "no row" in str(problem(tmp_path, rows, prompt="question", where={"meta.level": 2}))


def test_resolve__knows_columns_of_any_row(tmp_path: Path) -> None:
    rows = [{"prompt": f"q{i}", "answer": "a"} for i in range(1500)]
    rows[-1]["id"] = "x"

    assert "field 'id'" in str(problem(tmp_path, rows, id="id"))
    assert "no row" in str(problem(tmp_path, rows, where={"id": "y"}))


@pytest.mark.parametrize("lack", [{}, {"answer": None}, {"answer": ""}, {"answer": " "}])
def test_resolve__names_the_row_that_lacks_a_field(tmp_path: Path, lack: dict[str, Any]) -> None:
    path = tmp_path / "a.jsonl"
    write_jsonl(path, [{"prompt": "q", "answer": "a"}, {"prompt": "r", **lack}, {"prompt": "s"}])
    path.write_text("\n" + path.read_text())

    with pytest.raises(TaskError) as caught:
        cell(path)

    assert str(caught.value).startswith(f"{path}, row 2 (line 3): ")
    assert "(1 other row" in str(caught.value)
    assert (caught.value.field, caught.value.value) == ("answer", "answer")


def test_resolve__refuses_surrogates_and_long_prompts(tmp_path: Path) -> None:
    assert "no character" in str(problem(tmp_path, [{"prompt": "a\udc00", "answer": "x"}]))
    assert "1,000,001 characters" in str(problem(tmp_path, [{"prompt": "a" * 1_000_001, "answer": "x"}]))


@pytest.mark.parametrize(
    "reference",
    ["red; green", "int x = 1; return x;", "Paris, because it is big", "red (not green)", "A. red", "Mr. Smith; Jr.",
     "12:30", "The Hague", "*x*", '"quoted"', "a" * 900],
)  # fmt: skip
def test_answers__a_reference_is_what_its_author_wrote(tmp_path: Path, reference: str) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"prompt": "q", "answer": reference}])

    for match in ("auto", "exact", "contains", "prefix", "judge"):
        source = cell(path, match=match)
        trial = source.trial(0)
        parsed = source.parse(f"Answer: {reference}", trial)

        assert trial.answer == reference
        assert parsed is not None
        assert source.grade(parsed, trial), match


def test_answers__long_texts_fit_where_more_than_a_line_is_read(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"prompt": "q", "answer": "Two\nlines."}])

    assert cell(path, match="judge").trial(0).answer == "Two\nlines."
    assert cell(path, match="contains").trial(0).answer == "Two\nlines."


def test_answers__numbers_of_32_bits_are_the_shortest_decimals(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    single = pa.float32()
    columns = {
        "prompt": pa.array(["q"]),
        "answer": pa.array([0.1], single),
        "more": pa.array([[0.2]], pa.list_(single)),
        "deep": pa.array([{"x": 0.3}], pa.struct([("x", single)])),
        "double": pa.array([0.1 + 0.2]),
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)

    found = {
        name: cell(path, answer=name, kind="number").trial(0).answer
        for name in ("answer", "deep.x", "double")
    }

    assert found == {"answer": "0.1", "deep.x": "0.3", "double": "0.30000000000000004"}
    assert cell(path, answer="more", kind="number").trial(0).answer == "0.2"


def test_remarks__tell_of_a_question_with_two_answers(tmp_path: Path) -> None:
    rows = [{"prompt": "q", "answer": "a"}, {"prompt": "r", "answer": "b"}, {"prompt": "q", "answer": "c"}]
    source, agreed = (
        cell(write_jsonl(tmp_path / "a.jsonl", rows)),
        cell(write_jsonl(tmp_path / "b.jsonl", rows[:2] * 2)),
    )

    assert re.findall(r"row \d", next(DATASET.remarks(source.params))) == ["row 3", "row 1"]
    assert list(DATASET.remarks(agreed.params)) == []
