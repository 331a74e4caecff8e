"""What users' configs, scripts and programs may rely on: keys, commands, options, exit codes, names, JSON.

``python -m tests.docs.surface`` prints it. ``tests/data/surface.json`` holds that of the last release, which may grow
and not shrink; it is written anew with each release.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import xarray

import evalcube
from evalcube.flows.cli.app import app
from evalcube.flows.cli.output import EXIT_CODES
from evalcube.flows.config.field_types import field_types, sections_below
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.section import Section
from evalcube.stages.generate import TASKS
from tests.docs.pages import ROOT
from tests.flows.support import evalcube as command

CUBE = "results/capitals.zarr"
DOCUMENTS = {
    "plan": ("plan", "examples/capitals.yaml"),
    "run": ("run", "examples/capitals.yaml", "--quiet"),
    "status": ("status", CUBE),
    "leaderboard": ("leaderboard", CUBE),
    "table": ("table", CUBE, "--by", "model"),
    "rank": ("rank", CUBE),
    "compare": ("compare", CUBE, "before", "after"),
    "metrics": ("metrics", CUBE, "--k", "1"),
    "verdict": ("verdict", CUBE, "--control", "before", "--treatment", "after"),
    "show": ("show", CUBE, "--task", "capitals", "--trial", "2"),
    "trials": ("trials", CUBE, "--limit", "1"),
    "analyze cost": ("analyze", "cost", CUBE),
    "cube verify": ("cube", "verify", CUBE),
    "tasks": ("tasks", "sort"),
}
"""Commands that print JSON, in an order in which they work."""


def declared() -> dict[str, Any]:
    """What can be known without running anything."""
    return {
        "config": sorted(set(_keys(Sweep, "", ()))),
        "params": {name: sorted(task.Params.model_fields) for name, task in TASKS.items()},
        "commands": dict(_commands("evalcube", typer.main.get_command(app))),
        "exit_codes": {str(int(code)): code.name for code in EXIT_CODES},
        "names": list(evalcube.__all__),
    }


def _keys(section: type[Section], path: str, above: tuple[type[Section], ...]) -> Iterator[str]:
    for key, kind in field_types(section).items():
        yield f"{path}{key}"
        for below, step in sections_below(kind, f"{path}{key}"):
            if below not in above:
                yield from _keys(below, f"{step}.", (*above, section))


def _commands(path: str, found: Any) -> Iterator[tuple[str, list[str]]]:
    for name, below in getattr(found, "commands", {}).items():
        yield from _commands(f"{path} {name}", below)
    if not hasattr(found, "commands"):
        yield (
            path,
            sorted(
                name
                for parameter in found.params
                if parameter.param_type_name == "option"
                for name in (*parameter.opts, *parameter.secondary_opts)
            ),
        )


def printed(folder: Path) -> dict[str, Any]:
    """Keys of the JSON that commands print, and what is in the cube that they are about."""
    (folder / "examples").symlink_to(ROOT / "examples")
    documents = {}
    for name, words in DOCUMENTS.items():
        code, output, errors = command(*words, "--json", cwd=folder)
        assert code == 0, f"{name}: {errors}"
        documents[name] = _shape(json.loads(output))
    cube = xarray.open_zarr(folder / CUBE)
    return {
        "json": documents,
        "cube": {str(name): [str(dim) for dim in variable.dims] for name, variable in cube.variables.items()},
        "counters": cube["counter"].values.tolist(),
    }


def _shape(document: Any) -> list[str]:
    """Keys of an object, or of the first object of a list, with the version of its schema if it has one."""
    first = document[0] if isinstance(document, list) else document
    version = [f"schema_version={first['schema_version']}"] if "schema_version" in first else []
    return sorted(set(first) - {"schema_version"}) + version


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(json.dumps({**declared(), **printed(Path(made))}, indent=1, sort_keys=True))  # noqa: T201
