"""Finds the logs that addresses mean, and which tool wrote each."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalcube.flows.errors import SweepError
from evalcube.flows.imports.bounded import lines, mapping, opened, parse, unreadable
from evalcube.flows.imports.inspect_logs import read_inspect
from evalcube.flows.imports.lm_eval_logs import SAMPLES, read_lm_eval
from evalcube.flows.imports.rows import read_rows
from evalcube.flows.imports.samples import LogReader, Wanted

READERS: dict[str, LogReader] = {
    "inspect": read_inspect,
    "lm-eval": read_lm_eval,
    "rows": read_rows,
}
"""By name of the format."""
_LOGS = ("*.eval", "*.json", "samples_*.jsonl", "samples_*.jsonl.gz")
"""What is looked for in a directory; of JSON files only those that begin as Inspect's do."""
_INSPECT = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')


@dataclass(frozen=True)
class Source:
    """A log."""

    path: Path
    format: str
    """One of `READERS`."""
    digest: str
    """SHA-256 of the file."""


def find_sources(logs: Sequence[str | Path], wanted: Wanted) -> list[Source]:
    """The logs that are meant, each once: a file that is there twice counts once.

    Parameters
    ----------
    logs
        Files, and directories in which all logs are meant.
    wanted
        With a mapping, if files of no known tool are meant.

    Raises
    ------
    SweepError
        If there is none, or it is not known who wrote it.
    """
    found: dict[str, Source] = {}
    for path in _files(logs):
        digest = _digest(path)
        if digest in found:
            wanted.note(f"{path.name}: the same as {found[digest].path.name}; it counts once")
            continue
        found[digest] = Source(path, _format(path, wanted), digest)
    return list(found.values())


def _files(logs: Sequence[str | Path]) -> Iterator[Path]:
    for log in logs:
        path = Path(log)
        if not path.is_dir():
            yield path
            continue
        named = sorted({file for pattern in _LOGS for file in path.rglob(pattern) if file.is_file()})
        inside = [file for file in named if file.suffix != ".json" or _is_inspect(file)]
        if not inside:
            raise SweepError(
                f"there is no log in '{path}'", f"Name the files; looked for: {', '.join(_LOGS)}"
            )
        yield from inside


def _is_inspect(path: Path) -> bool:
    try:
        with opened(path) as file:
            return _INSPECT.match(file.read(1000)) is not None
    except OSError as error:
        raise unreadable(path, error) from None


def _digest(path: Path) -> str:
    try:
        with opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from None


def _format(path: Path, wanted: Wanted) -> str:
    """Who wrote a log, by its name and its first bytes."""
    if set(wanted.fields) - {"cluster"}:
        return "rows"
    if path.suffix in (".eval", ".json"):
        return "inspect"
    if SAMPLES.fullmatch(path.name):
        return "lm-eval"
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        number, line = next(lines(path), (0, b"{}"))
        first = mapping(parse(line, f"{path}, line {number}"))
        return "lm-eval" if {"doc_id", "resps", "arguments"} <= first.keys() else "rows"
    raise SweepError(
        f"'{path}' is no log of a known tool",
        "Give logs of Inspect or lm-eval, or write JSONL with prompt, response, correct and model on each line",
    )
