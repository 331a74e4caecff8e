"""What every task has unless it says otherwise, and cells, which make its trials."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate import Cell, Task, Trial
from evalcube.stages.generate.base import TaskParams, param, second_paragraph
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.stream import Stream


class DiceParams(TaskParams):
    """Sides, and a colour that nobody asks about."""

    sides: int = param(6, 2, 100, "sides of the dice")
    colour: str = "red"

    def identity(self) -> dict[str, object]:
        return {"sides": self.sides}


class Dice(Task[DiceParams]):
    """What a dice shows."""

    name, version, summary, guess_rule = "dice", 1, "Dice.", "one in six"
    Params = DiceParams
    made: Any = None
    count: int | None = None

    def generate(self, params: DiceParams, stream: Stream) -> Any:
        return Trial(str(stream.between(1, params.sides)), "1") if self.made is None else self.made

    def parse(self, text: str) -> str | None:
        return text.strip() or None

    def difficulty(self, params: DiceParams) -> float:
        return float(params.sides)

    def size(self, params: DiceParams) -> int | None:  # noqa: ARG002
        return self.count


def cell_of(seed: int = 0, made: Any = None, count: int | None = None, **params: Any) -> Cell:
    task = Dice()
    task.made, task.count = made, count
    return Cell(task, DiceParams(**params), seed)


def of_extras(**extras: object) -> Trial:
    return Trial("?", "1", extras=extras)


@given(st.lists(st.one_of(st.text(), st.integers()), min_size=2, max_size=6, unique_by=str))
def test_cluster__is_a_number_of_its_own_for_each_name(names: list[object]) -> None:
    numbers = [of_extras(cluster=name).cluster for name in names]

    assert len(set(numbers)) == len(names)
    assert all(0 < number < 2**63 for number in numbers)
    assert numbers == [of_extras(cluster=str(name)).cluster for name in names]


def test_cluster__is_0_only_without_a_name() -> None:
    assert (Trial("?", "1").cluster, of_extras(cluster=None).cluster) == (0, 0)
    assert of_extras(cluster="").cluster > 0
    assert of_extras(cluster=0).cluster > 0


@pytest.mark.parametrize("name", ["tools", "turns"])
@pytest.mark.parametrize(
    ("value", "expected"), [([{"a": 1}], [{"a": 1}]), (({"a": 1},), ({"a": 1},)), ("text", ()), (None, ())]
)
def test_extras__that_are_no_list_are_no_tools_and_no_turns(
    name: str, value: object, expected: object
) -> None:
    assert getattr(of_extras(**{name: value}), name) == expected


def test_second_paragraph__is_all_between_the_first_two_gaps() -> None:
    assert second_paragraph(Trial("Read this.\n\na\nb\n\nWhat is it?\n\nAnswer.", "a")) == "a\nb"


@pytest.mark.parametrize("index", [-1, 3, 4])
def test_trial__beyond_the_last_one_names_how_many_there_are(index: int) -> None:
    with pytest.raises(
        TaskError, match=rf"no trial {index}: .* 3 different .* from 0 to 2; .* at most 3"
    ) as error:
        cell_of(count=3).trial(index)

    assert (error.value.field, error.value.value) == ("trials", index)


@pytest.mark.parametrize("count", [3, None])
def test_trial__makes_the_first_and_the_last_one_again(count: int | None) -> None:
    cell = cell_of(count=count, sides=100)

    assert [cell.trial(i) for i in (0, 2)] == [cell.trial(i) for i in (0, 2)]
    assert cell.trial(0) != cell.trial(2)


@pytest.mark.parametrize("made", ["text", Trial(None, "1"), Trial("?", 1)])  # type: ignore[arg-type]
def test_trial__that_is_none_names_the_task(made: object) -> None:
    with pytest.raises(TaskError, match=r"task 'dice' made .*correct its `generate`"):
        cell_of(made=made).trial(0)


def test_trial__is_another_one_for_each_seed_and_index() -> None:
    cells = [cell_of(seed, sides=100) for seed in range(4)]

    prompts = [tuple(cell.trial(index).prompt for index in range(12)) for cell in cells]

    assert len(set(prompts)) == len(cells)
    assert prompts[0][1:] != prompts[1][:-1]  # trial 1 of a seed is not trial 0 of the next one


def test_cell__is_what_its_identity_says() -> None:
    cell = cell_of(colour="blue")

    assert cell.id == cell_of().id
    assert cell.key == cell_of().key
    assert cell.trial(5) == cell_of().trial(5)
    assert len({cell.id, cell_of(1).id, cell_of(sides=7).id}) == 3
    assert len({cell.key, cell_of(1).key, cell_of(sides=7).key}) == 3
    assert cell.plain_params == {"sides": 6, "colour": "blue"}
    assert (cell.difficulty, cell.size, cell_of(count=4).size) == (6.0, None, 4)


def test_cell__refuses_params_of_another_task() -> None:
    with pytest.raises(TypeError, match="DiceParams expected, got TaskParams"):
        Cell(Dice(), TaskParams(), 0)


@pytest.mark.parametrize("value", [True, "8", 1, 101, 2.5, float("nan")])
def test_params__take_numbers_in_their_range_alone(value: object) -> None:
    with pytest.raises(ValueError, match="sides"):
        DiceParams(sides=value)  # type: ignore[arg-type]

    assert [DiceParams(sides=sides).sides for sides in (2, 100)] == [2, 100]


def test_task__that_says_nothing_more_has_right_answers_and_no_names() -> None:
    task, trial = Dice(), Trial("Which?", "six")
    params = DiceParams()

    assert (task.grade_reply("six", params, trial), task.grade_reply("one", params, trial)) == (True, False)
    assert (task.parse_reply(" six ", params, trial), task.problem(trial)) == ("six", "Which?")
    assert (task.resolve(params), task.example(), task.has_reference(params)) == (params, DiceParams(), True)
    assert (task.second_reader(params), task.theirs("six", params, trial)) == ("", None)
    assert (task.row_id(params, 0, b""), task.fault("one", params, trial)) == ("", "")
