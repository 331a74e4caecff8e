"""Measures some cells of a sweep further, from its config or from its cube, which never says by itself whom to ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from evalcube.flows.config.limits import LEVELS, Precision
from evalcube.flows.config.load import as_config
from evalcube.flows.config.models import Model, Sweep
from evalcube.flows.config.raw_config import named_code
from evalcube.flows.config.serving import Serve
from evalcube.flows.config.templates import code_of
from evalcube.flows.cube_like import OneCube, is_dataset, need_address
from evalcube.flows.errors import SweepError, as_list, need_number
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import explain_withheld_template
from evalcube.flows.plan.filters import Where
from evalcube.flows.plan.part import Adaptive, Fixed, Sampling, Selection
from evalcube.flows.plan.targets import MOST_REPEATS, MOST_TRIALS
from evalcube.flows.run.spending import Amount, Budget, resume, spent_on
from evalcube.flows.run.summary import RunSummary
from evalcube.flows.run.sweep import Graders, run
from evalcube.flows.state.records import MERGED, read_notes
from evalcube.flows.state.store import existing_store
from evalcube.flows.state.trust import remembered_code, remembered_config
from evalcube.stages.analyze.formulas.allocation import Purpose
from evalcube.stages.generate.dataset.matching import explain_withheld
from evalcube.stages.named_code import allow_code, may_run
from evalcube.stages.process.grading import IMPORTED
from evalcube.storage.cube.cube import Cube
from evalcube.storage.urls import at_home

_NONE: Mapping[str, str] = MappingProxyType({})
_HARMLESS = ("sim:", "local:smollm2")
"""Endpoints that reach nothing but this machine and read no file that a cube names."""
_SHOWN = 4
_SHOWN_COMMAND = 80
"""Characters."""


def acting_config(
    source: Sweep | Mapping[str, Any] | str | Path,
    *,
    cube: str | Path | None = None,
    cache: str | Path | None = None,
    config: Sweep | Mapping[str, Any] | str | Path | None = None,
    endpoints: Mapping[str, str] | str = _NONE,
    key_envs: Mapping[str, str] | str = _NONE,
) -> Sweep:
    """The config to go on with, given in any form or by a cube.

    Of a cube it is `config`, or else the config that this user last ran it with. Of one that the user never ran,
    what its notes say is taken, but for whatever decides where requests, keys and files go: that is given here, or
    refused.
    """
    # A config is a file on this machine; any other address that leads to something should lead to a cube.
    if not isinstance(source, (str, Path)) or at_home(source).is_file() or not Cube.exists(source):
        overrides = [
            name
            for name, value in (("config", config), ("endpoints", endpoints), ("key_envs", key_envs))
            if value
        ]
        if overrides:
            raise SweepError(f"`{overrides[0]}` goes with a cube, and '{source}' is none", "Leave it out")
        return as_config(source, cube=cube, cache=cache)
    if config is not None and (endpoints or key_envs):
        raise SweepError("`config` excludes `endpoints` and `key_envs`", "Give one of them")
    address = cube or str(source)
    if config is not None:
        return as_config(config, cube=address, cache=cache)
    opened = Cube.open(source)
    notes = _notes_unless_imported(source, opened)
    own = None if endpoints or key_envs else remembered_config(opened)
    if own is not None:
        return as_config(own, cube=address, cache=cache)
    noted = _noted_config(source, opened, notes)
    _refuse_code(noted)
    # Where it works is decided by no cube, either; runs do not note it.
    fields = {name: value for name, value in noted.items() if name != "cluster"}
    sweep = as_config(fields, cube=address, cache=cache)
    confirmed = _confirm(sweep, endpoints, key_envs)
    if cache is None:
        # Not one beside the cube either, although it may be read: a run writes into its cache, and tidies it up.
        raise SweepError(
            f"you have not run cube '{source}' on this machine, so that it is not known which cache is yours",
            "Give the address of a cache with `cache`",
        )
    return confirmed


def _notes_unless_imported(source: object, opened: Cube) -> Mapping[str, Any]:
    """The notes of a cube whose questions were asked here; an imported one is refused."""
    notes = read_notes(opened.records)
    if IMPORTED in notes:
        raise SweepError(
            f"cube '{source}' was imported from the logs of another tool: it has no endpoint to ask for more",
            "Ask with that tool, and import its new log, too; or measure with a config and a cube of your own",
        )
    return notes


def _noted_config(source: object, opened: Cube, notes: Mapping[str, Any]) -> dict[str, Any]:
    """The config in a cube's notes; refused where none is there."""
    noted = notes.get("config")
    if not isinstance(noted, dict) and MERGED in opened.attrs:
        raise SweepError(
            f"cube '{source}' was merged from several, and so no one config made it",
            "Say with `config` what to ask for, such as with that of one of the cubes: what any team has asked is not "
            "asked again",
        )
    if not isinstance(noted, dict):
        raise SweepError(
            f"cube '{source}' does not tell how it was made: {source}/_evalcube/sweep.json is gone or damaged",
            "Give the sweep's config file with `config`",
        )
    return noted


_THEIRS = ("serve", "headers", "ca_file", "key_env", "key_file", "key_command")
"""What a stranger's cube does not say of models: which commands run here, and what goes where."""


def config_of_cube(source: str) -> tuple[dict[str, Any], list[str]]:
    """The config of a cube, to be edited, and a line for each address in it that is the cube's and not this user's."""
    opened = Cube.open(source)
    notes, own = _notes_unless_imported(source, opened), remembered_config(opened)
    if own is not None:
        return {**own, "cube": source}, []
    noted = _noted_config(source, opened, notes)
    models = noted.get("models")
    asked = [
        {"endpoint": "sim:"} | {key: value for key, value in model.items() if key not in _THEIRS}
        for model in (models if isinstance(models, list) else [])
        if isinstance(model, Mapping)
    ]
    config = {name: value for name, value in noted.items() if name not in ("cluster", "cache")}
    config = {**config, "models": asked, "cube": source}
    checked = as_config(config)
    return config, [_line(model) for model in checked.models if model.endpoint not in _HARMLESS]


def _refuse_code(noted: Mapping[str, Any]) -> None:
    """Refuse a cube's own config if it names code that no config of this user's does."""
    named = named_code(noted)
    if not all(map(may_run, named)):
        allow_code(remembered_code())
    templates = noted.get("templates")
    sources = templates.items() if isinstance(templates, Mapping) else ()
    why = {code_of(source): explain_withheld_template(str(name)) for name, source in sources}
    for name in sorted(named):
        if not may_run(name):
            raise SweepError(
                why.get(name) or explain_withheld(name), "Or give the sweep's config with `config`"
            )


def endpoint_lines(config: Sweep) -> list[str]:
    """A line for each model that a run would ask: its address, and the variable whose key goes there."""
    return [_line(model) for model in config.models]


def _line(model: Model) -> str:
    key_source = model.key_env or model.key_file
    key = f" with the key in {key_source}" if key_source else ""
    if model.key_command is not None:
        key = f" with the key that {model.key_command[0]} prints"
    return f"{model.name} at {_address(model)}{key}"


def _address(model: Model) -> str:
    if model.serve is not None:
        return f"a server that the run starts with {_command(model.serve)}"
    shown = " and ".join(model.addresses[:_SHOWN])
    return f"{shown} and {len(model.addresses) - _SHOWN} more" if len(model.addresses) > _SHOWN else shown


def _command(serve: Serve) -> str:
    words = serve.command or (f"the preset {serve.preset}", *serve.args)
    return repr(" ".join(words)[:_SHOWN_COMMAND])


def _confirm(config: Sweep, endpoints: Mapping[str, str] | str, key_envs: Mapping[str, str] | str) -> Sweep:
    """The config with the user's endpoints and keys in place of those that the cube names."""
    asked = _for_models("endpoints", endpoints, config)
    keys = _for_models("key_envs", key_envs, config)
    problems = [text for model in config.models for text in _unsaid(model, asked)]
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise SweepError(
            f"you have not run this cube on this machine, and a cube does not decide whom to ask: "
            f"{'; '.join(problems[:_SHOWN])}{more}",
            "Give the sweep's config with `config`; or whom to ask with `endpoints`, and whose key with `key_envs`",
        )
    models = [_with(model, asked.get(model.name), keys.get(model.name)) for model in config.models]
    return as_config({**config.model_dump(mode="json", exclude_unset=True), "models": models})


def _for_models(parameter: str, given: Mapping[str, str] | str, config: Sweep) -> Mapping[str, str]:
    """By name of a model, what is given for it."""
    if isinstance(given, str):
        return {model.name: given for model in config.models if model.endpoint not in _HARMLESS}
    names = [model.name for model in config.models]
    for name in given:
        if name not in names:
            raise SweepError(
                f"`{parameter}`: no model of the cube is called '{name}'", f"It has: {', '.join(names)}"
            )
    return given


def _unsaid(model: Model, endpoints: Mapping[str, str]) -> Iterator[str]:
    if model.serve is not None and model.name not in endpoints:
        yield f"it would run {_command(model.serve)} for {model.name}"
    elif model.endpoint not in _HARMLESS and model.name not in endpoints:
        yield f"it would ask {_line(model)}"
    if model.key_file is not None:
        yield f"it would send {model.name} what is in {model.key_file}"
    if model.key_command is not None:
        yield f"it would run {' '.join(model.key_command)[:_SHOWN_COMMAND]!r} for {model.name}"
    if model.headers:
        yield f"it would send headers of its own to {model.name}"
    if model.ca_file is not None:
        yield f"it would believe the authorities in {model.ca_file} for {model.name}"


def _with(model: Model, endpoint: str | None, key_env: str | None) -> dict[str, Any]:
    fields = model.model_dump(mode="json", exclude_unset=True)
    fields.pop("key_env", None)
    if endpoint is not None:
        fields.pop("serve", None)  # a command that nobody confirmed
    overrides = (("endpoint", endpoint), ("key_env", key_env))
    return {**fields, **{name: value for name, value in overrides if value is not None}}


def upsample(
    source: Sweep | Mapping[str, Any] | OneCube,
    *,
    trials: int | None = None,
    repeats: int | None = None,
    precision: Precision | str | None = None,
    budget: Amount | str | None = None,
    purpose: Purpose = "ranking",
    where: Where | str = (),
    cube: str | Path | None = None,
    cache: str | Path | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    cluster: Any = None,  # noqa: ANN401 - a cluster of anybody's
    subscribers: Sequence[Subscriber] = (),
    config: Sweep | Mapping[str, Any] | str | Path | None = None,
    endpoints: Mapping[str, str] | str = MappingProxyType({}),
    key_envs: Mapping[str, str] | str = MappingProxyType({}),
    grader: Graders = "current",
    stop: threading.Event | None = None,
) -> RunSummary:
    """Add trials or repeats to some cells of a sweep, or to all.

    Parameters
    ----------
    source
        A config in any form that `run` takes, or a cube. A cube itself never decides which endpoints are asked: they
        come from the config with which you ran it on this machine, from `config`, or from `endpoints`.
    trials, repeats
        Numbers of trials, and of answers to each question, that each selected cell then has; cells that have more keep
        them. Default: as they are.
    precision
        Instead of `trials`: as many trials as each selected cell needs for ``low``, ``medium``, ``high`` or your own
        `evalcube.config.Precision`.
    budget
        Instead of `trials`: the amount to spend, such as ``2M`` (tokens) or ``5USD``, on the cells where, by
        the results so far, it helps most.
    purpose
        What `budget` improves: the order of the models (``ranking``, default) or the widths of ``intervals``.
    where
        Conditions that select evaluations and points, as for `Part.where`, such as ``model=small``, ``tier=hard`` or
        ``param_length=8..``; all must hold. Default: all cells.
    cube, cache, scheduler, workers, cluster, subscribers
        As for `run`.
    config
        The config of a cube that you did not run yourself.
    endpoints, key_envs
        Instead of `config`: the address to ask, and the name of the environment variable with its API key, as mappings
        by model; or one text for all models.
    grader, stop
        As for `run`.

    Returns
    -------
    RunSummary
        What was done, and what is left.

    Raises
    ------
    SweepError
        If nothing is asked for, no endpoint is known, a name is unknown, or the cube does not say how it was made.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.upsample("results/sweep.zarr", trials=12, where=["model=small"]).sent
    16
    """
    announcer = Announcer(subscribers)
    sweep: Any = source
    if is_dataset(source) or not isinstance(source, Sweep | Mapping | str):
        sweep = need_address(source, "source")
    _refuse_several(repeats, trials=trials, precision=precision, budget=budget)
    if budget is None and purpose != "ranking":
        raise SweepError("`purpose` goes with `budget`", "Give one, or leave `purpose` out")
    _refuse_numbers(("trials", trials, MOST_TRIALS), ("repeats", repeats, MOST_REPEATS))
    settings = acting_config(
        sweep, cube=cube, cache=cache, config=config, endpoints=endpoints, key_envs=key_envs
    )
    selection = Selection(as_list("where", where))
    sampling: Sampling = Fixed(trials, repeats, selection)
    if precision is not None:
        sampling = Adaptive.of(_need_precision(precision), repeats or 1, selection)
    if budget is not None:
        sampling = _budget(settings, budget, purpose, selection)
    if not isinstance(sweep, Sweep | Mapping) and not at_home(sweep).is_file():
        for line in endpoint_lines(settings):
            announcer.note(f"asks {line}")
    return run(
        settings,
        scheduler=scheduler,
        workers=workers,
        cluster=cluster,
        _sampling=sampling,
        grader=grader,
        subscribers=[announcer],
        stop=stop,
    )


def _refuse_several(repeats: int | None, **amounts: object) -> None:
    """Refuse more than one way to say how much is to be added, and none; a budget leaves no number of repeats open."""
    names = [f"`{name}`" for name, value in amounts.items() if value is not None]
    if not names and repeats is None:
        raise SweepError("nothing to add was asked for", "Give `trials`, `repeats`, `precision` or `budget`")
    if len(names) > 1 or (amounts["budget"] is not None and repeats is not None):
        alternatives = ", ".join([*names, *(["`repeats`"] if repeats is not None else [])])
        raise SweepError(f"{alternatives} exclude each other", "Give one of them")


def _refuse_numbers(*given: tuple[str, int | None, int]) -> None:
    for parameter, number, most in given:
        if number is not None:
            need_number(parameter, number, whole=True)
        if number is not None and not 1 <= number <= most:
            raise SweepError(f"`{parameter}`: must be a whole number from 1 to {most:,}, got {number}")


def _budget(settings: Sweep, amount: Amount | str, purpose: Purpose, selection: Selection) -> Budget:
    if purpose not in get_args(Purpose):
        raise SweepError(f"`purpose`: '{purpose}' is none", f"Give one of: {', '.join(get_args(Purpose))}")
    wanted = Amount.parse(amount) if isinstance(amount, str) else amount
    store = existing_store(build_plan(settings), settings.cube)
    if store is None:
        raise SweepError(
            f"`budget`: there is no cube '{settings.cube}' yet that would show where to spend",
            "Run the sweep with a few trials per cell first, such as trials: 16",
        )
    before = float(spent_on(store.counters(), wanted.unit).sum())
    return resume(Budget(wanted, purpose, selection, before), read_notes(store.cube.records).get("budget"))


def _need_precision(precision: Precision | str) -> Precision:
    if isinstance(precision, Precision):
        return precision
    if precision not in LEVELS:
        raise SweepError(f"`precision`: '{precision}' is none", f"Give one of: {', '.join(LEVELS)}")
    return LEVELS[precision]
