"""Exports: what other tools read, by the published schema."""

import hashlib
import json
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.export import export, model_id
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from tests.flows.share.exports import records
from tests.flows.support import evalcube, refused

pytestmark = pytest.mark.cluster

DATA = Path(__file__).parents[2] / "data" / "formats"


def validator(name):
    return jsonschema.Draft7Validator(json.loads((DATA / "eee" / name).read_text()))


def test_eee__fulfils_the_published_schema(folder, exported):
    files = exported(folder)

    found = list(records(files))
    assert len(found) == 2
    whole, one = validator("eval.schema.json"), validator("instance_level_eval.schema.json")
    for name, aggregate, samples in found:
        whole.validate(aggregate)
        for sample in samples:
            one.validate(sample)
        detailed = aggregate["detailed_evaluation_results"]
        assert (detailed["file_path"], detailed["total_rows"]) == (name, len(samples))
        assert detailed["checksum"] == hashlib.sha256(files[name]).hexdigest()
        results = {one["evaluation_result_id"] for one in aggregate["evaluation_results"]}
        assert {sample["evaluation_result_id"] for sample in samples} == results
        assert {sample["evaluation_id"] for sample in samples} == {aggregate["evaluation_id"]}
        assert {sample["model_id"] for sample in samples} == {aggregate["model_info"]["id"]}


def test_eee__says_scores_intervals_prices_and_repeats(swept, exported):
    code, output, _ = evalcube(
        "table", "cube.zarr", "--by", "model,task", "--mode", "E_P", "--json", cwd=swept
    )
    assert code == 0
    board = {(row["model"].split()[0], row["task"]): row for row in json.loads(output)["rows"]}

    for _, aggregate, samples in records(exported(swept)):
        name = aggregate["model_info"]["name"]
        details = aggregate["model_info"]["additional_details"]
        assert (details["price_prompt_usd_per_million"], details["price_completion_usd_per_million"]) == (
            "1.0",
            "2.0",
        )
        assert details.get("revision") == {"alpha": "of-may", "beta": None}[name]
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


def test_eee__has_judges_and_layers_as_results_of_their_own(judged, exported):
    for _, aggregate, samples in records(exported(judged)):
        results = {one["metric_config"]["metric_id"]: one for one in aggregate["evaluation_results"]}
        assert set(results) == {"accuracy", "evalcube.fact", "evalcube.behavior", "evalcube.judge"}
        scoring = results["evalcube.judge"]["metric_config"]["llm_scoring"]
        assert [judge.get("temperature") for judge in scoring["judges"]] == [0, 0.7]
        assert "{rubric}" in scoring["input_prompt"]
        assert {sample["sample_id"] for sample in samples} >= {"france", "peru"}
        by_metric = [s for s in samples if s["evaluation_result_id"].endswith("/judge")]
        mean = sum(s["evaluation"]["score"] for s in by_metric) / len(by_metric)
        assert results["evalcube.judge"]["score_details"]["score"] == pytest.approx(mean)


def test_export__is_whole_or_not_there(swept, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evalcube.flows.share.export.trial_details", fail)
    result = evalcube("export", "cube.zarr", "-o", tmp_path / "out", cwd=swept)

    refused(result, "out")
    assert list(tmp_path.iterdir()) == []


def test_export__refuses_what_is_there_and_parts_of_points(swept, tmp_path):
    (tmp_path / "out").mkdir()

    refused(
        evalcube("export", "cube.zarr", "-o", tmp_path / "out", cwd=swept),
        "-o: ",
        "is there already",
    )
    with pytest.raises(SweepError, match="no model 'gamma'"):
        export(swept / "cube.zarr", output=tmp_path / "new", where=["model=gamma"])
    with pytest.raises(SweepError, match="tokens chooses single"):
        export(swept / "cube.zarr", output=tmp_path / "new", where=["tokens=1..2"])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_export__of_nothing_is_refused_and_leaves_nothing(swept, tmp_path):
    shutil.copytree(swept / "cube.zarr", tmp_path / "cube.zarr")
    cube = Cube.open(tmp_path / "cube.zarr", writable=True)
    for region in cube.regions():
        arrays = cube.read_region(region)
        cube.write_region(region, {**arrays, "status": np.full_like(arrays["status"], Status.MISSING)})

    with pytest.raises(SweepError, match="no finished trial"):
        export(tmp_path / "cube.zarr", output=tmp_path / "out")

    assert [path.name for path in tmp_path.iterdir()] == ["cube.zarr"]


def test_command__reports_what_it_wrote(swept, tmp_path):
    code, output, _ = evalcube("export", "cube.zarr", "-o", tmp_path / "out", "--json", cwd=swept)

    assert code == 0
    document = json.loads(output)
    assert (document["trials"], len(document["files"]), document["notes"]) == (48, 4, [])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("org/model-7b", "org/model-7b"), ("model", "unknown/model"), ("/a//b/", "a/b"), ("", "unknown/model")],
)
def test_model_id__is_behind_its_developer(name, expected):
    assert model_id(name) == expected
