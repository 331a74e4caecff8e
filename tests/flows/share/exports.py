"""Exports, and the records in them."""

import json

from evalcube.flows.share.export import export


def written(folder, target, **options):
    """An export, with its files' contents by path."""
    done = export(folder / "cube.zarr", output=target, **options)
    assert sorted(done.files) == sorted(
        path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()
    )
    return done, {name: (target / name).read_bytes() for name in done.files}


def lines(data):
    return [json.loads(line) for line in data.splitlines()]


def records(files):
    """Aggregate and samples of each record."""
    for name, data in files.items():
        if name.endswith(".jsonl"):
            yield name, json.loads(files[name.replace("_samples.jsonl", ".json")]), lines(data)
