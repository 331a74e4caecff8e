"""The options that commands share, and errors that name a flag where the library names its parameter."""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import BadParameter
from typer.core import TyperCommand, TyperGroup

from evalcube import EvalcubeError
from evalcube.flows.cli.output import form_of

if TYPE_CHECKING:
    from evalcube.flows.read.selection import Part

# What is an argument here and an option there says what it is in `help`; all others, `MEANINGS` below does.

Cube = Annotated[str, typer.Argument(help="Address of a cube, such as results/quickstart.zarr.")]
Cubes = Annotated[list[str], typer.Argument(metavar="CUBE", help="Addresses of cubes.")]
Results = Annotated[str | None, typer.Option(help="Address of the results; default: the config's.")]
Cache = Annotated[
    str, typer.Argument(help="Address of a cache: results/cache, s3://bucket/prefix, redis://host:6379/0.")
]
Caches = Annotated[
    list[str] | None,
    typer.Option(
        help="Address of the response cache; default: that of your run, else one beside the cube. May be given again."
    ),
]
AskedTrials = Annotated[
    str | None,
    typer.Option(
        "--trials",
        "--limit",
        metavar="[A:]B",
        help="Ask only trials A to B - 1 of each cell now, counted from 0; B replaces the config's number of trials. "
        "The first 100 of a data set are a random sample of its rows.",
    ),
]
ByTask = Annotated[bool, typer.Option("--by-task")]
NewFolder = Annotated[Path, typer.Option("--output", "-o")]
Json = Annotated[bool, typer.Option("--json")]
Markdown = Annotated[bool, typer.Option("--markdown")]
Csv = Annotated[bool, typer.Option("--csv")]
Score = Annotated[str, typer.Option("--score")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q")]
Configs = Annotated[list[str], typer.Argument(metavar="CONFIG")]
Endpoints = Annotated[list[str] | None, typer.Option("--model")]
Judges = Annotated[list[str] | None, typer.Option("--judge")]
Keys = Annotated[list[str] | None, typer.Option("--key-env")]
Workers = Annotated[int | None, typer.Option(min=1, max=256)]


def _one_of(*values: str) -> Any:  # noqa: ANN401 - typer's own
    def check(value: str | None) -> str | None:
        if value not in (None, *values):
            raise typer.BadParameter(f"give {', '.join(values[:-1])} or {values[-1]}")
        return value

    return typer.Option(callback=check)


Grader = Annotated[str, _one_of("current", "pinned")]
Fresh = Annotated[str | None, _one_of("all", "refused", "unrated")]
PART: dict[str, tuple[Any, Any]] = {
    "where": (list[str] | None, None),
    "view": (str | None, None),
    "trials": (Annotated[int | None, typer.Option(min=1)], None),
    "unique_only": (Annotated[bool, typer.Option("--unique-only")], False),
    "clip_tokens": (Annotated[int | None, typer.Option("--clip-context", min=1)], None),
    "reader": (str, "ours"),
}
"""The options that choose and count a part of a cube, and their defaults, by the field of `Part` that each sets."""


def _shared() -> None:
    """Say what options mean that several commands have.

    Parameters
    ----------
    where : NAME=VALUE
        Only these results: task=sort,letters, tier=hard, model=NAME, template=NAME, sampler=NAME, a facet (a label of
        the models), or a task's parameter, as in param_length=4..16 (or 4.. or ..16). If given again, all conditions
        must hold.
    view : NAME
        Only the results in this view, a selection that the sweep's config names.
    trials
        Only the first N trials of each cell (one evaluation at one point of a task).
    unique_only
        Leave out trials that repeat an earlier question of their cell.
    clip_tokens : TOKENS
        Compute as if the limit of completion tokens had been TOKENS: longer answers count as truncated.
    reader : ours|theirs
        Who extracts answers from replies: evalcube (ours), or the task's second reader (theirs): another parser, such
        as another tool's.
    mode
        Estimator: E_I, E_P, E_O (share right) or C_I, C_P, C_O (corrected for guessing). Truncated trials are left out
        (I), wrong (P) or right (O). On a leaderboard, auto is C_P, or accuracy (E_P) if all tasks are data sets.
    version
        auto: the score (ReasonScore: 10 to 1000, over all tasks and tiers), or the rate of --mode if there are few
        trials. v1 or v2: always the score, from upper bounds (v1) or point values (v2) of success rates.
    weigh
        What has equal weight: tasks (within a task, points weigh by their planned trials in the cube's first run),
        points, or trials.
    by
        What to group by: model, task, tier, a facet, a parameter such as param_length, difficulty; several with commas.
    by_task
        A row for each task.
    output
        The folder to write; it must not exist yet.
    gold
        File of ratings by people: shows how well judges agree with people, and corrects the judges' scores.
    as_json
        Print JSON.
    markdown
        Print a Markdown table.
    as_csv
        Print CSV with all digits.
    control
        The variant in use, with which treatments are compared: a model's label, or an evaluation's label or number.
    only : NAME=VALUE
        Ask only this part of the plan now: model=NAME, task=sort,letters, tier=hard, length=4..16. If given again, all
        conditions must hold.
    repeats
        How often each question is asked; default: the config's.
    quiet
        No progress display.
    log : FILE
        Append events to FILE, one JSON object per line.
    config
        The sweep's config, a YAML file (`evalcube init` writes one); or a suite, such as quick, m12 or gsm8k; or
        several suites as one sweep.
    models : [NAME=]ENDPOINT
        A model to measure: sim:, local:smollm2, local:/path/model.gguf or https://host/v1#MODEL. Give it again for
        more. Replaces the config's models.
    judges : [NAME=]ENDPOINT
        Judge model, given as for --model; not ranked. Needs --model, and replaces the config's judges. Give it again
        for more.
    key_envs : [NAME=]VARIABLE
        Environment variable with the API key of all models at http(s) endpoints, or of the one model NAME.
    grader
        For replies that an older version of evalcube graded: current grades them again, pinned keeps their grades.
    cache
        Address of the response cache; default: the config's.
    scheduler
        Address of a running Dask scheduler, such as tcp://host:8786; default: that of DASK_SCHEDULER_ADDRESS, else
        this machine.
    cluster : local|ADDRESS|FILE
        Where workers run: local, a scheduler's address, or a YAML file that describes a cluster; default: the
        config's.
    workers
        Local worker processes; default: if at most 100,000 trials are left, the command itself does the
        work; otherwise one per core, at most eight.
    """


def parse_docstring(text: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """What a docstring says of a command, and of its parameters: what stands for a value, and what it means."""
    summary, _, below = inspect.cleandoc(text).partition("\n\nParameters\n----------\n")
    sections = re.findall(r"(?m)^(\w+)(?: : (.*))?\n((?: {4}.*(?:\n|\Z))+)", below)
    return summary, {name: (value, " ".join(meaning.split())) for name, value, meaning in sections}


MEANINGS = parse_docstring(_shared.__doc__ or "")[1]


FORM: dict[str, tuple[Any, Any]] = {
    "as_json": (Json, False),
    "markdown": (Markdown, False),
    "as_csv": (Csv, False),
}
"""The options that say in which form a table is printed."""


def of_part(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have a command take the options of `PART` with these names, by default all of them, as its one argument `part`.

    If it has an argument `form`, that is which option of `FORM` is given. An option that the command declares itself
    stands among them, and is the command's alone.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        del command.__annotations__["part"]  # a name for type checkers only
        signature = inspect.signature(command, eval_str=True)
        own = dict(signature.parameters)
        groups = {"part": {name: PART[name] for name in names or PART}, "form": FORM}
        members = {option for name in groups for option in groups[name] if name in own}

        def options() -> Iterator[inspect.Parameter]:
            for name, parameter in own.items():
                for option, (kind, default) in groups.get(name, {}).items():
                    yield own.get(option) or parameter.replace(name=option, annotation=kind, default=default)
                if name not in groups and name not in members:
                    yield parameter

        @wraps(command)
        def with_groups(**values: Any) -> None:  # noqa: ANN401 - what the command line gave
            if "form" in own:
                values["form"] = form_of(**{option: values.pop(option) for option in FORM})
            part = part_of(**{option: values.pop(option) for option in groups["part"] if option not in own})
            command(**values, part=part)

        with_groups.__signature__ = signature.replace(parameters=list(options()))  # type: ignore[attr-defined]
        return with_groups

    return decorate


def part_of(where: Sequence[str] | None = None, **fields: Any) -> Part:  # noqa: ANN401 - fields of `Part`
    """The part of a cube that the options mean; what is asked of it will be computed in this process."""
    from evalcube.flows.read.selection import Part
    from evalcube.storage.cube.cube import Cube

    Cube.before_lazy = staticmethod(_compute_here)  # not now: many commands read counters only, without Dask
    return Part(tuple(where or ()), **fields)


def _compute_here() -> None:
    """Have Dask compute with threads of this process."""
    import dask
    from dask.threaded import get

    # Where no scheduler is named, Dask imports distributed to look for a client: half a second for nothing.
    if "distributed" not in sys.modules:
        dask.config.set(scheduler=get)


def cubes_and_models(first: str, others: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command's arguments into the addresses of cubes at their beginning, and the names after them.

    The first argument is always a cube.
    """
    cubes = [first, *takewhile(_is_cube, others)]
    return cubes, list(others[len(cubes) - 1 :])


def _is_cube(text: str) -> bool:
    from evalcube.storage.cube.cube import Cube
    from evalcube.storage.errors import StorageError

    try:
        return Cube.exists(text) and bool(Cube.open(text).sizes)
    except StorageError:
        return False


def names_of(text: str) -> list[str]:
    """The names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def settings_of(flag: str, texts: Sequence[str], example: str) -> dict[str, list[float]]:
    """What is set by ``NAME=NUMBER,...`` texts of a flag, as in the example."""
    settings: dict[str, list[float]] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        try:
            numbers = [float(part) for part in names_of(value)]
        except ValueError:
            numbers = []
        if not numbers or settings.setdefault(name, numbers) is not numbers:
            from evalcube.flows.errors import SweepError

            raise SweepError(f"{flag}: '{text}' sets nothing, or sets it again", f"Write it like {example}")
    return settings


class _Flags:
    """A command or group whose help says nothing beside flags, which take no value."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - as Typer has it
        """Options and arguments, as Typer lists them."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of Typer's own
        for parameter in params:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return params


class CommandGroup(_Flags, TyperGroup):
    """A group of commands."""


class Command(_Flags, TyperCommand):
    """A command whose errors name its flags.

    Parameters of a command have the names that the library gives them, whatever their flags are called: so the
    command itself says that `version` is ``--score`` here. What each of them means is what its docstring says, or else
    `_shared`.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401 - as Typer makes it
        settings["help"], own = parse_docstring(settings.get("help") or "")
        super().__init__(*args, **settings)
        for parameter in self.params:
            value, meaning = own.get(parameter.name) or MEANINGS.get(parameter.name) or ("", "")
            parameter.metavar = parameter.metavar or value or None
            parameter.help = getattr(parameter, "help", None) or meaning  # type: ignore[attr-defined]  # Typer's have it

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as for `invoke`
        """Read the arguments, as Typer does, and refuse options that would take the place of their own first value.

        A value that is refused is named.
        """
        values: dict[str, Any] = {}
        ctx.meta[__name__] = {word.partition("=")[0] for word in args}
        if not ctx.resilient_parsing:
            values, _, named = self.make_parser(ctx).parse_args(list(args))
            for parameter, times in Counter(named).items():
                if times > 1 and _takes_one_value(parameter):
                    raise BadParameter(
                        f"it is given {times} times, and only the last would count. "
                        "Give it once; what takes several values takes them with commas",
                        param_hint=_flag(parameter, ctx),
                    )
        try:
            remaining: list[str] = super().parse_args(ctx, args)
        except BadParameter as error:
            value = values.get(getattr(error.param, "name", None) or "")
            if isinstance(value, str) and value not in error.message:
                error.message = f"{error.message}, got {value!r}"
            raise
        return remaining

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - a context of the click inside Typer
        """Run the command, as Typer does."""
        try:
            return super().invoke(ctx)
        except EvalcubeError as error:
            flags = self._flags(ctx)
            error.message, error.remedy = in_flags(error.message, flags), in_flags(error.remedy, flags)
            raise

    def _flags(self, ctx: Any) -> dict[str, str]:  # noqa: ANN401 - as for `invoke`
        """Parameter -> its flag, or the word in capitals that stands for an argument in ``--help``."""
        return {
            str(parameter.name): _flag(parameter, ctx)
            if parameter.param_type_name == "option"
            else str(parameter.name).upper()
            for parameter in self.params
        }


def _flag(parameter: Any, ctx: Any) -> str:  # noqa: ANN401 - a parameter and a context of the click inside Typer
    """The flag of an option as it was typed; the longest of those that it has where it was not."""
    flags: list[str] = parameter.opts
    return max([flag for flag in flags if flag in ctx.meta.get(__name__, ())] or flags, key=len)


def _takes_one_value(parameter: Any) -> bool:  # noqa: ANN401 - a parameter of the click inside Typer
    return parameter.param_type_name == "option" and not (
        parameter.multiple or parameter.is_flag or parameter.count
    )


def in_flags(text: str, flags: dict[str, str]) -> str:
    """The text with the flags of the parameters that it names in backticks; other words in backticks stay.

    Examples
    --------
    >>> in_flags("`version`: there is no `v3`", {"version": "--score"})
    '--score: there is no `v3`'
    """
    return re.sub(r"`(\w+)`", lambda match: flags.get(match[1], match[0]), text)
