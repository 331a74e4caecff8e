"""What judges are still to be asked about trials, by what a cache has of answers and ratings."""

from types import SimpleNamespace
from typing import Any

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import judge_keys
from evalcube.flows.plan.requests import CriteriaBook
from evalcube.flows.read.judge_estimate import JudgeTally
from evalcube.stages.reply.forms import Record
from tests.flows.judging import judged_config


def test_add__counts_what_the_cache_does_not_answer(tmp_path):
    plan = build_plan(from_mapping(judged_config(tmp_path, "http://127.0.0.1:9/v1")))
    trial = plan.tasks[0].cells[0].cell.trial(0)
    answer = Record(200, 0.5, b'{"choices": [{"message": {"content": "Paris"}}]}').encode()
    keys = list(judge_keys(plan.judges, CriteriaBook(plan.tasks).of(0, trial).rubric, trial, answer))

    for data, cache, to_send in (
        (None, {}, [2, 1]),
        (answer, None, [2, 1]),
        (answer, {}, [2, 1]),
        (answer, dict.fromkeys(keys[:2], b""), [0, 1]),
        (answer, dict.fromkeys(keys, b""), [0, 0]),
    ):
        stored: Any = cache
        item: Any = SimpleNamespace(task=0, trial=trial)
        tally = JudgeTally(plan, stored)
        tally.add(item, data, 10.0)

        assert [count.left for count in tally.counts] == [20, 10]
        assert [count.to_send for count in tally.counts] == [10 * number for number in to_send]
        assert [count.unknown for count in tally.counts] == ([0, 0] if data else [20, 10])
        assert [count.characters > 0 for count in tally.counts] == [number > 0 for number in to_send]
