"""Changes to the metadata of an array in a cube of which the cube's own metadata do not know."""

import json
from pathlib import Path


def longer(metadata):
    metadata["shape"][0] = 10**9


def unpickling(metadata):
    metadata["codecs"] = [{"name": "numcodecs.pickle", "configuration": {"id": "pickle"}}]


def of_another_type(metadata):
    metadata["data_type"] = "float64"


def killed_growth(metadata):
    metadata["shape"][3] += 8


def change_own(cube, change, array="status"):
    """Change an array's own metadata, which the cube's do not know of."""
    path = Path(cube) / array / "zarr.json"
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))
