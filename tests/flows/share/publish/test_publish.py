"""Publications: true copies in other chunks, immutable, with all digests, and without what is nobody's business."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.keep.rescore import rescore_cube
from evalcube.flows.run.sweep import run
from evalcube.flows.share.publish import publish as publishing
from evalcube.flows.share.publish.check_secrets import SecretsError
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.flows.share.publish.pull import pull_cube
from evalcube.flows.share.publish.record import KEY
from evalcube.flows.state.verify import verify_cube
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.bucket.objects import Bucket
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.errors import CubeExistsError, NotWritableError, StorageError
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.flows.share.publish.publications import objects
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, sweep_config
from tests.storage.support.buckets import in_memory

SAID = ("notes", "selection")
"""What a leaderboard says of the part that was chosen."""


TINY = Recipe(models=("a",), lengths=(3,), depths=(), trials=(0, 2))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The address of a cube without a run."""
    return make_cube(tmp_path_factory.mktemp("tiny") / "cube.zarr", TINY).url


def test_publish__makes_a_true_copy(made, done):
    cube = made / "cube.zarr"

    assert_same_cube(cube, done.cube)
    assert verify_cube(done.cube).damages == []
    with Ledger(Cube.open(done.cube).records) as copy, Ledger(Cube.open(cube).records) as source:
        count = sum(one.planned for one in source.newest().values())
        assert sum(one.planned for one in copy.newest().values()) == count == done.publication.trials
        assert all(one.complete for one in copy.newest().values())
    assert "fact" in Cube.open(done.cube).trial_arrays


def test_publish__into_a_store_whose_lists_are_late_can_be_pulled(cube, tmp_path, monkeypatch):
    in_memory(monkeypatch)
    with monkeypatch.context() as late:
        late.setattr(Bucket, "list_objects", lambda *_: iter(()))
        done = publish_cube(cube, "s3://bucket/out")

    pull_cube("s3://bucket/out", str(tmp_path / "pulled"))

    assert done.publication.objects.keys() == set(space_of("s3://bucket/out").list()) - {KEY}
    assert verify_cube(str(tmp_path / "pulled")).damages == []


@pytest.mark.parametrize("loss", [Path.unlink, lambda path: path.write_bytes(b"other")])
def test_publish__reads_back_what_it_put_before_it_says_done(tiny, tmp_path, monkeypatch, loss):
    create = publishing.write_joined

    def lossy(*words):
        create(*words)
        loss(tmp_path / "out" / "counters" / "zarr.json")

    monkeypatch.setattr(publishing, "write_joined", lossy)

    with pytest.raises(StorageError, match=r"counters/zarr\.json is"):
        publish_cube(tiny, str(tmp_path / "out"))


def test_publication__is_never_written(made, done, tmp_path, simulator):
    before = objects(done.cube)

    config = sweep_config(tmp_path, simulator.base_url, models=("alpha", "beta"), trials=8, repeats=2)
    with pytest.raises(NotWritableError, match="published"):
        run({**config, "cube": done.cube}, cluster=SHARED)
    with pytest.raises(NotWritableError, match="published"):
        rescore_cube(done.cube, output=tmp_path / "new.zarr", cache=made / "cache")
    assert objects(done.cube) == before
    assert not (tmp_path / "new.zarr").exists()


def test_publish__refuses_a_tag_that_is_there(cube, done):
    before, out = objects(done.cube), Path(done.cube).parent

    with pytest.raises(CubeExistsError, match="v1"):
        publish_cube(cube, out, tag="v1")
    with pytest.raises(CubeExistsError):
        publish_cube(cube, out)
    assert objects(done.cube) == before


def test_publish__lets_who_publishes_give_an_address_and_no_key(cube, done, tmp_path):
    assert "ann@team.example" in (Path(done.cube) / "README.md").read_text()
    assert done.publication.by == "Team <A> <ann@team.example>"
    with pytest.raises(SecretsError, match="api-key"):
        publish_cube(cube, str(tmp_path / "other"), by="sk-proj-" + "a1B2" * 10)


def test_publish__refuses_a_damaged_cube_and_one_that_is_worked_on(cube, tmp_path):
    with Lease.acquire(Cube.open(cube, writable=True).records), pytest.raises(SweepError, match="works on"):
        publish_cube(cube, str(tmp_path / "out"))
    next((Path(cube) / "tokens").glob("c.*")).write_bytes(b"x")

    with pytest.raises(SweepError, match="damaged"):
        publish_cube(cube, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_publish__that_fails_leaves_nothing(tiny, tmp_path, monkeypatch):
    def fails(*_):
        raise RuntimeError("no card")

    monkeypatch.setattr(publishing, "data_card", fails)
    with pytest.raises(RuntimeError, match="no card"):
        publish_cube(tiny, str(tmp_path / "there" / "out"))

    assert not list((tmp_path / "there").iterdir())


def test_publish__refuses_a_source_that_was_written_meanwhile(cube, tmp_path, monkeypatch):
    real = publishing.data_card

    def meanwhile(*arguments):
        with Ledger(Cube.open(cube, writable=True).records) as ledger:
            ledger.append(replace(next(iter(ledger.newest().values())), generation=99))
        return real(*arguments)

    monkeypatch.setattr(publishing, "data_card", meanwhile)
    with pytest.raises(SweepError, match="meanwhile"):
        publish_cube(cube, str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("licence", "noted"),
    [
        (5, {"config": {"models": 5, "judges": 5}}),
        ("x" * 300, {"name": "\ud800", "config": {"models": [{"name": []}], "judges": [{"model": []}]}}),
    ],
)
def test_publish__whatever_anyone_has_noted(tiny, tmp_path, licence, noted):
    shutil.copytree(tiny, tmp_path / "cube.zarr")
    cube = Cube.open(tmp_path / "cube.zarr", writable=True)
    cube.records.put("pulled.json", json.dumps({"publication": {"licence": licence}}).encode())
    cube.records.put("sweep.json", json.dumps(noted).encode())

    done = publish_cube(cube.url, str(tmp_path / "out"))

    assert done.publication.trials == 2
    assert len(done.publication.licence) <= 200


def test_card__says_what_how_by_whom_and_with_what_result(done):
    card = (Path(done.cube) / "README.md").read_text()
    assert card.startswith("---\n")
    for text in (
        'license: "CC-BY-4.0"',
        "Team &lt;A&gt;",
        "seed 42",
        "| alpha |",
        "95%",
        'open_zarr("out/v1")',
    ):
        assert text in card


def test_card__has_no_mention_link_or_reference_out_of_names(cube, tmp_path, monkeypatch):
    hostile = "@everyone #1 https://evil.example"
    real = publishing.data_card

    def renamed(facts, plan, opened, address, _):
        names = {"model": hostile, "request_model": hostile, "revision": hostile}
        hostile_plan = replace(
            plan,
            evaluations=tuple(row.model_copy(update=names) for row in plan.evaluations),
            tasks=tuple(replace(task, label=hostile) for task in plan.tasks),
        )
        return real(
            facts.model_copy(update={"name": hostile, "by": hostile, "licence": hostile}),
            hostile_plan,
            replace(opened, warnings=(hostile,)),
            address,
            [hostile],
        )

    monkeypatch.setattr(publishing, "data_card", renamed)
    done = publish_cube(cube, str(tmp_path / "out"))

    _, _, card = (Path(done.cube) / "README.md").read_text().partition("\n---\n")
    assert card.count("@everyone") > 10
    alive = re.sub(r"(`+).+?\1", "", card, flags=re.DOTALL)
    for text in ("@everyone", "#1", "evil.example"):
        assert text not in alive


def test_publish__finds_what_looks_secret(tmp_path, monkeypatch):
    facets = {"home": "/home/ann/models", "note": "http://gpu7.internal:8000"}
    model = {"name": "alpha", "endpoint": "http://127.0.0.1:9/v1", "facets": facets}
    told = {"plain": [{"role": "user", "content": "plainwords-value {{ prompt }}"}]}
    recipe = replace(TINY, changes={"models": [model], "templates": told})
    made = make_cube(tmp_path / "cube.zarr", recipe)
    noted = {"config": {"models": [{"name": "alpha", "key_env": "TEAM_KEY"}]}}
    made.records.put("sweep.json", json.dumps(noted).encode())
    monkeypatch.setenv("TEAM_KEY", "plainwords-value")

    with pytest.raises(SecretsError) as caught:
        publish_cube(made.url, str(tmp_path / "out"))
    kinds = {one.kind: one for one in caught.value.findings}
    assert set(kinds) == {"home-folder", "private-host", "value-of-TEAM_KEY"}
    assert "plainwords-value" not in str(caught.value)
    assert "facets" in kinds["home-folder"].place
    assert not (tmp_path / "out").exists()

    done = publish_cube(
        made.url,
        str(tmp_path / "out"),
        allow=["home-folder", kinds["private-host"].id, kinds["value-of-TEAM_KEY"].id],
    )
    assert done.publication.trials == 2
