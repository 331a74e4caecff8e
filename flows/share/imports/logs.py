"""Imports logs of other tools: reads them all, and writes what they say as a cube."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evalcube import known_as
from evalcube.flows.errors import SweepError
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.plan.plan import Plan
from evalcube.flows.share.imports.bounded import lines, log_error, mapping, open_log, parse
from evalcube.flows.share.imports.collect import REPLIED, Collection
from evalcube.flows.share.imports.inspect_logs import read_inspect
from evalcube.flows.share.imports.json_lines import SAMPLES, parse_map, read_lm_eval, read_rows
from evalcube.flows.share.imports.samples import LogHints, LogReader, Scale
from evalcube.flows.share.imports.write import create_cube, import_plan, store_replies, write_data
from evalcube.flows.state.trust import remember_run
from evalcube.stages.process.grading import IMPORTED
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.errors import CubeExistsError
from evalcube.storage.urls import MadeCube, absolute, directory_of, is_directory

READERS: dict[str, LogReader] = {"inspect": read_inspect, "lm-eval": read_lm_eval, "rows": read_rows}
"""By name of the format."""
_LOGS = ("*.eval", "*.json", "samples_*.jsonl", "samples_*.jsonl.gz")
"""What is looked for in a directory; of JSON files only those that begin as Inspect's do."""
_LINES = ("*.jsonl", "*.jsonl.gz")
_INSPECT = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')


@dataclass(frozen=True)
class LogSource:
    """A log."""

    path: Path
    format: str
    """One of `READERS`."""
    digest: str
    """SHA-256 of the file."""
    listed: bool
    """Whether a folder has it; else it was named itself."""


def find_sources(logs: Sequence[str | Path], wanted: LogHints) -> list[LogSource]:
    """The logs that are meant, each once: a file that is there twice counts once."""
    sources: dict[str, LogSource] = {}
    for path, listed in _files(logs, _LINES if _of_lines(wanted) else _LOGS):
        with replace(wanted, lenient=listed).sparing():
            digest = _digest(path)
            if digest in sources:
                wanted.note(f"{path.name}: the same as {sources[digest].path.name}; it counts once")
                continue
            sources[digest] = LogSource(path, _format(path, wanted), digest, listed)
    return list(sources.values())


def _of_lines(wanted: LogHints) -> bool:
    """Whether it was said what lines of one's own have for our names."""
    return bool(set(wanted.fields) - {"cluster"})


def _files(logs: Sequence[str | Path], patterns: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    """The files, and whether a folder has them."""
    for log in logs:
        path = Path(log)
        if not path.is_dir():
            yield path, False
            continue
        named = sorted({file for pattern in patterns for file in path.rglob(pattern) if file.is_file()})
        inside = [file for file in named if file.suffix != ".json" or _is_inspect(file)]
        if not inside:
            raise SweepError(
                f"there is no log in '{path}'", f"Name the files; looked for: {', '.join(patterns)}"
            )
        yield from ((file, True) for file in inside)


def _is_inspect(path: Path) -> bool:
    with open_log(path) as file:
        return _INSPECT.match(file.read(1000)) is not None


def _digest(path: Path) -> str:
    with open_log(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # a real file


def _format(path: Path, wanted: LogHints) -> str:
    """Who wrote a log, by its name and its first bytes."""
    if _of_lines(wanted):
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


_SHOWN = 6
_FEW_TASKS = 3


@known_as("evalcube.results")
@dataclass(frozen=True)
class ImportSummary(MadeCube):
    """What an import read."""

    cube: str
    cache: str
    logs: int
    """Logs that were read."""
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    samples: int
    """Samples that the logs have."""
    replies: int
    """Different answers among them."""
    failed: int
    """Samples without an answer or a score."""
    repeated: int
    """Samples that said again what another one said."""
    notes: tuple[str, ...]
    """What a reader of the cube should know."""
    left_out: tuple[str, ...] = ()
    """Logs and samples of folders that are wrong and were left out, and why."""

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return {"schema": "evalcube.import", "schema_version": 1, **asdict(self)}


def import_logs(
    logs: Sequence[str | Path],
    into: str | Path,
    *,
    cache: str | Path | None = None,
    data: str | Path | None = None,
    model: str | None = None,
    task: str | None = None,
    score: str | None = None,
    map: str | Mapping[str, str] = "",
    correct_from: float | None = None,
    subscribers: Sequence[Subscriber] = (),
) -> ImportSummary:
    """Import the logs of other tools into a cube.

    Nothing is written unless all logs that are named are valid. Invalid logs in a directory are left out and listed.

    Parameters
    ----------
    logs
        Paths of logs, or of directories, which stand for all logs in them.
    into
        Address of the new cube; it must not exist yet.
    cache
        Where to put the replies; default: beside the cube, with its name and the ending ``.replies``.
    data
        Directory for the questions; default: beside the cube, with its name and the ending ``.data``.
    model, task
        Names of the model and the task, instead of the logs' own.
    score
        Which of several scores counts; for lm-eval, ``METRIC`` or ``METRIC,FILTER``. Default: the log's first.
    map
        For JSON lines of your own: your names for evalcube's fields, such as ``prompt=question,correct=score``, or a
        mapping. For logs of Inspect and lm-eval, only ``cluster=FIELD``: the field of a sample's metadata or document
        that is equal in related questions. Default: evalcube's names.
    correct_from
        Lowest score, from 0 to 1, that counts as right; default: scores must be 0 or 1.
    subscribers
        Functions that are called with each event (see `evalcube.events`); default: none.

    Returns
    -------
    ImportSummary
        What was read, and what was new.

    Raises
    ------
    SweepError
        If a log is wrong, contradicts another one, or no answer has a score.
    StorageError
        If something is at `into`, or the cube or the cache cannot be written.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.import_logs(["answers.jsonl"], "imported.zarr").models
    ('mine',)
    """
    wanted, announcer = LogHints(model, task, score, parse_map(map)), Announcer(subscribers)
    folder = _beside(str(into), data, "data")
    address = str(_beside(str(into), cache, "replies"))
    if Cube.exists(into):
        raise CubeExistsError(
            "cannot import into it: something is already there",
            str(into),
            "Choose another address: all logs at once make one cube, and `evalcube merge` joins cubes.",
        )
    with Collection(Scale(correct_from)) as collection:
        for source in (sources := find_sources(logs, wanted)):
            _collect_samples(source, collection, wanted, announcer)
        if not collection.asked:
            why = f" ({next(iter(wanted.left_out))})" if wanted.left_out else ""
            raise SweepError(f"the logs have no samples{why}", "Give logs that have some")
        _note_setups(collection, wanted)
        table = collection.table()
        failed = int((table[:, 4] != REPLIED).sum())
        if failed == len(table):
            causes = ", ".join(collection.causes)
            raise SweepError(
                f"the logs have {failed:,} samples and no answer with a score ({causes}): there is nothing to import",
                "Give logs with scored answers; of files of no known tool, `map` says which field has the score",
            )
        plan, targets = import_plan(collection, write_data(collection, Path(folder)), table)
        targets.refuse_too_many()
        notes = {"name": _title(str(into), plan.task_names), **_notes(plan, address, sources)}
        with closing(open_cache(address)) as store:
            store_replies(plan, collection, table, store)
            remember_run(
                create_cube(str(into), plan, targets, collection, table, store, notes),
                {"cache": notes["cache"]},
            )
        return ImportSummary(
            str(into),
            address,
            len(sources),
            plan.labels,
            plan.task_names,
            collection.samples,
            len(table) - failed,
            failed,
            collection.repeated,
            tuple(wanted.notes),
            tuple(wanted.left_out),
        )


def _collect_samples(
    source: LogSource, collection: Collection, wanted: LogHints, announcer: Announcer
) -> None:
    before, clustered = collection.samples, "cluster" not in wanted.fields
    hints = replace(wanted, lenient=source.listed)
    with hints.sparing():
        try:
            for sample in READERS[source.format](source.path, hints):
                with hints.sparing():
                    collection.add(sample)
                    clustered |= bool(sample.question.cluster)
                    announcer.count("samples read", collection.samples)
        except RecursionError:  # it could just be parsed
            raise log_error(str(source.path), "it is nested too deep", "Leave this log out") from None
    if collection.samples == before:
        wanted.note(f"{source.path.name}: it has no samples")
    elif not clustered:
        field = wanted.fields["cluster"]
        wanted.note(f"{source.path.name}: no line has '{field}', which is to be the cluster")


def _note_setups(collection: Collection, wanted: LogHints) -> None:
    """Say where models were asked the same questions in different ways."""
    for key, questions in collection.tasks.items():
        if len(questions.setups) > 1:
            names = [name or json.dumps(setup)[:60] for setup, name in questions.setups.items()]
            shown = "; ".join(dict.fromkeys(names[:_SHOWN]))
            wanted.note(f"task {key.task}: asked in {len(questions.setups)} different ways ({shown})")


def _beside(into: str, address: str | Path | None, kind: str) -> Path | str:
    """Where the questions or replies of a cube go: where it is said, else beside it."""
    if address is not None:
        return address
    if not is_directory(into):
        name = "cache" if kind == "replies" else kind
        raise SweepError(
            f"`{name}` is missing: the {kind} of cube '{into}' need a place", "Give one, as its sweep would"
        )
    directory = directory_of(into)
    return directory.with_name(f"{directory.name.removesuffix('.zarr')}.{kind}")


def _title(into: str, tasks: Sequence[str]) -> str:
    """What results are about: their tasks, or the cube's name where these are many."""
    name = Path(into.rstrip("/")).name.removesuffix(".zarr")
    return ", ".join(tasks) if len(tasks) <= _FEW_TASKS else f"{name}: {len(tasks)} tasks"


def _notes(plan: Plan, cache: str, sources: Sequence[LogSource]) -> dict[str, Any]:
    """What whoever opens the cube should know: where its questions and replies are, and of which logs it was made."""
    logs = [
        {"name": source.path.name, "format": source.format, "sha256": source.digest} for source in sources
    ]
    files = {digest: str(Path(path).absolute()) for digest, path in plan.files.items()}
    return {"cache": absolute(cache), IMPORTED: logs, "files": files}
