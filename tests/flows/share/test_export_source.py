"""What an export knows of each trial and of all of them."""

import json

import pytest

from tests.flows.share.exports import records, written

pytestmark = pytest.mark.cluster


def test_eee__standard_errors_are_those_of_the_questions_means(folder, exported):
    compared = 0
    for _, aggregate, samples in records(exported(folder)):
        for result in aggregate["evaluation_results"]:
            questions = {}
            for sample in samples:
                if sample["evaluation_result_id"] == result["evaluation_result_id"]:
                    question = sample["sample_id"], sample["metadata"]["trial"]
                    questions.setdefault(question, []).append(sample["evaluation"]["score"])
            means = [sum(scores) / len(scores) for scores in questions.values()]
            centre = sum(means) / len(means)
            variance = sum((mean - centre) ** 2 for mean in means) / (len(means) - 1)
            error = result["score_details"]["uncertainty"]["standard_error"]
            assert error["value"] == pytest.approx((variance / len(means)) ** 0.5)
            assert result["score_details"]["details"]["questions"] == str(len(means))
            compared += error["value"] > 0
    assert compared > 1


def test_eee__has_the_same_ids_and_samples_each_time(swept, exported, tmp_path):
    first = exported(swept)
    _, second = written(swept, tmp_path / "two", organization="Us", now=2.0)

    assert first.keys() == second.keys()
    for name, data in first.items():
        if name.endswith(".jsonl"):
            assert data == second[name]
        else:
            assert json.loads(data) == {**json.loads(second[name]), "retrieved_timestamp": "1"}


def test_export__holds_no_path_of_this_machine_and_no_secret(judged, exported):
    for name, data in exported(judged).items():
        assert str(judged).encode() not in data
        assert b"sim:" not in data
        assert b"rows.jsonl" in data or b"france" in data, name


def test_export__without_replies_says_so(swept, tmp_path):
    done, files = written(swept, tmp_path / "out", cache=tmp_path / "nothing")

    assert files
    assert done.trials == 2 * 3 * 4 * 2
    assert done.notes[0].endswith("sweep's with `cache`.")
