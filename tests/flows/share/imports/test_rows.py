"""Lines of no known tool are read by a mapping."""

import math

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.json_lines import parse_map, read_rows
from evalcube.flows.share.imports.samples import LogHints
from tests.flows.share.imports.logs import samples, write_lines

MAP = {"prompt": "q", "response": "out", "correct": "score", "id": "doc.id", "model": "m", "repeat": "epoch"}
ROW = {"q": "1+1?", "out": "2", "score": 1, "doc": {"id": 7}, "m": "alfa", "epoch": 1}


def one(tmp_path, row, fields=None):
    (sample,) = samples("rows", write_lines(tmp_path / "mine.jsonl", [row]), fields=fields or MAP)
    return sample


def test_read_rows__reads_what_the_mapping_says(tmp_path):
    sample = one(tmp_path, ROW)

    assert (sample.run.tool, sample.run.task, sample.run.model, sample.run.scorer) == (
        "rows",
        "mine",
        "alfa",
        "score",
    )
    assert (sample.question.id, sample.question.prompt) == ("7", "1+1?")
    assert (sample.answer.text, sample.answer.score, sample.answer.repeat) == ("2", 1, 1)
    assert sample.answer.completion_tokens == -1
    assert math.isnan(sample.answer.latency)


def test_read_rows__reads_the_rest_if_it_is_mapped(tmp_path):
    more = {
        "tokens": 5.0, "prompt_tokens": 9, "latency": 0.5, "why": "so", "end": "max_tokens", "ref": ["2"], "set": "t",
    }  # fmt: skip
    names = {"tokens": "tokens", "prompt_tokens": "prompt_tokens", "latency": "latency", "reasoning": "why"}
    names |= {"finish": "end", "reference": "ref", "task": "set"}

    sample = one(tmp_path, {**ROW, **more}, {**MAP, **names})

    answer = sample.answer
    assert (answer.completion_tokens, answer.prompt_tokens, answer.latency) == (5, 9, 0.5)
    assert (answer.reasoning, answer.finish) == ("so", "length")
    assert (sample.question.reference, sample.run.task) == ('["2"]', "t")


def test_read_rows__needs_no_texts(tmp_path):
    sample = one(tmp_path, {"id": "a", "ok": True, "m": "x"}, {"id": "id", "correct": "ok", "model": "m"})

    assert (sample.answer.text, sample.answer.repeat, sample.question.prompt) == (None, None, "")


def test_read_rows__knows_failures(tmp_path):
    fields = MAP

    assert one(tmp_path, {**ROW, "error": "boom"}, fields).answer.failure.startswith("error")
    assert one(tmp_path, {**ROW, "error": None}, fields).answer.failure == ""
    assert one(tmp_path, {**ROW, "score": math.nan}, fields).answer.failure == "not scored"
    assert one(tmp_path, {**ROW, "score": None}, fields).answer.failure == "not scored"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1], "line 1: it is no JSON object"),
        ({**ROW, "m": None}, "line 1: the log does not say the model"),
        ({**ROW, "q": "", "doc": {}}, "line 1, q: nothing says which question"),
        ({**ROW, "q": math.nan, "doc": {"id": math.inf}}, "line 1, q: nothing says which question"),
        ({**ROW, "epoch": "x"}, "line 1, epoch: a repeat must be a whole number"),
        ({**ROW, "m": math.nan}, "line 1: the log does not say the model"),
        ({**ROW, "epoch": -1}, "line 1, epoch: a repeat must be a whole number"),
    ],
)
def test_read_rows__refuses_with_the_place(tmp_path, row, message):
    with pytest.raises(SweepError, match=message):
        one(tmp_path, row)


def test_read_rows__needs_no_map_where_names_are_ours(tmp_path):
    row = {"prompt": "1+1?", "response": "", "correct": True, "model": "alfa", "task": "sums"}
    sample = one(tmp_path, row, {"latency": "seconds"})

    assert (sample.run.task, sample.run.scorer, sample.run.model) == ("sums", "correct", "alfa")
    assert (sample.question.prompt, sample.answer.text, sample.answer.score) == ("1+1?", "", True)


def test_parse_map__reads_pairs():
    assert parse_map("prompt=q, correct=score.value") == {"prompt": "q", "correct": "score.value"}


@pytest.mark.parametrize("given", ["prompt=q,score=s", "prompt=,correct=s", "prompt", ","])
def test_parse_map__refuses(given):
    with pytest.raises(SweepError, match="cannot be mapped"):
        parse_map(given)


def notes(tmp_path, rows, fields):
    wanted = LogHints(fields=fields)
    list(read_rows(write_lines(tmp_path / "mine.jsonl", rows), wanted))
    return list(wanted.notes)


def test_read_rows__says_what_no_line_has(tmp_path):
    fields = {**MAP, "response": "output", "tokens": "usage.tokens"}

    said = notes(tmp_path, [ROW, ROW], fields)
    assert [(note.partition(":")[0], note.split("'")[1], note.split()[-1]) for note in said] == [
        ("mine.jsonl", "output", "response"),
        ("mine.jsonl", "usage.tokens", "tokens"),
    ]
    assert notes(tmp_path, [ROW, {**ROW, "output": "2", "usage": {"tokens": 1}}], fields) == []
