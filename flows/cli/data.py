"""Commands about data sets of the Hugging Face Hub: data fetch, data list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli.options import Command, JsonOption
from evalcube.flows.cli.output import safe, show, show_json, show_table, size_text

if TYPE_CHECKING:
    from evalcube.stages.generate.dataset.hub.shelf import Record

data_commands = typer.Typer(
    help="Fetch data sets of the Hugging Face Hub, and list them.", no_args_is_help=True
)


@data_commands.command(cls=Command)
def fetch(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="SUITE|CONFIG|hf://…", help="What names the data sets: suites, configs, or addresses."
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Bring data sets here, so that runs need no network for them; a token is read from HF_TOKEN, and kept nowhere."""
    from evalcube.flows.keep.data import described, fetch_data

    found = fetch_data(targets, (lambda _: None) if as_json else _tell)
    if as_json:
        show_json({"data": [described(record) for record in found]})


def _tell(record: Record) -> None:
    terms = f"licence {record.licence or 'not stated'}" + (", gated" if record.gated else "")
    show(safe(f"{record.address}: {record.rows:,} rows, {size_text(record.size)}, {terms}"))
    if not record.pinned:
        show(safe(f"  now what {record.asked} means here; to pin it, write the line above into the config"))


@data_commands.command("list", cls=Command)
def list_data(as_json: JsonOption = False) -> None:
    """List the data sets that were fetched to this machine."""
    from evalcube.flows.keep.data import data_here
    from evalcube.stages.analyze.render.table import Column, TableSpec
    from evalcube.stages.generate.dataset.hub.shelf import folder

    rows = data_here()
    if as_json:
        show_json({"folder": str(folder()), "data": rows})
        return
    if not rows:
        show(f"nothing was fetched to {safe(str(folder()))}; evalcube data fetch hf://OWNER/NAME does that")
        return
    columns = (
        Column("data", lambda row: safe(row["asked"]), right=False, name=True),
        Column("revision", lambda row: row["commit"][:12], right=False),
        Column("pinned", lambda row: "yes" if row["pinned"] else "no", 3, right=False),
        Column("licence", lambda row: safe(row["licence"] or "not stated"), 1, right=False),
        Column("rows", lambda row: f"{row['rows']:,}"),
        Column("size", lambda row: size_text(row["size"]), 2),
        Column("fetched", lambda row: safe(row["fetched"]), 4, right=False),
    )
    show_table(TableSpec(columns, rows))
    show(safe(f"in {folder()}"))
