"""Whatever a log holds, it is read or refused with one message; nothing else happens."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.collect import Collection
from evalcube.flows.share.imports.logs import READERS
from evalcube.flows.share.imports.samples import LogHints, Scale
from tests.flows.share.imports.logs import INSPECT, LM_EVAL, write_lines

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["\ud800", "\x1b[2J", "../../etc/passwd", "C", "attachment://x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
LINES = {
    "lm-eval": next((LM_EVAL / "alfa").glob("samples_*")),
}
FIELDS = {
    name: name
    for name in ("prompt", "id", "correct", "response", "model", "repeat", "latency", "tokens", "finish")
}
ROW = {
    "prompt": "q",
    "id": 1,
    "correct": 1,
    "response": "r",
    "model": "m",
    "repeat": 0,
    "latency": 1,
    "tokens": 2,
}


def paths(document, above=()):
    """Every place in a document."""
    yield above
    children = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, child in children:
        yield from paths(child, (*above, key))


def changed(data, document):
    """A document with other values in some places."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        places = [place for place in paths(document) if place]
        place = data.draw(st.sampled_from(places))
        holder = document
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = data.draw(VALUES)
    return document


def read(form, path, **fields):
    """Read a log into a collection, and out again, as an import does."""
    refusal = ""
    with Collection(Scale(0.5)) as found:
        try:
            for sample in READERS[form](path, LogHints(**fields)):
                found.add(sample)
            for task in range(len(found.tasks)):
                assert all(json.loads(row)["prompt"] for row in found.rows(task))
            assert found.table().min(initial=0) >= -1
        except SweepError as error:
            refusal = str(error)
    assert not refusal or path.name in refusal or "question" in refusal


@pytest.fixture
def folder(tmp_path):
    """A folder for one example after another."""
    return tmp_path


EXAMPLES = settings(
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@EXAMPLES
@given(st.data())
def test_inspect__is_read_or_refused(folder, data):
    document = json.loads((INSPECT / "charlie-sums.json").read_text(encoding="utf-8"))
    document["samples"] = [{**sample, "events": []} for sample in document["samples"][:2]]
    path = folder / "log.json"
    path.write_text(json.dumps(changed(data, document)), encoding="utf-8")

    read("inspect", path)


@pytest.mark.parametrize("form", sorted(LINES))
@EXAMPLES
@given(st.data())
def test_lines__are_read_or_refused(folder, form, data):
    rows = [json.loads(line) for line in LINES[form].read_text(encoding="utf-8").splitlines()[:2]]

    read(form, write_lines(folder / "log.jsonl", changed(data, rows)), model="m", task="t")


@EXAMPLES
@given(st.data())
def test_rows__are_read_or_refused(folder, data):
    read("rows", write_lines(folder / "log.jsonl", changed(data, [ROW, {**ROW, "id": 2}])), fields=FIELDS)


@EXAMPLES
@given(st.data())
def test_results__of_lm_eval_are_read_or_refused(folder, data):
    results = json.loads(next((LM_EVAL / "alfa").glob("results_*")).read_text(encoding="utf-8"))
    (folder / "results_x.json").write_text(json.dumps(changed(data, results)), encoding="utf-8")
    path = folder / LINES["lm-eval"].name
    path.write_bytes(LINES["lm-eval"].read_bytes())

    with Collection(Scale(0.5)) as found:
        try:
            for sample in READERS["lm-eval"](path, LogHints()):
                found.add(sample)
        except SweepError:
            pass
