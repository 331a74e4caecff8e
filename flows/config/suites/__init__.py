"""Suites: packaged configs without models, which are loaded by name, one or several, with models to measure."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path, PurePath

from evalcube.flows.config.findings import failure
from evalcube.flows.config.load import MODELS, load_config, parse_config
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.near_names import close_name, did_you_mean
from evalcube.flows.config.recipes import joined_suites, suite_names, suite_text
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.text import yaml_text
from evalcube.flows.errors import SweepError, need_text, no_bare_text

NAMED = re.compile(r"(?!(?:https?|sim|local):)([^=#]+)=(.+)", re.DOTALL)
"""A value for one model: the name may have slashes and colons, as those of servers have, and no address begins so."""
_KEY_OF = re.compile(r"(.+)=([^=]+)", re.DOTALL)


def model_section(models: Sequence[str], key_envs: Sequence[str] = ()) -> list[dict[str, object]]:
    """Make the ``models`` section of a config; its values are checked with the config.

    Examples
    --------
    >>> model_section(["sim:", "mine=https://h/v1#org/m"])[1]
    {'name': 'mine', 'endpoint': 'https://h/v1', 'model': 'org/m'}
    """
    section = [_model(text) for text in models]
    remote = [model for model in section if str(model["endpoint"]).startswith("http")]
    whose = [match and match[1] for match in map(_KEY_OF.fullmatch, key_envs)]
    if len(set(whose)) < len(whose):
        raise failure("`key_envs`", "two variables are for the same models", "Write NAME=VARIABLE for each")
    for text in key_envs:
        if not remote:
            remedy = "Give one with `models`, or leave it out"
            raise failure("`key_envs`", "no model has an http(s) endpoint", remedy, value=show(text))
        _give_key(text, remote)
    return section


def _with_judges(
    models: Sequence[str], key_envs: Sequence[str], judges: Sequence[str]
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The sections ``models`` and ``judges``; a judge is asked and not measured, and called judge without a name."""
    named = [text if NAMED.fullmatch(text) else f"judge={text}" for text in judges]
    section = model_section([*models, *named], key_envs)
    asked = section[len(models) :]
    for model in asked:
        model["measured"] = False
    return section, [{"model": model["name"]} for model in asked]


def _model(text: str) -> dict[str, object]:
    named = NAMED.fullmatch(need_text("models", text))
    name, endpoint = (named[1], named[2]) if named else ("", text)
    if not endpoint.startswith(("http://", "https://")):
        return {"name": name or _local_name(endpoint), "endpoint": endpoint}
    endpoint, _, model = endpoint.partition("#")
    if not model:
        shown = show(endpoint).strip("'")
        remedy = f"Write {shown}#MODEL"
        raise failure(MODELS, "a URL must say which model to ask there", remedy, value=show(text))
    return {"name": name or model, "endpoint": endpoint, "model": model}


def _local_name(endpoint: str) -> str:
    """A name for an endpoint on this machine; for anything else the text itself, which the config refuses."""
    if endpoint == "sim" or endpoint.startswith("sim:"):
        return "simulated"
    if endpoint in ("local", "local:"):
        return "smollm2"
    name = endpoint.removeprefix("local:")
    return PurePath(name).stem or "model" if name.endswith(".gguf") else name.strip() or "model"


def _give_key(text: str, remote: list[dict[str, object]]) -> None:
    named = _KEY_OF.fullmatch(text)
    if named is None:
        for model in remote:
            model.setdefault("key_env", text)
        return
    chosen = [model for model in remote if model["name"] == named[1]]
    if not chosen:
        names = [str(model["name"]) for model in remote]
        remedy = did_you_mean(named[1], names, "Models with http(s) endpoints")
        raise failure("`key_envs`", f"no model {show(named[1])} has an http(s) endpoint", remedy)
    for model in chosen:
        model["key_env"] = named[2]


def initial_config() -> str:
    """A commented config to start from, which is valid as it stands."""
    return resources.files("evalcube.flows.config").joinpath("initial.yaml").read_text(encoding="utf-8")


_PROMPTS = ("question", "prompt", "problem", "input", "query", "frage", "aufgabe")
_ANSWERS = (
    "answer",
    "reference",
    "target",
    "solution",
    "label",
    "correct",
    "gold",
    "expected",
    "antwort",
    "lösung",
)
_OPTIONS = ("options", "choices", "auswahl")
_IDS = ("id", "nr", "no", "number", "nummer", "key", "name")
_ONE_OPTION = re.compile(r"((option|choice|antwort)[ _-]?)?([a-z]|[1-9])", re.IGNORECASE)
_LOOKED_AT = 200
"""Rows by which columns are guessed."""


def config_of_questions(file: str | Path, folder: Path) -> str:
    """A config, in a folder, that asks the questions of a file, whose columns are guessed; it is valid as it stands."""
    from evalcube.stages.generate.dataset import Dataset, DatasetParams  # with all tasks
    from evalcube.stages.generate.errors import TaskError

    wrong: TaskError | None = None
    for guess in _guesses(str(file)):
        try:
            resolved = Dataset().resolve(DatasetParams.model_validate({"file": str(file), **guess}))
        except TaskError as error:
            wrong = wrong or error
            continue
        path = os.path.relpath(file, folder)
        name, rows = Path(file).name.partition(".")[0], resolved.model_dump()["rows"]
        models = initial_config().partition("\nmodels:")[2].partition("\ntasks:")[0]
        first = (
            f"# {path}: its columns were guessed, see `params` below. Every key: docs/config.md\n"
            "# As it stands it asks a simulated model, so it runs anywhere, at once and for nothing: put yours in.\n\n"
        )
        settings = f"trials: {rows}\ncube: {json.dumps(f'results/{name}.zarr')}\ncache: results/cache\n"
        tasks = {"tasks": {name: {"task": "dataset", "params": {"file": path, **guess}}}}
        return f"{first}name: {json.dumps(name)}\n{settings}\nmodels:{models}\n{yaml_text(tasks)}"
    raise wrong or SweepError(f"'{file}' has no questions", "Give a file with rows")


def _guesses(file: str) -> Iterator[dict[str, object]]:
    """Params that may read a file, from what its columns are called and hold; the likeliest first."""
    from evalcube.stages.generate.dataset.books import Library
    from evalcube.stages.generate.dataset.files import file_digest, format_of

    book = Library().book(file, format_of(file, "auto"), file_digest(file))
    rows = [dict(book.source.row(index)) for index in range(min(len(book.source.table), _LOOKED_AT))]
    columns = {name.casefold(): name for name in book.columns()}

    def of_name(names: Sequence[str]) -> str | None:
        return next((columns[name] for name in names if name in columns), None)

    def length(name: str) -> int:
        return sum(len(text) for row in rows if isinstance(text := row.get(name), str))

    prompt = of_name(_PROMPTS) or max(columns.values(), key=length)
    listed = of_name(_OPTIONS)
    value = rows[0].get(listed) if listed else None
    options: object = listed
    if isinstance(value, dict):
        lists = [name for name, part in value.items() if isinstance(part, list)]
        options = f"{listed}.{lists[0]}" if lists else [f"{listed}.{name}" for name in value]
    single = [name for name in columns.values() if _ONE_OPTION.fullmatch(name)]
    if not options and len(single) > 1:
        options, listed = single, ""
    used = {prompt, listed, *(single if options is single else ())}
    unused = [name for name in columns.values() if name not in used]
    answer = of_name(_ANSWERS) or next(reversed(unused), None)
    if answer is None:
        raise SweepError(
            f"'{file}' has no column with answers", "Add one; or write a config with a rubric and judges"
        )
    params = {"prompt": prompt, "answer": answer}
    ids = of_name(_IDS)
    if ids and ids != answer and len({row.get(ids) for row in rows} - {None, ""}) == len(rows):
        params["id"] = ids
    if options:
        yield {**params, "options": options}
        yield from ({**params, "options": options, "answer_is": way} for way in ("letter", "number", "index"))
    yield {**params, "kind": "number"}
    yield {**params, "match": "contains"}


def load_suite(
    name: str | Sequence[str], models: Sequence[str], key_envs: Sequence[str] = (), judges: Sequence[str] = ()
) -> Sweep:
    """Config of a packaged suite, or of several as one sweep, for the given models.

    Parameters
    ----------
    name
        Name of a suite, such as ``quick`` or ``gsm8k``; or several names, if their suites differ only in tasks, trials
        and judges.
    models
        Models to measure, each ``[NAME=]ENDPOINT`` as for ``evalcube run --model``, such as ``sim:``.
    key_envs
        Names of environment variables with API keys: a name alone is for all http(s) endpoints,
        ``NAME=VARIABLE`` for one model. Default: no keys.
    judges
        Judge models, written like `models`, for suites whose answers are rated by judges; default: none.

    Returns
    -------
    Sweep
        A config as `load_config` returns it.

    Raises
    ------
    SweepError
        If there is no such suite, or several cannot be asked together.
    ConfigError
        If there are no models, or they are wrong.

    Examples
    --------
    >>> load_suite("quick", ["sim:"]).cube
    'results/quick.zarr'
    """
    names = sorted(
        {need_text("name", each) for each in (name if isinstance(name, (list, tuple)) else [name])}
    )
    text = suite_text(names[0]) if len(names) == 1 else yaml_text(joined_suites(names))
    no_bare_text(models=models, key_envs=key_envs, judges=judges)
    section, judging = _with_judges(models or (), key_envs or (), judges or ())
    if not models:
        rule = "has no models of its own" if len(names) == 1 else "have no models of their own"
        remedy = f"Give some, as in: evalcube run {' '.join(names)} --model sim:"
        raise failure(f"suite {' '.join(names)}", rule, remedy)
    return parse_config(text, f"suite {' '.join(names)}", models=section, judges=judging)


def load_sweep(
    target: str | Path | Sequence[str],
    models: Sequence[str] = (),
    key_envs: Sequence[str] = (),
    judges: Sequence[str] = (),
) -> Sweep:
    """The config of a path, or else of a suite, or of several suites."""
    for name, argument in (("key_envs", key_envs), ("judges", judges)):
        if argument and not models:
            raise SweepError(f"`{name}` goes with `models`", "Give `models`, or say it in the config")
    targets = [target] if isinstance(target, (str, Path)) else list(target)
    known = suite_names()
    suites = [str(entry) for entry in targets if not Path(entry).is_file() and str(entry) in known]
    if targets and suites == list(map(str, targets)):
        return load_suite(suites, models, key_envs, judges)
    if len(targets) != 1:
        raise failure(
            ", ".join([show(str(entry)) for entry in targets if str(entry) not in suites]),
            "only suites can be run several at once",
            f"Give one config, whose tasks may be of suites: {{gsm8k: {{suite: gsm8k}}}}. Suites: {', '.join(known)}",
        )
    path = Path(targets[0])
    if not path.exists() and path.name == str(path) and path.suffix not in (".yaml", ".yml"):
        near = close_name(str(path), known)
        listed = f"Suites: {', '.join(known)}; a config is a YAML file, which `evalcube init` writes"
        raise failure(
            show(str(path)),
            "no such file, and no suite of that name",
            f"Did you mean '{near}'? {listed}" if near else listed,
        )
    if not models:
        return load_config(path)
    section, judging = _with_judges(models, key_envs, judges)
    return load_config(path, models=section, judges=judging)
