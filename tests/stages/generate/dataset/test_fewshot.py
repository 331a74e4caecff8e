"""Examples before questions: other rows, the same whatever else is in the file, and never the question itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate import Cell, TaskError, Trial
from evalcube.stages.generate.dataset import Dataset, DatasetParams
from tests.hub import GSM, Hub, cut_network, jsonl, parquet
from tests.stages.generate.dataset.support import write_jsonl

ROWS = [{**row, "kind": "ab"[i % 2], "id": str(i)} for i, row in enumerate(GSM)]
CHOICES = [
    {"question": f"Which is {i}?", "options": [str(i), str(i + 100), str(i + 200)], "answer": 0}
    for i in range(30)
]


def cell(file: Path | str, **more: Any) -> Cell:
    fields = {"prompt": "question", "kind": "number", "answer_after": "####", "file": str(file)} | more
    task = Dataset()
    return Cell(task, task.resolve(DatasetParams.model_validate(fields)), 1)


def trials(made: Cell) -> list[Trial]:
    return [made.trial(i) for i in range(made.size or 0)]


def examples(trial: Trial) -> list[str]:
    """What the examples of a trial ask."""
    return [turn["content"].partition("\n")[0] for turn in trial.turns if turn["role"] == "user"]


def question(trial: Trial) -> str:
    return trial.prompt.partition("\n")[0]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "a.jsonl", ROWS)


def test_fewshot__turns_are_other_questions_with_their_answers(file: Path) -> None:
    trial = cell(file, fewshot={"n": 3, "as": "turns"}).trial(0)

    asked, answered = trial.turns[0], trial.turns[1]
    row = next(row for row in ROWS if row["question"] == examples(trial)[0])
    assert [turn["role"] for turn in trial.turns] == ["user", "assistant"] * 3
    assert asked["content"].endswith("Answer: <number>")
    assert answered["content"] == f"Answer: {row['answer'].rpartition(' ')[2]}"


def test_fewshot__text_stands_before_the_question(file: Path) -> None:
    alone = cell(file).trial(0)
    trial = cell(file, fewshot={"n": 2, "reply": "{answer}"}).trial(0)

    first, reply, *_, _, _ = trial.prompt.split("\n\n")
    assert reply in {row["answer"] for row in ROWS if row["question"] == first}
    assert trial.prompt.endswith(alone.prompt)
    assert not trial.turns


def test_fewshot__sends_stop_sequences_and_is_another_point_with_them_only(file: Path) -> None:
    plain, stopping = (cell(file, fewshot={"n": 2, **more}) for more in ({}, {"stop": ["\nQ:"]}))

    assert stopping.trial(0).extras["sampler"] == {"stop": ["\nQ:"]}
    assert "sampler" not in plain.trial(0).extras
    assert stopping.id != plain.id
    assert "stop" not in plain.params.canonical()["fewshot"]  # type: ignore[operator]


def test_fewshot__asks_the_same_questions_in_the_same_order(file: Path) -> None:
    alone, with_examples = trials(cell(file)), trials(cell(file, fewshot={"n": 2, "as": "turns"}))

    assert list(map(question, alone)) == list(map(question, with_examples))
    assert cell(file).id != cell(file, fewshot={"n": 2}).id != cell(file, fewshot={"n": 3}).id


@given(n=st.integers(1, 20), seed=st.integers(-5, 5))
def test_fewshot__never_has_the_question_among_its_examples(
    tmp_path_factory: pytest.TempPathFactory, n: int, seed: int
) -> None:
    again = [{**row, "question": f"  {row['question'].upper()} ", "id": f"x{row['id']}"} for row in ROWS]
    file = write_jsonl(tmp_path_factory.mktemp("a") / "a.jsonl", [*ROWS, *again])

    for trial in trials(cell(file, id="id", fewshot={"n": n, "seed": seed, "as": "turns"})):
        shown = [text.strip().casefold() for text in examples(trial)]
        assert len(set(shown)) == n
        assert question(trial).strip().casefold() not in shown


def test_fewshot__follows_rows_and_not_their_places(tmp_path: Path, file: Path) -> None:
    """Rows that are not drawn may go, and all may move."""
    fewshot = {"n": 2, "as": "turns"}
    before = {question(trial): examples(trial) for trial in trials(cell(file, fewshot=fewshot))}
    drawn = {text for shown in before.values() for text in shown}
    rest = [row for row in reversed(ROWS) if row["question"] in drawn or int(row["id"]) % 3]

    after = trials(cell(write_jsonl(tmp_path / "b.jsonl", rest), fewshot=fewshot))

    assert len(rest) < len(ROWS)
    assert all(before[question(trial)] == examples(trial) for trial in after)


def test_fewshot__by_takes_examples_of_the_same_kind(file: Path) -> None:
    kinds = {row["question"]: row["kind"] for row in ROWS}

    for trial in trials(cell(file, fewshot={"n": 4, "by": "kind", "as": "turns"})):
        assert {kinds[text] for text in examples(trial)} == {kinds[question(trial)]}


def test_fewshot__takes_another_file_or_other_rows(tmp_path: Path, file: Path) -> None:
    other = write_jsonl(
        tmp_path / "train.jsonl", [{**row, "question": f"Train: {row['question']}"} for row in ROWS]
    )

    elsewhere = cell(file, fewshot={"n": 3, "from": {"file": str(other)}, "as": "turns"})
    of_kind = cell(
        file, where={"kind": "a"}, fewshot={"n": 3, "from": {"where": {"kind": "b"}}, "as": "turns"}
    )
    by_default = cell(file, where={"kind": "a"}, fewshot={"n": 3, "as": "turns"})

    kinds = {row["question"]: row["kind"] for row in ROWS}
    assert all(text.startswith("Train:") for trial in trials(elsewhere) for text in examples(trial))
    assert {kinds[text] for trial in trials(of_kind) for text in examples(trial)} == {"b"}
    assert {kinds[text] for trial in trials(by_default) for text in examples(trial)} == {"a"}


def test_fewshot__the_content_of_its_file_is_the_identity(tmp_path: Path, file: Path) -> None:
    one, same, other = (
        write_jsonl(tmp_path / f"{name}.jsonl", rows)
        for name, rows in zip("xyz", (ROWS, ROWS, ROWS[1:]), strict=True)
    )

    ids = [cell(file, fewshot={"from": {"file": str(path)}}).id for path in (one, same, other)]

    assert ids[0] == ids[1] != ids[2]


def test_fewshot__takes_another_split_of_the_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("acme/sums", {"train.jsonl": jsonl(GSM[:20]), "test.parquet": parquet(GSM[20:])})
    fewshot = {"n": 5, "from": {"split": "train"}, "as": "turns"}
    made = cell("hf://acme/sums?split=test", fewshot=fewshot)
    cut_network(monkeypatch)

    found = trials(cell("hf://acme/sums?split=test", fewshot=fewshot))

    assert found == trials(made)
    assert {text for trial in found for text in examples(trial)} <= {row["question"] for row in GSM[:20]}
    assert len({question(trial) for trial in found}) == 20


def test_fewshot__options_of_examples_are_in_any_order(tmp_path: Path) -> None:
    """The right one is the first of each row in the file."""
    file = write_jsonl(tmp_path / "c.jsonl", CHOICES)
    fields = {"options": "options", "kind": "choice", "answer_is": "index", "answer_after": ""}

    trial = cell(file, fewshot={"n": 12, "as": "turns"}, **fields).trial(0)

    replies = [turn["content"] for turn in trial.turns if turn["role"] == "assistant"]
    assert set(replies) == {"Answer: A", "Answer: B", "Answer: C"}
    for turn, reply in zip(trial.turns[::2], replies, strict=True):
        right = turn["content"].partition("?")[0].rpartition(" ")[2]
        assert f"{reply[-1]}) {right}\n" in f"{turn['content']}\n"


@pytest.mark.parametrize(
    ("fewshot", "told"),
    [
        ({"n": 40}, "40 examples, and there are 39 other"),
        ({"n": 20, "by": "kind"}, "19 other questions where kind is"),
        ({"reply": "{nothing}"}, "row .*'nothing'"),
        ({"by": "sort"}, "unknown column 'sort'"),
        ({"reply": "{a"}, "pair of braces"),
        ({"n": 0}, "greater than or equal to 1"),
        ({"as": "chat"}, "'text' or 'turns'"),
        ({"from": {"fil": "x"}}, "fil"),
        ({"from": {"file": "nowhere.jsonl"}}, "cannot be opened"),
        ({"from": {"where": {"kind": "c"}}}, "there are 0 other"),
    ],
)
def test_fewshot__tells_what_is_wrong(file: Path, fewshot: dict[str, Any], told: str) -> None:
    with pytest.raises((TaskError, ValueError), match=told):
        cell(file, fewshot=fewshot)


def test_messages__are_earlier_turns_and_the_question(tmp_path: Path) -> None:
    said = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": "2"},
    ]
    rows = [
        {"said": [*said, {"role": "user", "content": f"{i} + 2?"}], "answer": str(i + 2)} for i in range(3)
    ]
    file = write_jsonl(tmp_path / "m.jsonl", rows)

    found = trials(cell(file, messages="said", answer_after=""))

    assert [list(trial.turns) for trial in found] == [said] * 3
    assert {question(trial) for trial in found} == {"0 + 2?", "1 + 2?", "2 + 2?"}


def test_messages__earlier_turns_decide_the_order_too(tmp_path: Path) -> None:
    rows = [
        {
            "said": [
                {"role": "user", "content": f"My number is {i}."},
                {"role": "user", "content": "Which?"},
            ],
            "answer": i,
        }
        for i in range(20)
    ]
    made = cell(write_jsonl(tmp_path / "m.jsonl", rows), messages="said", answer_after="")

    assert [trial.answer for trial in trials(made)] != [str(i) for i in range(20)]


@pytest.mark.parametrize(
    "said",
    [
        [],
        "text",
        [{"role": "user"}],
        [{"role": "tool", "content": "x"}],
        [{"role": "assistant", "content": "x"}],
        [7],
    ],
)
def test_messages__refuses_what_is_no_conversation(tmp_path: Path, said: object) -> None:
    file = write_jsonl(tmp_path / "m.jsonl", [{"said": said or [[]], "answer": "4"}])

    with pytest.raises(TaskError, match=r"row 1 .*'said' must"):
        cell(file, messages="said", answer_after="")
