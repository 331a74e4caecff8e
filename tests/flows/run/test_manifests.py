"""Manifests from a config: what could not work on Kubernetes is refused before anything is applied."""

import pytest
import yaml

from tests.flows.support import evalcube, refused

SWEEP = """
name: My sweep
cube: {cube}
cache: s3://bucket/cache
{extra}
models: [{{name: m, endpoint: "{endpoint}", key_env: MY_KEY}}]
tasks: {{boolean: {{params: {{length: 4}}}}}}
"""
CLUSTER = (
    "cluster: {kind: kubernetes, image: 'r.example/e:1', workers: {minimum: 1, maximum: 4}, secrets: [keys]}"
)


def written(tmp_path, *, cube="s3://bucket/cube.zarr", endpoint="http://vllm:8000/v1", extra=CLUSTER):
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP.format(cube=cube, endpoint=endpoint, extra=extra))
    return path


def test_manifest__is_printed(tmp_path):
    path = written(tmp_path)

    code, output, errors = evalcube("cluster", "manifest", path, "--namespace", "evals", cwd=tmp_path)

    assert (code, errors) == (0, "")
    config, job, scaler = yaml.safe_load_all(output)
    assert [job["metadata"]["name"], scaler["spec"]["maximum"]] == ["my-sweep", 4]
    assert config["data"]["sweep.yaml"].strip() == path.read_text().strip()
    code, output, _ = evalcube("cluster", "manifest", path, "--as", "job", "--image", "other:2", cwd=tmp_path)
    assert "other:2" in output
    assert "kind: Job" in output


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"extra": "cluster: {kind: local}"}, "is of kind local"),
        ({"extra": ""}, "--image"),
        ({"cube": "results/cube.zarr"}, "would be lost with its pod"),
        ({"cube": "file:///results/cube.zarr"}, "would be lost with its pod"),
        ({"endpoint": "sim:"}, "is served on this machine only"),
        ({"extra": "cluster: {kind: kubernetes, image: x, claims: {results: results}}"}, "absolute path"),
        ({"extra": "cluster: {kind: kubernetes, image: x, secrets: [My_Keys]}"}, "a name of Kubernetes"),
        ({"extra": "cluster: {kind: kubernetes, image: x, memory: 4GB}"}, "a size such as 4Gi"),
    ],
)
def test_manifest__what_cannot_work_there_is_refused(tmp_path, changes, expected):
    refused(evalcube("cluster", "manifest", written(tmp_path, **changes), cwd=tmp_path), expected)


def test_manifest__a_cube_on_a_volume_is_kept(tmp_path):
    extra = "cluster: {kind: kubernetes, image: x, claims: {results: /results}}"

    for cube in ("results/cube.zarr", "/results/cube.zarr"):
        code, _, errors = evalcube(
            "cluster", "manifest", written(tmp_path, cube=cube, extra=extra), cwd=tmp_path
        )
        assert (code, errors) == (0, "")
    refused(
        evalcube("cluster", "manifest", written(tmp_path, cube="/data/cube.zarr", extra=extra), cwd=tmp_path),
        "would be lost with its pod",
    )


def test_run__of_a_sweep_for_kubernetes_says_how_it_is_started(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "x")
    refused(evalcube("run", written(tmp_path), cwd=tmp_path), "evalcube cluster manifest")
