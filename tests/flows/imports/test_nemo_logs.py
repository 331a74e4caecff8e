"""Results of NeMo Evaluator are read as its documentation says."""

import json
import math
import shutil

import pytest

from evalcube.flows.errors import SweepError
from tests.flows.imports.logs import NEMO, samples, write_lines

RESULTS = NEMO / "gsm8k" / "results.jsonl"


def test_read_nemo__reads_results():
    found = samples("nemo", RESULTS)

    assert [(sample.question.id, sample.answer.repeat) for sample in found] == [
        ("0", 0), ("0", 1), ("1", 0), ("1", 1), ("2", 0), ("2", 1)
    ]  # fmt: skip
    assert [sample.answer.score for sample in found] == [1, 0, 1, 1, None, 0]
    assert found[4].answer.failure == "infra error in nemo_evaluator"
    assert (found[0].run.model, found[0].run.task, found[0].run.scorer) == (
        "nemotron-nano",
        "gsm8k",
        "reward",
    )
    assert json.loads(found[0].run.settings) == {"max_tokens": 512, "temperature": 0.6, "top_p": 0.95}
    assert found[0].answer.latency == 0.8125
    assert found[0].answer.parsed == "42"
    assert found[0].question.prompt == "What is 6 x 7?"


def test_read_nemo__takes_tokens_of_prompt_and_answer_for_neither():
    assert {sample.answer.completion_tokens for sample in samples("nemo", RESULTS)} == {-1}


def test_read_nemo__does_not_take_0_for_a_time(tmp_path):
    path = write_lines(tmp_path / "results.jsonl", [{"problem_idx": 1, "reward": 1, "latency_ms": 0}])

    (sample,) = samples("nemo", path, model="m", task="t")
    assert math.isnan(sample.answer.latency)
    assert sample.answer.text is None


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"reward": 1}, "line 1: it has no `problem_idx`"),
        ({"problem_idx": True, "reward": 1}, "line 1: it has no `problem_idx`"),
        ({"problem_idx": 1}, "line 1: it has no `reward`"),
        ({"problem_idx": 1, "reward": 1, "repeat": -1}, "line 1, repeat: it must be a whole number"),
        ({"problem_idx": 1, "reward": 1, "repeat": 0.5}, "line 1, repeat: it must be a whole number"),
    ],
)
def test_read_nemo__refuses_with_the_place(tmp_path, row, message):
    path = write_lines(tmp_path / "results.jsonl", [row])

    with pytest.raises(SweepError, match=message):
        samples("nemo", path, model="m", task="t")


def test_read_nemo__asks_for_what_the_bundle_would_say(tmp_path):
    shutil.copy(RESULTS, tmp_path)

    with pytest.raises(SweepError, match="the log does not say the benchmark"):
        samples("nemo", tmp_path / "results.jsonl")
    with pytest.raises(SweepError, match="the log does not say the model"):
        samples("nemo", tmp_path / "results.jsonl", task="t")


def test_read_nemo__takes_another_score(tmp_path):
    rows = [{"problem_idx": 1, "reward": 1, "scorer_rewards": {"scorer:f1": 0}}]
    path = write_lines(tmp_path / "results.jsonl", rows)

    (sample,) = samples("nemo", path, model="m", task="t", score="scorer:f1")
    assert sample.answer.score == 0
    with pytest.raises(SweepError, match="it has no score 'bleu'"):
        samples("nemo", path, model="m", task="t", score="bleu")
