"""A bundle has the same answers as the server, in files that open from disk."""

import json
import re
import shutil
from pathlib import Path

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.explore.answers import ENDPOINTS, ask
from evalcube.flows.explore.bundle import Placeless, bundle
from evalcube.flows.explore.explored import Explored
from evalcube.flows.read.trials.read import trials
from evalcube.flows.state.records import NOTES, read_notes
from evalcube.storage.cube.cube import Cube
from tests.flows.explore.browsing import opened
from tests.flows.support import evalcube, refused


@pytest.fixture(scope="module")
def bundled(explored_cube, tmp_path_factory):
    """A bundle of all wrong trials."""
    folder = tmp_path_factory.mktemp("bundle") / "site"
    bundle([explored_cube], folder, trials="wrong")
    return folder


def documents(folder):
    for path in sorted((folder / "data").glob("0*.js")):
        text = re.fullmatch(r"explorer\.receive\((.*)\);\n", path.read_text("ascii"), re.DOTALL)
        yield json.loads(f"[{text[1]}]")


def test_bundle__has_the_answers_of_the_server(bundled, explored_cube):
    explored = Explored([explored_cube])

    found = dict(documents(bundled))
    placeless = Placeless(explored)

    for name, endpoint in ENDPOINTS.items():
        for query in endpoint.bundled(explored):
            if endpoint.kept:
                assert found[f"{name}?{query.key}"] == placeless(ask(explored, name, query))
    manifest = json.loads((bundled / "data/manifest.js").read_text()[len("explorer.bundle = ") : -2])
    assert set(manifest["files"]) == set(found)


def test_bundle__has_the_trials_that_are_asked_for(bundled, explored_cube):
    found = dict(documents(bundled))

    rows = [row for key, value in found.items() if key.startswith("rows?") for row in value]
    texts = [text for key, value in found.items() if key.startswith("texts?") for text in value]

    wrong = list(trials(explored_cube, status=("incorrect", "invalid", "refused", "truncated")).rows())
    keys = ("task", "params", "trial", "status")
    assert sorted(tuple(row[key] for key in keys) for row in rows) == sorted(
        tuple(row[key] for key in keys) for row in wrong
    )
    assert sorted(text["response"] for text in texts) == sorted(row["response"] for row in wrong)


def test_bundle__names_no_place_where_its_cubes_caches_and_endpoints_are(explored_cube, bundled, tmp_path):
    cube = tmp_path / "noted.zarr"
    shutil.copytree(explored_cube, cube)
    opened = Cube.open(str(cube), writable=True)
    cache = f"{tmp_path}/answers"
    endpoint = "http://secret-host.example:8000/v1"
    notes = read_notes(opened.records)
    models = [{**one, "endpoint": endpoint} for one in notes["config"]["models"]]
    config = {**notes["config"], "models": models}
    opened.records.put(NOTES, json.dumps({**notes, "config": config, "cache": cache}).encode())
    bundle([str(cube)], tmp_path / "site", trials="all")

    for folder in (bundled, tmp_path / "site"):
        for path in folder.rglob("*.*"):
            if path.is_file() and path.name != "plotly.min.js":
                text = path.read_text("utf-8")
                for place in (
                    str(explored_cube),
                    str(tmp_path),
                    cache,
                    str(Path.home()) + "/",
                    "secret-host",
                ):
                    assert place not in text, path
                assert "127.0.0.1" not in text
    overview = dict(documents(tmp_path / "site"))["overview?"]
    assert overview["cubes"] == ["noted.zarr"]


def test_placeless__keeps_the_texts_of_models(explored_cube):
    explored = Explored([explored_cube])
    home = f"{Path.home()}/x"
    told = {
        "response": f"see https://a.example and {home}",
        "notes": [f"{explored_cube}: {home} http://b.example/v1 x"],
    }
    told |= {"running": "running as process 4 on node7"}

    found = Placeless(explored)(told)

    assert found == {
        "response": told["response"],
        "notes": [f"{Path(explored_cube).name}: ~/x an address x"],
        "running": "at work",
    }


def test_bundle__shares_out_what_it_may_hold(explored_cube, tmp_path):
    done = bundle([explored_cube], tmp_path / "few", trials="all", most=8)

    assert done.trials == 8  # four models and two tasks
    assert any("more trials" in note for note in done.notes)
    assert bundle([explored_cube], tmp_path / "none", trials="none").trials == 0


def test_bundle__writes_nothing_where_something_is(explored_cube, tmp_path):
    with pytest.raises(SweepError, match="there already"):
        bundle([explored_cube], tmp_path)
    refused(
        evalcube("bundle", explored_cube, "-o", "x", "--trials", "some", cwd=tmp_path), "--trials", "some"
    )


@pytest.mark.browser
def test_bundle__opens_from_disk(bundled, chromium):
    with opened(chromium, (bundled / "index.html").as_uri()) as at:
        at.go("ranking?task=arithmetic")
        rows = at.page.locator("tbody tr").count()
        at.go("cost")
        drawn = at.page.locator(".plot[data-drawn]").count()
        at.go("trials?status=incorrect&sort=-tokens")
        at.page.locator("tbody a.name").first.click()
        at.settled()
        before = at.page.url
        at.page.keyboard.press("j")
        at.page.wait_for_function("before => location.href !== before", arg=before)
        at.settled()

        assert (rows, drawn) == (4, 1)
        assert at.page.locator(".response pre").count() == 1
        assert at.faults == []
