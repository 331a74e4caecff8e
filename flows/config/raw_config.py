"""A config before it is one: what a file, a text or a mapping says, and the rules that make a `Sweep` of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from evalcube.flows.config.findings import failure
from evalcube.flows.config.kept_questions import mappings, nodes
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.templates import code_of
from evalcube.flows.config.text import DEEPEST, YamlProblem, YamlText
from evalcube.stages.named_code import folder_code

LARGEST_FILE = 10_000_000
"""Bytes."""
START = "Write a first config with: evalcube init"


def text_of(path: str | Path, start: str = START) -> tuple[str, str]:
    """The text of a file, and what it is called in problems; `start` is the remedy where there is none."""
    source = _printable(str(path))
    data = _read_file(Path(path), source, start)
    try:
        return data.decode("utf-8-sig"), source
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        rule = f"not UTF-8 text: byte 0x{data[error.start]:02x} at position {error.start}"
        raise failure(source, rule, "Save the file as UTF-8", line=line) from None


def written_config(path: Path) -> dict[str, object]:
    """A config as it is written, with nothing checked but that it is YAML."""
    return parsed(*text_of(path), START)[1]


def parsed(text: str, source: str, start: str) -> tuple[YamlText, dict[str, object]]:
    """The text as YAML, and the mapping that it is; `start` is the remedy of an empty one."""
    document = yaml_of(text, source)
    if document.value is None:
        raise failure(source, "the config is empty", start, line=1)
    if not isinstance(document.value, dict):
        rule = f"the config must be a mapping, got {show(document.value)}"
        raise failure(source, rule, "Begin with lines such as models:, samplers:, tasks:", line=1)
    return document, document.value


def named(text: str, source: str) -> tuple[dict[str, object], str, YamlText]:
    """A config's text as `checked` takes it: with the name of its source, if it says none."""
    source = _printable(source)
    read, mapping = parsed(text, source, START)
    return {"name": Path(source).stem[:128].strip() or "sweep", **mapping}, source, read


def yaml_of(text: str, source: str) -> YamlText:
    """The text as YAML; raises ConfigError if it is none."""
    try:
        return YamlText(text)
    except YamlProblem as error:
        raise failure(source, error.rule, error.remedy, line=error.line) from None


_FILES = frozenset({"file", "include_path", "key_file", "ca_file"})


def beside(value: Any, folder: Path, key: str = "") -> Any:  # noqa: ANN401 - any value of YAML
    """What a config says, in which files that are beside it, in its folder, have paths that lead there."""
    if isinstance(value, Mapping):
        return {name: beside(item, folder, name) for name, item in value.items()}
    if isinstance(value, list):
        return [beside(item, folder, key) for item in value]
    own = key in _FILES and isinstance(value, str) and os.path.lexists(folder / value)
    return str(folder / value) if own else value


def plain(mapping: Mapping[str, object]) -> dict[str, object]:
    """What a mapping of Python's says, as it would be written in YAML."""
    return {str(key): _plain(item, DEEPEST - 1) for key, item in mapping.items()}


def _plain(value: object, levels: int) -> object:
    """Copy; sections (which Python users may put in) become mappings of what was given, keys texts, as in YAML."""
    if levels == 0:
        raise failure("config", f"nested deeper than {DEEPEST} levels", "Flatten it")
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, levels - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, levels - 1) for item in value]
    return value


def named_code(config: Mapping[str, object]) -> set[str]:
    """Each ``module:function`` that a config names as a grader, its templates that have code, and folders of tasks."""
    templates = config.get("templates")
    sources = templates.values() if isinstance(templates, Mapping) else ()
    codes = {code for source in sources if (code := code_of(source))}
    tasks = list(mappings(config.get("tasks")))
    graders = [task[key] for task in tasks for key in ("grader", "reader") if key in task]
    codes |= {text for text in nodes(graders) if isinstance(text, str) and ":" in text}
    folders = nodes([task["include_path"] for task in tasks if "include_path" in task])
    return codes | {folder_code(path) for path in folders if isinstance(path, str)}


def _printable(source: str) -> str:
    return source if source.isprintable() else ascii(source)


def _read_file(path: Path, source: str, start: str) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise failure(source, "no such file", start) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise failure(source, f"cannot be read: {reason}", "Give a .yaml file that you can read") from None
    if len(data) > LARGEST_FILE:
        raise failure(source, f"larger than {LARGEST_FILE:,} bytes", "Split it into several configs")
    return data
