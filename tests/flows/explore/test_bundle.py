"""A bundle has the same answers as the server, in files that open from disk."""

import json
import re
import shutil
from pathlib import Path

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.explore.answers import ENDPOINTS, ask
from evalcube.flows.explore.bundle import PathScrubber, bundle
from evalcube.flows.explore.explored import Explored
from evalcube.flows.read.trials.read import trials
from evalcube.flows.state.records import NOTES, read_notes
from evalcube.storage.cube.cube import Cube
from tests.flows.explore.browsing import opened
from tests.flows.support import evalcube, refused

SECRET_HOST = "secret-host"


@pytest.fixture(scope="module")
def noted(explored_cube, tmp_path_factory):
    """The address of a cube whose notes name an endpoint and a cache, which is beside it."""
    folder = tmp_path_factory.mktemp("noted")
    cube = folder / "noted.zarr"
    shutil.copytree(explored_cube, cube)
    opened = Cube.open(str(cube), writable=True)
    notes = read_notes(opened.records)
    shutil.copytree(notes["cache"], folder / "answers")
    endpoint = f"http://{SECRET_HOST}.example:8000/v1"
    models = [{**one, "endpoint": endpoint} for one in notes["config"]["models"]]
    config = {**notes["config"], "models": models}
    cache = str(folder / "answers")
    opened.records.put(NOTES, json.dumps({**notes, "config": config, "cache": cache}).encode())
    return str(cube)


@pytest.fixture(scope="module")
def bundled(noted, tmp_path_factory):
    """A bundle of all wrong trials."""
    folder = tmp_path_factory.mktemp("bundle") / "site"
    bundle([noted], folder, trials="wrong")
    return folder


def documents(folder):
    for path in sorted((folder / "data").glob("0*.js")):
        text = re.fullmatch(r"explorer\.receive\((.*)\);\n", path.read_text("ascii"), re.DOTALL)
        yield json.loads(f"[{text[1]}]")


def test_bundle__has_the_answers_of_the_server(bundled, noted):
    explored = Explored([noted])

    found = dict(documents(bundled))
    scrub = PathScrubber(explored)

    for name, endpoint in ENDPOINTS.items():
        for query in endpoint.bundled(explored):
            answer = ask(explored, name, query)
            json.dumps(answer, allow_nan=False)
            if endpoint.kept:
                assert found[f"{name}?{query.key}"] == scrub(answer)
    manifest = json.loads((bundled / "data/manifest.js").read_text()[len("explorer.bundle = ") : -2])
    assert set(manifest["files"]) == set(found)


def test_bundle__has_the_trials_that_are_asked_for(bundled, noted):
    found = dict(documents(bundled))

    rows = [row for key, value in found.items() if key.startswith("rows?") for row in value]
    texts = [text for key, value in found.items() if key.startswith("texts?") for text in value]

    wrong = list(trials(noted, status=("incorrect", "invalid", "refused", "truncated")).rows())
    keys = ("task", "params", "trial", "status")
    assert sorted(tuple(row[key] for key in keys) for row in rows) == sorted(
        tuple(row[key] for key in keys) for row in wrong
    )
    assert sorted(text["response"] for text in texts) == sorted(row["response"] for row in wrong)


def test_bundle__names_no_place_where_its_cubes_caches_and_endpoints_are(bundled, noted):
    home = str(Path.home()) + "/"
    for path in bundled.rglob("*.*"):
        if path.is_file() and path.name != "plotly.min.js":
            text = path.read_text("utf-8")
            for place in (noted, str(Path(noted).parent), home, SECRET_HOST, "127.0.0.1"):
                assert place not in text, path
    overview = dict(documents(bundled))["overview?"]
    assert overview["cubes"] == ["noted.zarr"]


def test_path_scrubber__keeps_the_texts_of_models(explored_cube):
    explored = Explored([explored_cube])
    home = f"{Path.home()}/x"
    told = {
        "response": f"see https://a.example and {home}",
        "notes": [f"{explored_cube}: {home} http://b.example/v1 x"],
    }
    told |= {"running": "running as process 4 on node7"}

    found = PathScrubber(explored)(told)

    assert found == {
        "response": told["response"],
        "notes": [f"{Path(explored_cube).name}: ~/x an address x"],
        "running": "at work",
    }


def test_bundle__shares_out_what_it_may_hold(small_sweep, tmp_path):
    cube = str(small_sweep / "cube.zarr")

    done = bundle([cube], tmp_path / "few", trials="all", most=2)

    rows = [row for key, value in documents(tmp_path / "few") if key.startswith("rows?") for row in value]
    assert [row["task"] for row in rows] == ["arithmetic", "boolean"]
    assert done.trials == 2
    assert any("more trials" in note for note in done.notes)
    assert bundle([cube], tmp_path / "none", trials="none").trials == 0


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
