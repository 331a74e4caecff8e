"""Commands that keep states of a cube in an Icechunk repository: commit, checkout, tag."""

from __future__ import annotations

from typing import Annotated

import typer

from evalcube.flows.cli.options import CubeArgument, JsonOption
from evalcube.flows.cli.output import complain, safe, show, show_json
from evalcube.flows.cli.progress import size_text

_REF = typer.Argument(
    metavar="REPOSITORY",
    help="Such as icechunk:DIRECTORY, icechunk:s3://bucket/prefix#TAG; after the # a tag, branch or commit.",
)


def commit(
    cube: CubeArgument,
    repository: Annotated[
        str,
        typer.Argument(
            metavar="REPOSITORY",
            help="Such as icechunk:DIRECTORY or icechunk:s3://bucket/prefix#BRANCH; default branch: main.",
        ),
    ],
    message: Annotated[str, typer.Option("--message", "-m", help="One line for the log.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Even if the branch has trials that the cube lacks.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a cube the newest state of a branch of an Icechunk repository; only what has changed is written."""
    from evalcube.flows.publish.versions import commit_cube

    done = commit_cube(cube, repository, message=message, replace=replace)
    if as_json:
        show_json({"schema": "evalcube.commit", "schema_version": 1, **done.to_dict()})
        return
    if not done.changed:
        complain(f"nothing has changed since {done.commit}")
        return
    show(
        safe(
            f"{done.repository}: {done.trials:,} trials; {done.changed:,} of {done.objects:,} objects are new, "
            f"{size_text(done.size)}"
        )
    )
    show(done.commit)


def checkout(
    repository: Annotated[str, _REF],
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Address of the cube; nothing may be there.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Make a cube of a commit, to be measured further and committed again."""
    from evalcube.flows.publish.versions import check_out_cube

    trials = check_out_cube(repository, directory)
    if as_json:
        show_json(
            {
                "schema": "evalcube.checkout",
                "schema_version": 1,
                "cube": directory,
                "from": repository,
                "trials": trials,
            }
        )
        return
    show(safe(f"{directory}: {trials:,} trials"))


def tag(
    repository: Annotated[str, _REF],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as v1; it stays for good.")],
    as_json: JsonOption = False,
) -> None:
    """Name a commit of an Icechunk repository for good."""
    from evalcube.flows.publish.versions import tag_commit

    commit = tag_commit(repository, name)
    if as_json:
        show_json({"schema": "evalcube.tag", "schema_version": 1, "tag": name, "commit": commit})
        return
    show(safe(f"{name}: {commit}"))


COMMANDS = (commit, checkout, tag)
