"""Exports are what other tools read, by published schemas, fields of the real packages, and files that they made."""

import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.read.trials.read import trials
from evalcube.flows.share.exports.export import FORMATS, export
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from tests.flows.support import evalcube, refused, reset, sweep_config, write_config
from tests.tiers import need
from tests.waiting import PATIENCE

pytestmark = pytest.mark.cluster

DATA = Path(__file__).parents[3] / "data" / "formats"
INSPECT = json.loads((DATA / "inspect_fields.json").read_text())["classes"]
PYTHON = "EVALCUBE_INSPECT_PYTHON"
"""Variable with the Python of an environment that has inspect_ai."""


@pytest.fixture(scope="module")
def swept(tmp_path_factory, _served):
    """A folder with a sweep of two models with prices, system message, repeats."""
    reset(_served)
    folder = tmp_path_factory.mktemp("swept")
    config = sweep_config(folder, _served.base_url, trials=4, cells=2, models=("alpha", "beta"), repeats=2)
    config["samplers"]["greedy"]["temperature"] = 1
    config["templates"] = {
        "plain": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{ prompt }}"}]
    }
    for model in config["models"]:
        model["simulate"] = {"ability": 1.0, "tokens": 20}
        model["prices"] = {"prompt": 1, "completion": 2}
    code, _, errors = evalcube("run", write_config(folder, config), "--quiet", cwd=folder)
    assert code == 0, errors
    return folder


@pytest.fixture(params=["swept", "judged"])
def folder(request):
    return request.getfixturevalue(request.param)


def written(folder, target, to, **options):
    """An export, with its files' contents by path."""
    done = export(folder / "cube.zarr", to=to, output=target, **options)
    assert sorted(done.files) == sorted(
        path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()
    )
    return done, {name: (target / name).read_bytes() for name in done.files}


def lines(data):
    return [json.loads(line) for line in data.splitlines()]


# ---- Every Eval Ever


def valid(document, name):
    schema = json.loads((DATA / "eee" / name).read_text())
    jsonschema.validate(document, schema, jsonschema.Draft7Validator)


def records(files):
    """Aggregate and samples of each record."""
    for name, data in files.items():
        if name.endswith(".jsonl"):
            yield name, json.loads(files[name.replace("_samples.jsonl", ".json")]), lines(data)


def test_eee__fulfils_the_published_schema(folder, tmp_path):
    _, files = written(folder, tmp_path / "out", "eee", organization="Us")

    found = list(records(files))
    assert len(found) == 2
    for name, aggregate, samples in found:
        valid(aggregate, "eval.schema.json")
        for sample in samples:
            valid(sample, "instance_level_eval.schema.json")
        detailed = aggregate["detailed_evaluation_results"]
        assert (detailed["file_path"], detailed["total_rows"]) == (name, len(samples))
        assert detailed["checksum"] == hashlib.sha256(files[name]).hexdigest()
        results = {one["evaluation_result_id"] for one in aggregate["evaluation_results"]}
        assert {sample["evaluation_result_id"] for sample in samples} == results
        assert {sample["evaluation_id"] for sample in samples} == {aggregate["evaluation_id"]}
        assert {sample["model_id"] for sample in samples} == {aggregate["model_info"]["id"]}


def test_eee__says_scores_intervals_prices_and_repeats(swept, tmp_path):
    _, files = written(swept, tmp_path / "out", "eee")
    code, output, _ = evalcube(
        "table", "cube.zarr", "--by", "model,task", "--mode", "E_P", "--json", cwd=swept
    )
    assert code == 0
    board = {(row["model"], row["task"]): row for row in json.loads(output)["rows"]}

    for _, aggregate, samples in records(files):
        name = aggregate["model_info"]["name"]
        assert aggregate["model_info"]["additional_details"]["price_completion_usd_per_million"] == "2.0"
        for result in aggregate["evaluation_results"]:
            row = board[name, result["evaluation_name"]]
            details = result["score_details"]
            interval = details["uncertainty"]["confidence_interval"]
            assert details["score"] == pytest.approx(row["point"])
            assert (interval["lower"], interval["upper"]) == pytest.approx((row["lower"], row["upper"]))
        places = {(s["sample_id"], s["metadata"]["trial"], s["metadata"]["repeat"]) for s in samples}
        assert len(places) == len(samples) == 3 * 4 * 2
        assert {s["metadata"]["repeat"] for s in samples} == {"0", "1"}
        assert all(s["input"]["formatted"].startswith("Be brief.") for s in samples)


def test_eee__has_judges_and_layers_as_results_of_their_own(judged, tmp_path):
    _, files = written(judged, tmp_path / "out", "eee")

    for _, aggregate, samples in records(files):
        results = {one["metric_config"]["metric_id"]: one for one in aggregate["evaluation_results"]}
        assert set(results) == {"accuracy", "evalcube.fact", "evalcube.behavior", "evalcube.judge"}
        scoring = results["evalcube.judge"]["metric_config"]["llm_scoring"]
        assert len(scoring["judges"]) == 2
        assert "{rubric}" in scoring["input_prompt"]
        assert {sample["sample_id"] for sample in samples} >= {"france", "peru"}
        by_metric = [s for s in samples if s["evaluation_result_id"].endswith("/judge")]
        mean = sum(s["evaluation"]["score"] for s in by_metric) / len(by_metric)
        assert results["evalcube.judge"]["score_details"]["score"] == pytest.approx(mean)


def test_eee__has_the_same_ids_and_samples_each_time(swept, tmp_path):
    _, first = written(swept, tmp_path / "one", "eee", now=1.0)
    _, second = written(swept, tmp_path / "two", "eee", now=2.0)

    assert first.keys() == second.keys()
    for name, data in first.items():
        if name.endswith(".jsonl"):
            assert data == second[name]
        else:
            assert json.loads(data) == {**json.loads(second[name]), "retrieved_timestamp": "1"}


# ---- Inspect


def fits(document, name, path=""):
    """Why a document is none of a class of Inspect's."""
    fields = INSPECT[name]
    unknown = sorted(set(document) - set(fields))
    lacking = sorted(field for field, required in fields.items() if required and field not in document)
    assert (unknown, lacking) == ([], []), f"{name} {path}"


def opened(data, tmp_path):
    path = tmp_path / "log.eval"
    path.write_bytes(data)
    with zipfile.ZipFile(path) as log:
        return {name: json.loads(log.read(name)) for name in log.namelist()}


def test_inspect__has_fields_of_the_real_package_only(folder, tmp_path):
    _, files = written(folder, tmp_path / "out", "inspect")

    assert files
    for data in files.values():
        log = opened(data, tmp_path)
        header, start = log["header.json"], log["_journal/start.json"]
        fits(header, "EvalLog")
        fits(start, "LogStart")
        for name, part in (("eval", "EvalSpec"), ("plan", "EvalPlan"), ("results", "EvalResults")):
            fits(header[name], part)
        fits(header["stats"], "EvalStats")
        fits(header["eval"]["config"], "EvalConfig")
        fits(header["eval"]["dataset"], "EvalDataset")
        fits(header["eval"]["model_generate_config"], "GenerateConfig")
        for score in header["results"]["scores"]:
            fits(score, "EvalScore")
            for metric in score["metrics"].values():
                fits(metric, "EvalMetric")
        samples = {name: sample for name, sample in log.items() if name.startswith("samples/")}
        assert len(samples) == len(log["summaries.json"]) == header["results"]["total_samples"]
        for name, sample in samples.items():
            assert name == f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            fits(sample, "EvalSample", name)
            fits(sample["output"], "ModelOutput", name)
            for message in sample["messages"]:
                fits(message, f"ChatMessage{message['role'].capitalize()}", name)
            for choice in sample["output"]["choices"]:
                fits(choice, "ChatCompletionChoice", name)
            for score in sample["scores"].values():
                fits(score, "Score", name)
        for summary in log["summaries.json"]:
            fits(summary, "EvalSampleSummary")


def test_inspect__holds_every_trial_with_its_epoch_and_score(swept, tmp_path):
    _, files = written(swept, tmp_path / "out", "inspect")

    found = {}
    for data in files.values():
        log = opened(data, tmp_path)
        assert log["header.json"]["eval"]["config"]["epochs"] == 2
        model = log["header.json"]["eval"]["metadata"]["evalcube"]["label"]
        for name, sample in log.items():
            if name.startswith("samples/"):
                found[
                    model, sample["metadata"]["cell_id"], sample["metadata"]["trial"], sample["epoch"] - 1
                ] = sample
    rows = list(trials(swept / "cube.zarr").rows())
    assert len(found) == len(rows)
    for row in rows:
        sample = found[row["model"], row["cell_id"], row["trial"], row["repeat"]]
        assert sample["scores"]["evalcube"]["value"] == ("C" if row["status"] == "correct" else "I")
        assert sample["scores"]["evalcube"].get("answer") == row["answer"]
        assert sample["output"]["completion"] == row["response"]
        assert [(m["role"], m["content"]) for m in sample["messages"][:2]] == [
            (m["role"], m["content"]) for m in row["messages"]
        ]
        assert sample["output"]["usage"]["output_tokens"] == row["tokens"]


READ = """
import json, sys
from inspect_ai.analysis import samples_df
from inspect_ai.log import read_eval_log, read_eval_log_sample
from pathlib import Path
for path in sorted(Path(sys.argv[1]).glob("*.eval")):
    log = read_eval_log(str(path))
    sample = log.samples[0]
    again = read_eval_log_sample(str(path), id=sample.id, epoch=sample.epoch)
    print(json.dumps({
        "status": log.status, "samples": len(log.samples), "frame": len(samples_df(str(path), quiet=True)),
        "accuracy": {s.name: {m: v.value for m, v in s.metrics.items()} for s in log.results.scores},
        "scores": {name: score.value for name, score in again.scores.items()}, "completion": again.output.completion,
    }))
"""


def test_inspect__is_read_by_inspect_itself(folder, tmp_path):
    python = os.environ.get(PYTHON, "")
    need("inspect_ai", python, f"pip install inspect_ai into an environment, and set {PYTHON} to its Python")
    _, files = written(folder, tmp_path / "out", "inspect")

    done = subprocess.run(
        [python, "-c", READ, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = lines(done.stdout)
    assert len(found) == len(files)
    for log in found:
        assert log["status"] == "success"
        assert log["samples"] == log["frame"] > 0
        assert 0 <= log["accuracy"]["evalcube"]["accuracy"] <= 1
        assert log["scores"]["evalcube"] in ("C", "I", 1.0, 0.0)
        assert log["completion"]


# ---- all of them


@pytest.mark.parametrize("to", FORMATS)
def test_export__holds_no_path_of_this_machine_and_no_secret(to, judged, tmp_path):
    _, files = written(judged, tmp_path / "out", to)

    for name, data in files.items():
        texts = json.dumps(opened(data, tmp_path)).encode() if name.endswith(".eval") else data
        assert str(judged).encode() not in texts
        assert b"sim:" not in texts
        assert b"rows.jsonl" in texts or b"france" in texts or "results" in name


@pytest.mark.parametrize("to", FORMATS)
def test_export__is_whole_or_not_there(to, swept, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evalcube.flows.share.exports.source.described", fail)
    monkeypatch.setattr(
        f"evalcube.flows.share.exports.{FORMATS[to].__module__.rpartition('.')[2]}.described", fail
    )
    result = evalcube("export", "cube.zarr", "--to", to, "-o", tmp_path / "out", cwd=swept)

    refused(result, "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", FORMATS)
def test_export__without_replies_says_so(to, swept, tmp_path):
    done, files = written(swept, tmp_path / "out", to, cache=tmp_path / "nothing")

    assert files
    assert done.trials == 2 * 3 * 4 * 2
    assert done.notes[0].endswith("no cache is at hand; give this sweep's with `cache`.")


def test_export__refuses_what_is_there_and_unknown_forms(swept, tmp_path):
    (tmp_path / "out").mkdir()

    refused(
        evalcube("export", "cube.zarr", "--to", "inspct", "-o", "x", cwd=swept), "Did you mean 'inspect'?"
    )
    refused(
        evalcube("export", "cube.zarr", "--to", "eee", "-o", tmp_path / "out", cwd=swept),
        "-o: ",
        "is there already",
    )
    with pytest.raises(SweepError, match="model is never 'gamma'"):
        export(swept / "cube.zarr", to="eee", output=tmp_path / "new", where=["model=gamma"])
    with pytest.raises(SweepError, match="tokens chooses single trials"):
        export(swept / "cube.zarr", to="eee", output=tmp_path / "new", where=["tokens=1..2"])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("to", FORMATS)
def test_export__of_nothing_is_refused_and_leaves_nothing(to, swept, tmp_path):
    shutil.copytree(swept / "cube.zarr", tmp_path / "cube.zarr")
    cube = Cube.open(tmp_path / "cube.zarr", writable=True)
    for region in cube.regions():
        arrays = cube.read_region(region)
        cube.write_region(region, {**arrays, "status": np.full_like(arrays["status"], Status.MISSING)})

    with pytest.raises(SweepError, match="there is no finished trial to export"):
        export(tmp_path / "cube.zarr", to=to, output=tmp_path / "out")

    assert [path.name for path in tmp_path.iterdir()] == ["cube.zarr"]


def test_command__reports_what_it_wrote(swept, tmp_path):
    code, output, _ = evalcube(
        "export", "cube.zarr", "--to", "eee", "-o", tmp_path / "out", "--json", cwd=swept
    )

    assert code == 0
    document = json.loads(output)
    assert (document["trials"], len(document["files"]), document["notes"]) == (48, 4, [])
