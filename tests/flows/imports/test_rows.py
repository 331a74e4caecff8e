"""Lines of no known tool are read by a mapping."""

import math

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.imports.rows import parse_map, read_rows
from evalcube.flows.imports.samples import Wanted
from tests.flows.imports.logs import samples, write_lines

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
        "got": 2, "choices": ["1", "2"],
    }  # fmt: skip
    names = {"tokens": "tokens", "prompt_tokens": "prompt_tokens", "latency": "latency", "reasoning": "why"}
    names |= {"finish": "end", "reference": "ref", "task": "set", "answer": "got", "options": "choices"}

    sample = one(tmp_path, {**ROW, **more}, {**MAP, **names})

    answer = sample.answer
    assert (answer.completion_tokens, answer.prompt_tokens, answer.latency) == (5, 9, 0.5)
    assert (answer.reasoning, answer.finish, answer.parsed) == ("so", "length", "2")
    assert (sample.question.reference, sample.run.task, sample.question.options) == ('["2"]', "t", ("1", "2"))


def test_read_rows__needs_no_texts(tmp_path):
    sample = one(tmp_path, {"id": "a", "ok": True, "m": "x"}, {"id": "id", "correct": "ok", "model": "m"})

    assert (sample.answer.text, sample.answer.repeat, sample.question.prompt) == (None, None, "")


def test_read_rows__knows_failures(tmp_path):
    fields = {**MAP, "error": "error"}

    assert one(tmp_path, {**ROW, "error": "boom"}, fields).answer.failure == "error in the log"
    assert one(tmp_path, {**ROW, "error": None}, fields).answer.failure == ""
    assert one(tmp_path, {**ROW, "score": math.nan, "error": "boom"}, fields).answer.failure != ""
    assert one(tmp_path, {**ROW, "score": None}, fields).answer.failure == "not scored"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1], "line 1: it is no JSON object"),
        ({**ROW, "m": None}, "line 1: the log does not say the model"),
        ({**ROW, "q": "", "doc": {}}, "line 1, q: there is no value"),
        ({**ROW, "epoch": "x"}, "line 1, epoch: a repeat must be a whole number"),
        ({**ROW, "score": math.nan}, "mine.jsonl, line 1, score: NaN is no value"),
        ({**ROW, "score": -math.inf}, "line 1, score: -Infinity is no value"),
        ({**ROW, "q": math.nan}, "line 1, q: NaN is no value"),
        ({**ROW, "doc": {"id": math.inf}}, "line 1, doc.id: Infinity is no value"),
        ({**ROW, "m": math.nan}, "line 1, m: NaN is no value"),
        ({**ROW, "epoch": math.nan}, "line 1, epoch: NaN is no value"),
        ({**ROW, "epoch": -1}, "line 1, epoch: a repeat must be a whole number"),
    ],
)
def test_read_rows__refuses_with_the_place(tmp_path, row, message):
    with pytest.raises(SweepError, match=message):
        one(tmp_path, row)


def test_read_rows__reads_parquet(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist([ROW, {**ROW, "epoch": 2}]), tmp_path / "mine.parquet")

    found = samples("rows", tmp_path / "mine.parquet", fields=MAP)

    assert [(sample.question.id, sample.answer.repeat) for sample in found] == [("7", 1), ("7", 2)]
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(SweepError, match=r"bad\.parquet: it cannot be read"):
        samples("rows", tmp_path / "bad.parquet", fields=MAP)


def test_parse_map__reads_pairs_and_yaml(tmp_path):
    path = tmp_path / "map.yaml"
    path.write_text("prompt: q\ncorrect: score.value\n", encoding="utf-8")

    assert (
        parse_map("prompt=q, correct=score.value")
        == parse_map(str(path))
        == {"prompt": "q", "correct": "score.value"}
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("prompt=q,score=s", "'score' cannot be mapped"),
        ("prompt=,correct=s", "'prompt' cannot be mapped"),
        ("prompt=q", "nothing says which field has the score"),
        ("correct=s", "nothing says which question"),
        ("missing.yaml", "is neither a mapping nor a YAML file"),
    ],
)
def test_parse_map__refuses(given, message):
    with pytest.raises(SweepError, match=message):
        parse_map(given)


def test_parse_map__refuses_yaml_that_is_no_mapping(tmp_path):
    path = tmp_path / "map.yaml"
    path.write_text("- prompt\n", encoding="utf-8")

    with pytest.raises(SweepError, match="must hold lines such as"):
        parse_map(str(path))


def notes(tmp_path, rows, fields):
    wanted = Wanted(fields=fields)
    list(read_rows(write_lines(tmp_path / "mine.jsonl", rows), wanted))
    return list(wanted.notes)


def test_read_rows__says_what_no_line_has(tmp_path):
    fields = {**MAP, "response": "output", "tokens": "usage.tokens", "error": "failure"}

    assert notes(tmp_path, [ROW, ROW], fields) == [
        "mine.jsonl: no line has 'output', which is to be the response",
        "mine.jsonl: no line has 'usage.tokens', which is to be the tokens",
    ]
    assert notes(tmp_path, [ROW, {**ROW, "output": "2", "usage": {"tokens": 1}}], fields) == []


def test_read_rows__says_if_an_id_stands_for_several_prompts(tmp_path):
    rows = [ROW, {**ROW, "q": "2+2?"}, {**ROW, "q": "2+2?", "m": "bravo"}]

    (note,) = notes(tmp_path, rows, MAP)
    assert "1 ids stand for several prompts to the same model, such as '7'" in note
    assert "line 2): they count as one question" in note
    assert notes(tmp_path, [ROW, rows[2]], MAP) == []  # another model's chat template
