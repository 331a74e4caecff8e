"""The data card of a publication: what was measured, by whom, with what result, and how to open it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from evalcube.flows.plan.evaluations import Evaluation
from evalcube.flows.plan.plan import Plan
from evalcube.flows.read.design import OLDER, of_data_set
from evalcube.flows.read.selection import OpenPart
from evalcube.flows.read.statistics import leaderboard_of
from evalcube.flows.share.publish.record import Publication
from evalcube.stages.analyze.labelled.axes import base_design, names
from evalcube.stages.analyze.labelled.counters import members
from evalcube.stages.analyze.labelled.points import common_points, planned_points
from evalcube.stages.analyze.render.board_spec import leaderboard_spec
from evalcube.stages.analyze.render.table import markdown_text
from evalcube.stages.analyze.render.text import sentence
from evalcube.storage.urls import is_directory

_QUESTIONS = {False: "parametric reasoning tasks", True: "questions of data sets"}


def data_card(facts: Publication, plan: Plan, opened: OpenPart, address: str, sources: Sequence[str]) -> str:
    """The card, in Markdown, whose head is that of data cards on model hubs."""
    of_rows = {of_data_set(task.task.name) for task in plan.tasks}
    # A value is escaped as a sentence, unless a filter has made it ready.
    made = Environment(
        loader=PackageLoader("evalcube.flows.share.publish", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Markdown, escaped by `finalize`
        finalize=lambda value: value if isinstance(value, _Ready) else sentence(str(value)),
    )
    made.filters |= {"ready": _Ready, "json": lambda value: _Ready(json.dumps(value))}
    return made.get_template("card.md.j2").render(
        name=facts.name or "evalcube sweep",
        facts=facts,
        plan=plan,
        evaluations=list(zip(plan.labels, map(_asked_as, plan.evaluations), strict=True)),
        questions=" and ".join(_QUESTIONS[kind] for kind in sorted(of_rows)),
        sources=sources,
        results=markdown_text(leaderboard_spec(leaderboard_of(opened))).rstrip("\n"),
        warnings=opened.warnings,
        code="\n".join([_opening(address), *_accuracy(opened)]),
        address=address,
        pulled=_pull_command(facts, address),
    )


class _Ready(str):
    """A text that is Markdown already."""

    __slots__ = ()


def _pull_command(facts: Publication, address: str) -> str:
    """The command that makes a copy."""
    if not facts.tag:
        return f"evalcube pull {address} copy.zarr"
    return f"evalcube pull {address.rpartition('/')[0]} copy.zarr --tag {facts.tag}"


def _asked_as(row: Evaluation) -> str:
    """The model's name at its endpoint, without a simulated one's settings, if it is another one than here."""
    name = row.request_model.partition("?")[0] if row.request_model.startswith("sim/") else row.request_model
    asked = "" if name in (row.model, f"sim/{row.model}") else f"asked as {name}"
    return ", ".join(filter(None, (asked, row.revision)))


def _opening(address: str) -> str:
    """Lines that open the cube."""
    if is_directory(address):
        return f'import xarray as xr\ncube = xr.open_zarr("{address}")'
    store = f'zarr.storage.ObjectStore(obstore.store.from_url("{address}"), read_only=True)'
    return f"import xarray as xr, zarr.storage, obstore.store\ncube = xr.open_zarr({store})"


def _accuracy(opened: OpenPart) -> Iterator[str]:
    """Lines that give the accuracy of the table: a mean over tasks, of the points that count in it."""
    arrays = opened.arrays
    planned = planned_points(arrays, None) & members(arrays).any(axis=0)
    yield 'right = (cube.status == 1).where(cube.status < 5).mean("repeat").mean("trial")  # at each point'
    design = (
        "cube.base_trials" if (base_design(arrays)[planned] > 0).all() else "xr.ones_like(cube.base_trials)"
    )
    yield f'weight = {design}.where(cube.in_tier.any("tier"), 0)'
    if opened.whole is not None and OLDER in arrays.coords:
        every, kept = (set(part["cell_id"].values.ravel().tolist()) for part in (opened.whole, arrays))
        yield f"for cell in {sorted(every - kept - {''})}:  # of files that were edited since"
        yield "    weight = weight.where(cube.cell_id != cell, 0)"
    asked = planned[planned.any(axis=(1, 2))]
    if (asked != asked[:1]).any():
        common = common_points(planned, names(arrays, "task"))
        least = asked.sum(axis=0)[common.points].min(initial=len(asked))
        yield "asked = cube.planned_trials.where(weight > 0, 0) > 0"
        yield f'common = asked.sum("model") >= {least}  # count for whoever was asked all of them'
        yield 'all_of_them = (asked | ~common).all(["task", "params"]) & common.any()'
        yield "weight = weight.where(common | ~all_of_them, 0)"
    yield 'accuracy = right.weighted(weight).mean("params").mean("task")'
    yield "print(dict(zip(cube.model.values, accuracy.values.round(3).tolist())))"
