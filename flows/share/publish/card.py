"""The data card of a publication: what was measured and how, by whom, with what result, and how to open it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from evalcube.flows.read.merged.joined import Joined
from evalcube.flows.read.selection import OpenPart
from evalcube.flows.read.statistics import leaderboard_of
from evalcube.flows.share.publish.record import Publication
from evalcube.flows.state.engines import Engines, origins_of
from evalcube.stages.analyze.render.board_spec import leaderboard_spec
from evalcube.stages.analyze.render.table import markdown_text
from evalcube.stages.analyze.render.text import cell_markdown, code, sentence
from evalcube.storage.cube.ledger import Receipt, graders_of
from evalcube.storage.urls import is_directory


def data_card(
    facts: Publication,
    joined: Joined,
    receipts: Sequence[Receipt],
    opened: OpenPart,
    address: str,
    sources: Sequence[str],
    engines: Engines,
) -> str:
    """The card, in Markdown, whose head is that of data cards on model hubs.

    Parameters
    ----------
    facts
        What is published.
    joined
        What was copied.
    receipts
        Of the copy.
    opened
        The source, for the results.
    address
        Where others find it.
    sources
        Of a merged cube, a line each.
    engines
        What served the evaluations, as far as it is known.
    """
    rows, times = joined.plan.evaluations, [one.at for one in receipts]
    known = origins_of([(row.label, row.eval_id) for row in rows], engines, receipts)
    return (
        _environment()
        .get_template("card.md.j2")
        .render(
            name=facts.name or "evalcube sweep",
            facts=facts,
            plan=joined.plan,
            rows=rows,
            finished=sum(one.finished for one in receipts),
            planned=sum(joined.targets.counts),
            transport=sum(one.transport for one in receipts),
            templates=sorted({row.template.name for row in rows}),
            samplers=sorted({row.sampler.name: row.sampler.params for row in rows}.items()),
            graders=graders_of(receipts),
            origins=[one for one in known if str(one)],
            first=_date(min(times)) if times else "",
            last=_date(max(times)) if times else "",
            published=_date(facts.time),
            sources=sources,
            results=markdown_text(leaderboard_spec(leaderboard_of(opened))).rstrip("\n"),
            warnings=opened.warnings,
            code=_code(address),
            address=address,
            pulled=_pulled(facts, address),
            replies=sum(one.entries for one in facts.replies),
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
    made.filters |= {
        "ready": _Ready,
        "json": lambda value: _Ready(json.dumps(value, sort_keys=True)),
        "count": lambda value: f"{value:,}",
        "listed": lambda texts: _Ready(", ".join(map(sentence, texts))),
        "cell": lambda text: _Ready(cell_markdown(text)),
        "span": lambda text: _Ready(code(text, cell=False)),
        "params": lambda cell: ", ".join(f"{name}={value}" for name, value in cell.cell.plain_params.items()),
        "tiers": lambda task: (
            ", ".join(dict.fromkeys(tier for one in task.cells for tier in one.tiers)) or "none"
        ),
    }
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


def _date(time: int) -> str:
    return datetime.datetime.fromtimestamp(time, tz=datetime.UTC).date().isoformat()
