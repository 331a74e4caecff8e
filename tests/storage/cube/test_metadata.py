"""A cube's metadata may be anybody's: nothing they name is run, and no size they give is waited for."""

import json
import pickle
from pathlib import Path

import pytest

from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.errors import CubeDamagedError, StorageError


@pytest.fixture
def cube(tmp_path, workers):
    return workers.make_cube(str(tmp_path / "cube.zarr"))


def change(cube, alter):
    """Let `alter` change the metadata of the group and, in the same way, those of each array by itself."""
    path = Path(cube.url) / "zarr.json"
    document = json.loads(path.read_text())
    alter(document)
    path.write_text(json.dumps(document))


class Ran:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def second_format(chunk):
    """Metadata of an array of zarr's format 2, whose filter unpickles."""
    return {
        "zarr_format": 2,
        "shape": [],
        "chunks": [],
        "dtype": "|O",
        "fill_value": 0,
        "order": "C",
        "filters": [{"id": "pickle"}],
        "compressor": None,
        "attributes": {"chunk": chunk},
    }


def unpickling(metadata):
    """Metadata of an array of format 3 with the same filter."""
    return {**metadata, "codecs": [{"name": "numcodecs.pickle", "configuration": {"id": "pickle"}}]}


@pytest.mark.parametrize("form", ["second format", "codec"])
def test_open__refuses_arrays_that_would_be_unpickled(cube, tmp_path, form):
    folder, victim = Path(cube.url) / "evil", tmp_path / "ran"
    folder.mkdir()
    (folder / "0").write_bytes(pickle.dumps(Ran(victim)))

    def lay_out(document):
        arrays = document["consolidated_metadata"]["metadata"]
        arrays["evil"] = second_format("0") if form == "second format" else unpickling(arrays["status"])
        document["attributes"]["coordinates"] = "evil"

    change(cube, lay_out)

    with pytest.raises(CubeDamagedError, match=r"stored|damaged"):
        Cube.open(cube.url).dataset().load()
    assert not victim.exists()


def test_open__refuses_arrays_of_the_second_format_beside_the_others(cube, tmp_path):
    folder, victim = Path(cube.url) / "evil", tmp_path / "ran"
    folder.mkdir()
    (folder / "0").write_bytes(pickle.dumps(Ran(victim)))
    (folder / ".zarray").write_text(json.dumps(second_format("0")))
    change(cube, lambda document: document.pop("consolidated_metadata"))

    assert "evil" not in Cube.open(cube.url).dataset()
    assert not victim.exists()


def test_open__refuses_metadata_nested_without_end(cube):
    (Path(cube.url) / "zarr.json").write_text("[" * 500_000)

    with pytest.raises(CubeDamagedError, match=r"zarr\.json is damaged"):
        Cube.open(cube.url)


def test_open__refuses_sizes_that_no_cube_has(cube):
    def enlarge(document):
        for array in document["consolidated_metadata"]["metadata"].values():
            for at, name in enumerate(array.get("dimension_names", ())):
                if name == "trial":
                    array["shape"][at] = 10**12

    change(cube, enlarge)

    with pytest.raises(CubeDamagedError, match="along trial"):
        Cube.open(cube.url)


def test_ledger__with_a_line_without_end_is_refused(cube):
    path = Path(cube.url) / "_evalcube" / "ledger.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(1 << 32)

    with pytest.raises(StorageError, match="longer"):
        list(Ledger(cube.records).receipts())


def test_summary__refuses_attributes_that_are_no_mapping(cube):
    change(
        cube, lambda document: document["consolidated_metadata"]["metadata"]["counter"].update(attributes=[1])
    )

    with pytest.raises(CubeDamagedError, match="array 'counter'"):
        Cube.open(cube.url).summary()
