"""The data card of a publication: what was measured, by whom, with what result, and how to open it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from evalcube.flows.plan.plan import Plan
from evalcube.flows.read.selection import OpenPart
from evalcube.flows.read.statistics import leaderboard_of
from evalcube.flows.share.publish.record import Publication
from evalcube.stages.analyze.render.board_spec import leaderboard_spec
from evalcube.stages.analyze.render.table import markdown_text
from evalcube.stages.analyze.render.text import sentence
from evalcube.storage.urls import is_directory


def data_card(facts: Publication, plan: Plan, opened: OpenPart, address: str, sources: Sequence[str]) -> str:
    """The card, in Markdown, whose head is that of data cards on model hubs."""
    return (
        _environment()
        .get_template("card.md.j2")
        .render(
            name=facts.name or "evalcube sweep",
            facts=facts,
            plan=plan,
            sources=sources,
            results=markdown_text(leaderboard_spec(leaderboard_of(opened))).rstrip("\n"),
            warnings=opened.warnings,
            code=_code(address),
            address=address,
            pulled=_pulled(facts, address),
        )
    )


class _Ready(str):
    """A text that is Markdown already."""

    __slots__ = ()


def _environment() -> Environment:
    """Templates in which a value is escaped as a sentence, unless a filter has made it ready."""
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
    return made


def _pulled(facts: Publication, address: str) -> str:
    """The command that makes a copy."""
    if not facts.tag:
        return f"evalcube pull {address} copy.zarr"
    return f"evalcube pull {address.rpartition('/')[0]} copy.zarr --tag {facts.tag}"


def _code(address: str) -> str:
    """Lines that open the cube."""
    if is_directory(address):
        return f'import xarray as xr\ncube = xr.open_zarr("{address}")'
    store = f'zarr.storage.ObjectStore(obstore.store.from_url("{address}"), read_only=True)'
    return f"import xarray as xr, zarr.storage, obstore.store\ncube = xr.open_zarr({store})"
