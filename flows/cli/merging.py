"""Commands that bring cubes together and say where they come from: merge, diff, log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from evalcube.flows.cli import options
from evalcube.flows.cli.output import ExitStatus, complain, print_rows, safe, show, show_json

if TYPE_CHECKING:
    from evalcube.flows.read.merged.dataset import Conflict
    from evalcube.flows.read.merged.provenance import History
    from evalcube.flows.share.difference import Difference
    from evalcube.flows.share.merge import Merged

_LAST_DAY = 253_370_764_800  # the year 9999


def merge(
    output: str,
    cubes: options.Cubes,
    prefer: str = "fail",
    rename: list[str] | None = None,
    as_json: options.Json = False,
) -> None:
    """Make one cube of several: all models, tasks, points, trials and repeats of any of them, joined by identity.

    Parameters
    ----------
    output : OUT
        Address of the merged cube; nothing may be there.
    prefer
        Whose outcome stays where two cubes have finished the same trial differently: fail refuses to choose, first
        takes that of the cube named first, newer that which was written later.
    rename : CUBE:LABEL=NEW
        Another name for a model or a task of one cube. Give it again for more.
    """
    from evalcube.flows.share.merge import ConflictError, merge_cubes

    try:
        done = merge_cubes(output, cubes, prefer=prefer, rename=rename or ())
    except ConflictError as error:
        if as_json:
            show_json(_document({"cube": None, "cubes": cubes, "prefer": prefer}, error.conflicts), "merge")
        else:
            _print_conflicts(error.conflicts)
        raise
    if as_json:
        show_json(_document(done.to_dict(), done.conflicts), "merge")
    else:
        _print_merged(done)
    for note in done.notes:
        complain(note)


def _document(fields: dict[str, Any], conflicts: Sequence[Conflict]) -> dict[str, Any]:
    return {**fields, "conflicts": [conflict.to_dict() for conflict in conflicts]}


def _print_merged(done: Merged) -> None:
    _print_conflicts(done.conflicts)
    sizes = done.sizes
    missing = done.planned - done.trials
    left = f"; {missing:,} planned ones are missing, which a run asks" if missing else ""
    show(
        safe(
            f"{done.cube}: {sizes['model']} evaluations, {sizes['task']} tasks, {done.trials:,} trials from "
            f"{len(done.cubes)} cubes{left}"
        )
    )
    if done.conflicts:
        count = sum(conflict.trials for conflict in done.conflicts)
        show(f"{count:,} trials had other outcomes in two cubes; decided by --prefer {done.prefer}")


def _print_conflicts(conflicts: Sequence[Conflict]) -> None:
    if not conflicts:
        return
    rows = []
    for one in conflicts:
        params = ", ".join(f"{name}={value}" for name, value in one.example["params"].items())
        said = "{params}\ntrial {trial}, repeat {repeat}: {kept}, {hidden}"
        example = said.format(**{**one.example, "params": params})
        rows.append(
            (one.model, one.task, one.trials, one.status_changes, f"{one.kept}\n{one.hidden}", example)
        )
    names = ("model", "task", "trials", "other status", "cubes", "such as")
    print_rows(names, rows, "the same trials with other outcomes")
    natural = sum(one.trials for one in conflicts if one.by_nature)
    if natural:
        show(
            f"{natural:,} of them were asked at a temperature above 0, where two answers to one trial differ by nature"
        )


def diff(first: options.Cube, second: options.Cube, as_json: options.Json = False) -> None:
    """Compare two cubes: what they ask, how far they are planned, how trials ended; exit code 1 if they differ."""
    from evalcube.flows.share.difference import diff_cubes

    found = diff_cubes(first, second)
    if as_json:
        show_json(found.to_dict(), "diff")
    else:
        _print_difference(found)
    if not found.equal:
        raise typer.Exit(ExitStatus.INCOMPLETE)


def _print_difference(found: Difference) -> None:
    for text in found.identity:
        show(safe(text))
    if found.plan["cells"]:
        show(f"{found.plan['cells']:,} cells are planned otherwise")
    for what, counts in (("cells", found.cells), ("trials", found.trials)):
        show(
            f"{what}: {counts.equal:,} equal, {counts.differing:,} differ, {counts.only_first:,} only in the first, "
            f"{counts.only_second:,} only in the second"
        )
    if found.status_changes:
        rows = [
            (one.model, one.task, f"{one.first} → {one.second}", one.trials) for one in found.status_changes
        ]
        print_rows(("model", "task", "status", "trials"), rows, "trials that ended otherwise")
    show("equal" if found.equal else "different")


def log(cube: options.Cube, as_json: options.Json = False) -> None:
    """Show a cube's past: the cubes that it was merged from, and when which regions were written, by which graders."""
    from evalcube.flows.read.merged.provenance import cube_history

    found = cube_history(cube)
    if as_json:
        show_json(found.to_dict(), "log")
        return
    _print_history(found)
    if found.damaged_lines:
        complain(f"{found.damaged_lines} lines of the ledger are damaged")


def _print_history(found: History) -> None:
    if found.sources:
        rows = [
            (one.name, ", ".join(one.models), one.trials, _day(one.first), _day(one.last), one.ledger[:12])
            for one in found.sources
        ]
        print_rows(("cube", "models", "trials", "from", "to", "ledger"), rows, "merged from")
    written = [
        (
            *(_day(one.first), _day(one.last)),
            f"{one.regions:,}" + (f" ({one.replaced:,} replaced since)" if one.replaced else ""),
            *(one.trials, one.transport, ", ".join(one.graders), ", ".join(one.models)),
        )
        for one in found.writings
    ]
    columns = ("from", "to", "regions", "trials", "transport", "graders", "models")
    print_rows(columns, written, "regions written")


def _day(seconds: int | None) -> str:
    """A time of day of this machine; a dash where there is none, or none that a calendar has."""
    from datetime import UTC, datetime

    if seconds is None or not 0 <= seconds < _LAST_DAY:
        return "-"
    return datetime.fromtimestamp(seconds, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M")
