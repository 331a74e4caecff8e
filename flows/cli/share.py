"""Commands that bring cubes together, give them to others and take over what others made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal as size_text

from evalcube.flows.cli import options
from evalcube.flows.cli.output import ExitStatus, complain, print_rows, progress, safe, show, show_json

if TYPE_CHECKING:
    from evalcube.flows.read.merged.dataset import Conflict
    from evalcube.flows.share.difference import Difference
    from evalcube.flows.share.imports.logs import ImportSummary
    from evalcube.flows.share.merge import Merged


def merge(
    output: str,
    cubes: options.Cubes,
    prefer: str = "fail",
    rename: list[str] | None = None,
    as_json: options.Json = False,
) -> None:
    """Merge cubes, with all their models, tasks, points, trials and repeats; trials in several are kept once.

    Parameters
    ----------
    output : OUT
        Address of the merged cube; it must not exist yet.
    prefer
        If two cubes have different outcomes of a trial: fail writes no cube, first keeps that of the cube named first,
        newer the one written later.
    rename : CUBE:LABEL=NEW
        New name for a model or a task of one cube; may be given again.
    """
    from evalcube.flows.share.merge import ConflictError, merge_cubes

    try:
        with progress() as subscribers:
            done = merge_cubes(output, cubes, prefer=prefer, rename=rename or (), subscribers=subscribers)
    except ConflictError as error:
        if as_json:
            conflicts = list(map(asdict, error.conflicts))
            show_json({"cube": None, "cubes": cubes, "prefer": prefer, "conflicts": conflicts}, "merge")
        else:
            _print_conflicts(error.conflicts)
        raise
    if as_json:
        show_json(done.to_dict(), "merge")
    else:
        _print_merged(done)
    for note in done.notes:
        complain(note)


def _print_merged(done: Merged) -> None:
    _print_conflicts(done.conflicts)
    sizes = done.sizes
    missing = done.planned - done.trials
    left = f"; {missing:,} planned ones are missing: a run asks them" if missing else ""
    planned = f"{sizes['model']} evaluations, {sizes['task']} tasks"
    show(safe(f"{done.cube}: {planned}, {done.trials:,} trials from {len(done.cubes)} cubes{left}"))
    if done.conflicts:
        count = sum(conflict.trials for conflict in done.conflicts)
        show(f"{count:,} trials had different outcomes in two cubes; decided by --prefer {done.prefer}")


def _print_conflicts(conflicts: Sequence[Conflict]) -> None:
    if not conflicts:
        return
    rows = []
    for conflict in conflicts:
        params = ", ".join(f"{name}={value}" for name, value in conflict.example["params"].items())
        example = params + "\ntrial {trial}, repeat {repeat}: {kept}, {hidden}".format(**conflict.example)
        cubes = f"{conflict.kept}\n{conflict.hidden}"
        rows.append((conflict.model, conflict.task, conflict.trials, conflict.status_changes, cubes, example))
    names = ("model", "task", "trials", "other status", "cubes", "such as")
    print_rows(names, rows, "the same trials with different outcomes", cut=True)
    natural = sum(conflict.trials for conflict in conflicts if conflict.by_nature)
    if natural:
        why = "asked at a temperature above 0, where two answers to one trial may differ"
        show(f"{natural:,} of them were {why}")


def diff(first: options.Cube, second: options.Cube, as_json: options.Json = False) -> None:
    """Compare two cubes: their questions, planned numbers of trials, and outcomes; exit code 1 if they differ."""
    from evalcube.flows.share.difference import diff_cubes

    difference = diff_cubes(first, second)
    if as_json:
        show_json(difference.to_dict(), "diff")
    else:
        _print_difference(difference)
    if not difference.equal:
        raise typer.Exit(ExitStatus.INCOMPLETE)


def _print_difference(difference: Difference) -> None:
    for text in difference.identity:
        show(safe(text))
    if difference.plan["cells"]:
        show(f"{difference.plan['cells']:,} cells have different plans")
    for noun, counts in (("cells", difference.cells), ("trials", difference.trials)):
        show(
            f"{noun}: {counts.equal:,} equal, {counts.differing:,} differ, {counts.only_first:,} only in the first, "
            f"{counts.only_second:,} only in the second"
        )
    if difference.status_changes:
        rows = [
            (row.model, row.task, f"{row.first} → {row.second}", row.trials)
            for row in difference.status_changes
        ]
        print_rows(("model", "task", "status", "trials"), rows, "trials with different outcomes", cut=True)
    show("equal" if difference.equal else "different")


_TAG = typer.Option(
    "--tag", metavar="NAME", help="Name of this version, such as v1; its address is then URL/NAME."
)
_BYTES_OF_GB = 10**9


def publish(
    cube: options.Cube,
    url: str,
    tag: Annotated[str, _TAG] = "",
    with_replies: Annotated[bool, typer.Option("--with-replies")] = False,
    cache: str | None = None,
    licence: Annotated[str, typer.Option("--licence", "--license")] = "",
    by: str = "",
    allow: list[str] | None = None,
    as_json: options.Json = False,
) -> None:
    """Make an immutable, verified copy for others; refused if something in it looks secret or private.

    Parameters
    ----------
    url : URL
        Where the copy is made: s3://, gs:// or az:// BUCKET/PREFIX, or a directory.
    with_replies
        Pack the models' replies beside the cube.
    cache
        Address of the cache with the replies; default: that of your own run.
    licence
        Licence of the copy, such as CC-BY-4.0.
    by : NAME
        Who publishes it.
    allow : ID|KIND
        Publish despite a finding (its id), or despite all findings of a kind. Give it again for more.
    """
    from evalcube.flows.share.publish.check_secrets import SecretsError
    from evalcube.flows.share.publish.publish import publish_cube

    try:
        with progress() as subscribers:
            done = publish_cube(
                cube,
                url,
                tag=tag,
                with_replies=with_replies,
                cache=cache,
                licence=licence,
                by=by,
                allow=allow or (),
                subscribers=subscribers,
            )
    except SecretsError as error:
        if as_json:
            show_json({"cube": None, "findings": error.to_list()}, "publish")
        raise
    if as_json:
        show_json({**done.to_dict(), "findings": []}, "publish")
    else:
        publication = done.publication
        replies = "" if done.replies is None else f", {done.replies.entries:,} replies"
        copied = f"{len(publication.objects):,} objects, {size_text(publication.size)}"
        show(safe(f"{done.cube}: {publication.trials:,} trials{replies} in {copied}"))
        show(done.digest)
    for note in done.notes:
        complain(note)


def pull(
    url: str,
    directory: str,
    tag: Annotated[str, _TAG] = "",
    cache: str | None = None,
    most_bytes: Annotated[float, typer.Option("--most", min=0.001, max=1e6)] = 64.0,
    as_json: options.Json = False,
) -> None:
    """Copy a publication and compare each file with its digest; the copy can be added to, and merged back.

    Parameters
    ----------
    url : URL
        Address of a publication: s3://..., https://..., or a directory.
    directory : DIR
        Address of the copy; it must not exist yet.
    cache
        Cache to put the replies into; default: a new one beside the copy.
    most_bytes : GB
        Refuse a publication that is larger.
    """
    from evalcube.flows.share.publish.pull import pull_cube

    with progress() as subscribers:
        done = pull_cube(
            url,
            directory,
            tag=tag,
            cache=cache,
            most_bytes=int(most_bytes * _BYTES_OF_GB),
            subscribers=subscribers,
        )
    if as_json:
        show_json(done.to_dict(), "pull")
        return
    replies = f"; {done.replies:,} replies in {done.cache}" if done.replies else ""
    show(safe(f"{done.cube}: {done.trials:,} trials{replies}"))
    show(done.digest)
    if done.publication.licence:
        show(safe(f"licence: {done.publication.licence}"))


def import_command(
    logs: list[str],
    into: Annotated[str, typer.Option()],
    cache: str | None = None,
    data: str | None = None,
    map: str = "",
    model: str | None = None,
    task: str | None = None,
    score: str | None = None,
    correct_from: float | None = None,
    as_json: options.Json = False,
) -> None:
    """Read logs of Inspect, lm-eval or your own into a cube, with their replies; no request is sent.

    Parameters
    ----------
    logs : LOG
        Logs: .eval and .json of Inspect, samples_*.jsonl of lm-eval, JSONL of your own; or directories of logs.
    into : CUBE
        Address of the new cube; it must not exist yet.
    cache
        Where the replies go; default: beside the cube.
    data : DIR
        Where the questions go; default: beside the cube.
    map : NAME=FIELD,...
        Your fields for prompt, response, correct, id, model, repeat, reference, cluster (equal in related questions),
        ...; in logs of Inspect and lm-eval, only cluster=FIELD.
    model
        Name of the model, instead of the logs'.
    task
        Name of the task, instead of the logs'.
    score
        Which of several scores counts; for lm-eval, METRIC or METRIC,FILTER; default: the log's first.
    correct_from : X
        Count a score of at least X (0 to 1) as right.
    """
    from evalcube.flows.share.imports.logs import import_logs

    with progress() as subscribers:
        summary = import_logs(
            logs,
            into,
            cache=cache,
            data=data,
            model=model,
            task=task,
            score=score,
            map=map,
            correct_from=correct_from,
            subscribers=subscribers,
        )
    if as_json:
        show_json(summary.to_dict())
    else:
        _print_imported(summary)
    if summary.left_out:
        raise typer.Exit(ExitStatus.INCOMPLETE)


def _print_imported(summary: ImportSummary) -> None:
    for text in summary.left_out:
        complain(f"left out: {text}")
    for note in summary.notes:
        show(safe(f"note: {note}"))
    replies = f"{summary.replies} answers of {len(summary.models)} evaluations to {len(summary.tasks)} tasks"
    failed = f"; {summary.failed} samples without an answer or a score" if summary.failed else ""
    again = f"; {summary.repeated} said again" if summary.repeated else ""
    show(safe(f"{summary.logs} logs: {replies}{failed}{again}"))
    show(safe(f"written to {summary.cube}; replies in {summary.cache}"))


import_command.__name__ = "import"
