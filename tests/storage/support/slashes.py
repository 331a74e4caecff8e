"""Cubes as earlier versions made them: a folder for each number of a chunk's key."""

from pathlib import Path


def with_slashes(url):
    """Have the chunks of a cube in a directory lie where earlier versions put them; its address."""
    for metadata in Path(url).rglob("zarr.json"):
        metadata.write_text(metadata.read_text().replace('"separator": "."', '"separator": "/"'))
    for chunk in [*Path(url).glob("*/c.*")]:
        target = chunk.parent.joinpath(*chunk.name.split("."))
        target.parent.mkdir(parents=True, exist_ok=True)
        chunk.rename(target)
    return url
