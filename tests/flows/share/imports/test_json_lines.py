"""Samples of lm-evaluation-harness are read with the settings of their run."""

import json
import shutil

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.samples import LogHints
from tests.flows.share.imports.logs import LM_EVAL, samples, write_lines

(ALFA,) = (LM_EVAL / "alfa").glob("samples_*")
(BRAVO,) = (LM_EVAL / "bravo").glob("samples_*")
(DUMMY,) = (LM_EVAL / "dummy").glob("samples_*")
RESULTS = json.loads(next((LM_EVAL / "alfa").glob("results_*")).read_text(encoding="utf-8"))


def rows(path=ALFA):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", ["strict-match", "flexible-extract"])
def test_read_lm_eval__counts_what_the_harness_counts(name):
    found = samples("lm-eval", ALFA, score=f"exact_match,{name}")

    # The harness's own mean, from its results file.
    mean = sum(sample.answer.score for sample in found) / len(found)
    assert mean == pytest.approx(RESULTS["results"]["sums"][f"exact_match,{name}"])
    assert {sample.run.scorer for sample in found} == {f"exact_match,{name}"}


def test_read_lm_eval__takes_the_first_filter_and_says_so():
    wanted = LogHints()

    found = samples("lm-eval", ALFA, wanted)

    assert [sample.question.id for sample in found] == list("012345")
    (note,) = wanted.notes
    assert note.startswith("task sums@1.0: ")
    assert note.index("'strict-match'") < note.index("flexible-extract")
    assert found[0].question.prompt == "Question: What is 0 + 0?\nAnswer:"
    assert (found[0].answer.text, found[0].answer.parsed) == ("The answer is 0.", "0")
    assert (found[0].run.model, found[0].run.task) == ("alfa", "sums@1.0")


def test_read_lm_eval__knows_equal_questions_under_other_prompts():
    ours, theirs = samples("lm-eval", ALFA), samples("lm-eval", BRAVO)

    assert [sample.question.content for sample in ours] == [sample.question.content for sample in theirs]
    assert theirs[0].question.prompt.startswith("system: Be brief.\n\nuser: ")
    assert ours[0].run.settings != theirs[0].run.settings


@pytest.mark.parametrize("name", ["label", "doc.label"])
def test_read_lm_eval__takes_a_cluster_from_the_document(name):
    found = samples("lm-eval", DUMMY, fields={"cluster": name})

    assert [one.question.cluster for one in found] == [str(row["doc"]["label"]) for row in rows(DUMMY)]


def test_read_lm_eval__takes_the_likeliest_option():
    found = samples("lm-eval", DUMMY)

    for sample, row in zip(found, rows(DUMMY), strict=True):
        likelihoods = [float(one[0][0]) for one in row["resps"]]
        assert sample.question.options == (" Alfa", " Bravo", " Charlie", " Delta")
        assert sample.answer.text == sample.question.options[likelihoods.index(max(likelihoods))]
        assert (
            sample.answer.score
            == row["acc"]
            == float(likelihoods.index(max(likelihoods)) == row["doc"]["label"])
        )


@pytest.mark.parametrize(
    ("change", "wanted", "message"),
    [
        ({}, {"score": ",none"}, "no line has the filter 'none'"),
        ({}, {"score": "f1"}, "line 1: it has no score 'f1'"),
        ({"resps": None, "arguments": None}, {}, "line 1: it has no request"),
        ({"arguments": {}}, {}, "line 1: it has no request"),
    ],
)
def test_read_lm_eval__refuses_with_the_place(tmp_path, change, wanted, message):
    path = write_lines(tmp_path / ALFA.name, [{**row, **change} for row in rows()])

    with pytest.raises(SweepError, match=message):
        samples("lm-eval", path, model="m", **wanted)


def test_read_lm_eval__refuses_scores_of_which_less_is_better(tmp_path):
    results = {**RESULTS, "higher_is_better": {"sums": {"exact_match": False}}}
    (tmp_path / "results_x.json").write_text(json.dumps(results), encoding="utf-8")
    shutil.copy(ALFA, tmp_path)

    with pytest.raises(SweepError, match="is better"):
        samples("lm-eval", tmp_path / ALFA.name)


def test_read_lm_eval__asks_for_the_model_without_results(tmp_path):
    path = shutil.copy(ALFA, tmp_path)

    with pytest.raises(SweepError, match="the model"):
        samples("lm-eval", tmp_path / ALFA.name)
    assert samples("lm-eval", tmp_path / ALFA.name, model="m")[0].run.model == "m"
    assert path


def test_read_lm_eval__keeps_no_address_and_no_key(tmp_path):
    config = {
        **RESULTS["config"],
        "model_args": "model=m,api_key=sk-secret,base_url=http://secret,dtype=float16",
    }
    (tmp_path / "results_x.json").write_text(json.dumps({**RESULTS, "config": config}), encoding="utf-8")
    shutil.copy(ALFA, tmp_path)

    settings = samples("lm-eval", tmp_path / ALFA.name)[0].run.settings

    assert "secret" not in settings
    assert '"dtype":"float16"' in settings


def test_read_lm_eval__takes_a_score_that_is_no_number_for_none(tmp_path):
    path = write_lines(tmp_path / ALFA.name, [{**row, "exact_match": float("nan")} for row in rows()[:1]])

    assert samples("lm-eval", path, model="m")[0].answer.failure.startswith("not scored")


def test_read_lm_eval__knows_that_a_filter_found_no_answer(tmp_path):
    row = {**rows()[0], "filtered_resps": ["[invalid]"], "exact_match": 0.0}

    (sample,) = samples("lm-eval", write_lines(tmp_path / ALFA.name, [row]), model="m")

    assert (sample.answer.unread, sample.answer.parsed) == (True, None)


def test_read_lm_eval__takes_a_reply_that_never_came_for_an_empty_one(tmp_path):
    first, second, *_ = rows()
    null = {**second, "resps": [[None]], "filtered_resps": [None], "exact_match": 0.0}
    folder = tmp_path / "log"
    shutil.copytree(LM_EVAL / "alfa", folder)
    write_lines(next(folder.glob("samples_*")), [first, null])

    found = samples("lm-eval", next(folder.glob("samples_*")))

    assert found[0].run == found[1].run  # one way to ask, and so one evaluation
    assert (found[1].answer.text, found[1].answer.unread, found[1].answer.failure) == ("", True, "")
