"""The folder that examples of the public functions are in: a sweep that was run, and another's cube."""

import shutil

import pytest

import evalcube as ec

SWEEP = """
name: sweep
trials: 8
cube: results/sweep.zarr
cache: results/cache
models:
  - {name: large, endpoint: "sim:", simulate: {ability: 6.0}}
  - {name: small, endpoint: "sim:", simulate: {ability: 2.0}}
tasks:
  sort: {manifold: [{grid: {length: [4, 8]}, tiers: [easy]}]}
  arithmetic:
    manifold: [{grid: {length: [3, 6]}, tiers: [easy]}]
    assertions: [{type: max_length, value: 40}]
"""
ANSWER = '{"task": "sums", "id": 1, "prompt": "1 + 1", "response": "2", "correct": true, "model": "mine"}\n'


@pytest.fixture(scope="session")
def examples_folder(tmp_path_factory):
    """The folder, which each example gets a copy of."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        folder.joinpath("sweep.yaml").write_text(SWEEP)
        folder.joinpath("answers.jsonl").write_text(ANSWER)
        ec.run("sweep.yaml").raise_for_status()
        folder.joinpath("theirs.yaml").write_text(SWEEP.replace("large", "theirs"))
        ec.run("theirs.yaml", cube="results/theirs.zarr").raise_for_status()
    return folder


def _is_example(item):
    test = getattr(item, "dtest", None)
    return test is not None and any("import evalcube as ec" in one.source for one in test.examples)


def pytest_itemcollected(item):
    """Simulated models, which the folder's sweep asks, are processes."""
    if _is_example(item):
        item.add_marker("cluster")


@pytest.fixture(autouse=True)
def _there(request):
    """Examples of public functions run in a copy of the folder."""
    if _is_example(request.node):
        here = request.getfixturevalue("tmp_path") / "here"
        shutil.copytree(request.getfixturevalue("examples_folder"), here)
        request.getfixturevalue("monkeypatch").chdir(here)
