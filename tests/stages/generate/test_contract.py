"""A task's contract, as its author is told of it."""

from __future__ import annotations

import pytest
from pydantic import Field

import evalcube as ec
from evalcube.stages.generate import TASKS
from evalcube.stages.generate.contract import check_task


class Params(ec.plugins.TaskParams):
    size: int = Field(4, ge=1, le=9, description="Digits; more digits, more to keep.")


class Digits(ec.plugins.Task):
    name = "digits"
    version = 1
    summary = "the digits again"
    guess_rule = "0"
    Params = Params

    def generate(self, params, stream):
        digits = "".join(stream.choice("0123456789") for _ in range(params.size))
        return ec.plugins.Trial(f"Repeat {digits}.", digits)

    def parse(self, text):
        return text.rpartition("Answer: ")[2][:20] or None if "Answer: " in text else None

    def difficulty(self, params):
        return float(params.size)


@pytest.mark.parametrize("name", sorted(TASKS.keys() - {"boolean", "dataset"}))
def test_check_task__accepts_ours(name):
    check_task(TASKS[name])


def test_check_task__takes_another_form_of_reply():
    check_task(TASKS["boolean"], reply=lambda trial: f"Answer: {trial.answer.capitalize()}")


def test_check_task__refuses_to_judge_by_no_trial():
    with pytest.raises(ec.EvalcubeError, match="`trials`: 0 show nothing"):
        check_task(Digits(), trials=0)


def wrong(**members):
    """The task with something of it replaced."""
    return type("Wrong", (Digits,), members)()


def counted(self, *_):
    self.count = getattr(self, "count", 0) + 1
    return ec.plugins.Trial(f"Repeat {self.count}.", str(self.count))


def falls_over(self, text):
    if "(" in text:
        raise RecursionError("too deep")
    return Digits.parse(self, text)


class Undescribed(ec.plugins.TaskParams):
    size: int = 4


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (wrong(summary=""), "does not declare summary"),
        (wrong(Params=Undescribed), "param size has no description"),
        (wrong(generate=counted), "keep no state"),
        (wrong(generate=lambda *_: ec.plugins.Trial("Say 1.", "1")), "ask the same question"),
        (wrong(generate=lambda *_: ec.plugins.Trial(" ", "1")), "the prompt is empty"),
        (
            wrong(generate=lambda *of: ec.plugins.Trial(str(of[2].below(99)), "1", 2.0)),
            "guess chance is 2.0",
        ),
        (
            wrong(generate=lambda *of: ec.plugins.Trial(str(of[2].below(99)), "1", 0.5, ("2", "3"))),
            "none of the options",
        ),
        (wrong(difficulty=lambda *_: 0), "above 0"),
        (wrong(parse=lambda *_: None), "no answer is read"),
        (wrong(grade=lambda *_: False), "graded as wrong"),
        (wrong(parse=falls_over), "raises RecursionError: too deep"),
        (wrong(parse=lambda self, text: Digits.parse(self, text) or 0), "returns a int"),
        (wrong(fault=lambda *_: None), "fault returns a NoneType"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_check_task__says_what_is_wrong(task, said, monkeypatch):
    monkeypatch.setattr("evalcube.stages.generate.contract.pickle", Copies)

    with pytest.raises(ec.TaskError, match="task 'digits'") as caught:
        check_task(task)

    assert said in str(caught.value)


class Copies:
    """Stands for pickle, which does not know classes that a test makes."""

    @staticmethod
    def dumps(item):
        return item

    @staticmethod
    def loads(item):
        return item
