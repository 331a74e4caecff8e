"""Pulled copies: every byte is compared, they can be measured further, and hostile publications do nothing."""

import hashlib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.events import Announcer
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.share.publish import record
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.flows.share.publish.pull import pull_cube
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.cube import Cube
from evalcube.storage.errors import (
    CubeDamagedError,
    CubeExistsError,
    CubeNotFoundError,
    NotWritableError,
    StorageError,
)
from tests.flows.keep.own_metadata import change_own, longer, unpickling
from tests.flows.share.publish.publications import rewritten
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, simulator_stats, sweep_config
from tests.storage.support.slashes import with_slashes


class Quiet(SimpleHTTPRequestHandler):
    """A web server that says nothing."""

    def log_message(self, *_):
        pass


@pytest.mark.usefixtures("stranger")
def test_pull__makes_a_cube_of_what_an_earlier_version_published(published, out, tmp_path):
    space = space_of(with_slashes(f"{out}/v1"))
    keys = set(space.list()) - {record.KEY}
    objects = {key: one.model_dump() for key, one in record.hashed(space, keys, "", Announcer(())).items()}
    rewritten(out, lambda document: document.update(format=1, objects=objects))

    done = pull_cube(out, str(tmp_path / "mine.zarr"), tag="v1")

    assert (tmp_path / "mine.zarr" / "status" / "c" / "1" / "0" / "0" / "0" / "0").is_file()
    assert_same_cube(published / "cube.zarr", done.cube)


@pytest.mark.usefixtures("stranger")
def test_pulled_copy__is_measured_further_and_merged_back(published, out, tmp_path, simulator):
    copy = pull_cube(out, str(tmp_path / "mine.zarr"), tag="v1").cube
    config = sweep_config(tmp_path, simulator.base_url, models=("alpha", "beta"), trials=8, cells=2)
    config |= {"cube": copy, "cache": str(tmp_path / "own")}

    run(config, cluster=SHARED)

    assert simulator_stats(simulator)["requests"] == 2 * 3 * 4
    again = publish_cube(copy, str(tmp_path / "again"), with_replies=True)
    assert again.replies.missing == 0
    assert again.publication.licence == "CC0-1.0"
    assert again.publication.grown_from.startswith("sha256:")
    back = pull_cube(again.cube, str(tmp_path / "back.zarr")).cube
    merged = merge_cubes(str(tmp_path / "joint.zarr"), [str(published / "cube.zarr"), back])
    assert merged.conflicts == ()
    assert_same_cube(merged.cube, copy)


@pytest.mark.usefixtures("stranger")
def test_pulled_copy__of_a_simulated_sweep_is_upsampled_without_its_config(out, tmp_path):
    copy = pull_cube(out, str(tmp_path / "mine.zarr"), tag="v1").cube

    summary = upsample(copy, trials=5, cache=str(tmp_path / "own"), cluster=SHARED)

    assert (summary.trials, summary.reason) == (2 * 3 * 5, "complete")


@pytest.mark.parametrize(
    ("key", "how"),
    [
        ("zarr.json", "longer"),
        ("status/c.1.0.0.0.0", "changed"),
        ("latency/c.0.0.0.0.0", "gone"),
        ("_evalcube/ledger.jsonl", "longer"),
        ("_evalcube/replies/0001-0000.tar.zst", "changed"),
        ("_evalcube/replies/0001-0000.tar.zst", "gone"),
    ],
)
def test_pull__refuses_an_object_that_is_not_what_was_published(out, tmp_path, key, how):
    path = Path(out) / "v1" / key
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(data + b" " if how == "longer" else data[:-1] + bytes([data[-1] ^ 1]))

    with pytest.raises(StorageError, match=r"is not what was published|is gone"):
        pull_cube(out, str(tmp_path / "mine.zarr"), tag="v1")
    assert not (tmp_path / "mine.zarr").exists()


@pytest.mark.parametrize("change", [longer, unpickling])
def test_pull__refuses_arrays_whose_own_metadata_are_not_the_cubes(out, tmp_path, change):
    change_own(Path(out) / "v1", change)
    data = (Path(out) / "v1/status/zarr.json").read_bytes()
    one = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    rewritten(out, lambda document: document["objects"].update({"status/zarr.json": one}))

    with pytest.raises(CubeDamagedError, match="differs from what the cube"):
        pull_cube(out, str(tmp_path / "mine.zarr"), tag="v1")
    assert not (tmp_path / "mine.zarr").exists()


def test_pull__says_where_nothing_can_be_written(out, tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(NotWritableError, match="pull the publication"):
        pull_cube(out, str(tmp_path / "file" / "mine.zarr"), tag="v1")


def test_pull__refuses_a_cube_that_was_damaged_before_it_was_published(out, tmp_path):
    chunk = Path(out) / "v1" / "status" / "c.0.0.0.0.0"
    other = Path(out) / "v1" / "status" / "c.1.0.0.0.0"
    chunk.write_bytes(other.read_bytes())

    def change(document):
        key = "status/c.0.0.0.0.0"
        document["objects"][key] = record.hashed(space_of(f"{out}/v1"), [key], "", Announcer(()))[
            key
        ].model_dump()

    rewritten(out, change)
    with pytest.raises(CubeDamagedError, match="although its digests"):
        pull_cube(out, str(tmp_path / "mine.zarr"), tag="v1")
    assert not (tmp_path / "mine.zarr").exists()


def test_pull__finds_no_other_publication(published, out, tmp_path):
    for tag in ("", "v3"):
        with pytest.raises(CubeNotFoundError, match="nothing was published"):
            pull_cube(out, str(tmp_path / "mine.zarr"), tag=tag)
    with pytest.raises(CubeNotFoundError):
        pull_cube(str(tmp_path / "nothing"), str(tmp_path / "mine.zarr"))
    with pytest.raises(SweepError, match="was not published"):
        pull_cube(str(published / "cube.zarr"), str(tmp_path / "mine.zarr"))


def test_pull__goes_nowhere_where_something_is(out, tmp_path):
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "file").touch()

    with pytest.raises(CubeExistsError):
        pull_cube(out, str(tmp_path / "mine.zarr"), tag="v1")


@pytest.mark.usefixtures("stranger")
def test_pull__takes_what_a_web_server_gives_out(published, out, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=out)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            done = pull_cube(f"http://127.0.0.1:{server.server_port}", str(tmp_path / "mine.zarr"), tag="v1")
        finally:
            server.shutdown()

    assert_same_cube(done.cube, published / "cube.zarr")
    assert done.replies == done.trials


@pytest.mark.usefixtures("stranger")
def test_publication_of_a_merged_cube__has_the_same_sources(published, tmp_path):
    merged = merge_cubes(str(tmp_path / "joint.zarr"), [str(published / "cube.zarr")])
    done = publish_cube(merged.cube, str(tmp_path / "out"))
    pulled = pull_cube(done.cube, str(tmp_path / "mine.zarr"))

    again = merge_cubes(str(tmp_path / "again.zarr"), [merged.cube, pulled.cube])
    sources = [Cube.open(one.cube).attrs["merged"]["sources"] for one in (merged, again)]
    assert sources[0] == sources[1]
    assert sources[0][0]["name"] in (Path(done.cube) / "README.md").read_text()
