"""Writes what the explorer shows of cubes as files: a page that opens from disk, or from any web server."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from evalcube import EvalcubeError
from evalcube.flows.config.near_names import checked_option
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.explore.answers import ENDPOINTS, ask
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.overview import WRONG
from evalcube.flows.explore.query import Json
from evalcube.flows.explore.server import PLOTLY, POLICY, own_files, plotly_file
from evalcube.flows.explore.trials import TrialPlace, document_of, reader_of
from evalcube.flows.read.outputs import new_folder
from evalcube.flows.read.sides import cube_names
from evalcube.flows.read.trials.escaping import jsonable
from evalcube.flows.read.trials.read import Trials
from evalcube.flows.state.records import read_notes
from evalcube.stages.generate.stream import canonical_json
from evalcube.storage.errors import UnsupportedUrlError
from evalcube.storage.urls import absolute, redacted, resolved

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]*", re.IGNORECASE)
_NOTES = frozenset({"notes", "warnings", "warning", "causes", "remedy"})
"""Sentences of the program, which may name an endpoint."""

_TEXTS = frozenset({"prompt", "response", "reasoning", "content", "parsed", "answer", "reference"})
"""Of questions and replies, which stay as they are, but for the addresses of the cubes and caches at hand."""


class PathScrubber:
    """Replaces addresses and paths in answers: of cubes, of the caches that their notes name, of the home folder."""

    def __init__(self, explored: Explored, caches: tuple[str, ...] = ()) -> None:
        names = cube_names(explored.cubes)
        self._names = dict(zip(explored.addresses, names, strict=True))
        cubes = zip(explored.cubes, names, strict=True)
        spelled = {form: name for cube, name in cubes for form in _spellings(cube)}
        spelled |= {form: "the cache" for address in caches for form in _spellings(address)}
        # A whole path also where only its folder would be found, and no bare name, which may be any word.
        paths = [(form, name) for form, name in spelled.items() if "/" in form]
        self._spelled = sorted(paths, key=lambda pair: -len(pair[0]))

    def __call__(self, value: Any, key: str = "") -> Any:  # noqa: ANN401 - any JSON value
        """Return the value without addresses and paths."""
        if isinstance(value, Mapping):
            return {name: self(item, str(name)) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self(item, key) for item in value]
        if not isinstance(value, str):
            return value
        if key == "running":  # which names the machine
            return "at work"
        if value in self._names:
            return self._names[value]
        for form, name in self._spelled:
            value = value.replace(form, name)
        home = str(Path.home())
        if key not in _TEXTS and len(home) > 1:
            value = re.sub(re.escape(home) + r"(?![\w.-])", "~", value)
        return _URL.sub("an address", value) if key in _NOTES else value


def _spellings(address: str) -> set[str]:
    spellings = {str(address), redacted(address)}
    with suppress(UnsupportedUrlError):
        spellings |= {absolute(address), resolved(address)}
    return {spelling.rstrip("/") for spelling in spellings}


Kept = Literal["sample", "wrong", "all", "none"]
"""Which trials a bundle holds: some of each outcome, those without a right answer, all that have ended, or none."""

MOST = 20_000
_SAMPLED, _LOOKED = 3, 2_000
"""Trials of each outcome that a sample has of a model and a task, and how many of both are looked through for it."""
_TOGETHER = 20
"""Whole trials in a file."""


@dataclass(frozen=True)
class Bundle:
    """What was written."""

    folder: str
    files: int
    size: int
    """Bytes."""
    trials: int
    notes: tuple[str, ...]


def bundle(
    cubes: Sequence[str],
    output: str | Path,
    *,
    trials: Kept = "sample",
    most: int = MOST,
    cache: str | None = None,
    subscribers: Sequence[Subscriber] = (),
) -> Bundle:
    """Write a folder with the explorer's page and all that it shows of some cubes."""
    checked_option("trials", trials, get_args(Kept))
    plotly = plotly_file()
    explored = Explored(cubes, cache)
    with new_folder(Path(output), "write the bundle") as folder:
        for path, data in own_files().items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        shutil.copyfile(plotly, folder / PLOTLY)
        page = folder / "index.html"
        page.write_text(_page(page.read_text("utf-8")), "utf-8")
        writer = _Scripts(folder / "data", PathScrubber(explored, _caches(explored)))
        announcer = Announcer(subscribers)
        _write_answers(writer, explored, announcer)
        rows, notes = _write_trials(writer, explored, trials, most, announcer)
        writer.manifest(
            {
                "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
                "trials": rows,
                "together": _TOGETHER,
                "notes": notes,
                "files": writer.names,
            }
        )
        files = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
    return Bundle(str(output), len(files), size, sum(row["rows"] for row in rows), tuple(notes))


def _caches(explored: Explored) -> tuple[str, ...]:
    """Addresses of the caches that the cubes were made with, and of the one that was given."""
    noted = [read_notes(cube.records).get("cache") for cube in explored.opened]
    return tuple(address for address in (explored.cache, *noted) if isinstance(address, str) and address)


def _page(html: str) -> str:
    """The page, with the scripts that read files, and the policy that a server would send."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    scripts = '<script defer src="data/manifest.js"></script>\n<script defer src="bundled.js"></script>'
    return html.replace("<!-- policy -->", policy).replace("<!-- bundle -->", scripts)


class _Scripts:
    """Writes answers as scripts: from disk, a page may load scripts and nothing else."""

    def __init__(self, folder: Path, scrub: PathScrubber) -> None:
        folder.mkdir()
        self._folder, self._scrub = folder, scrub
        self.names: dict[str, str] = {}
        """Files by what is asked."""

    def add(self, key: str, document: object) -> None:
        """Write the answer to a question."""
        name = f"{len(self.names):05d}.js"
        # In ASCII, so that no text is anything but a text, whatever it says.
        answer = json.dumps(self._scrub(jsonable(document)), allow_nan=False)
        (self._folder / name).write_text(f"explorer.receive({json.dumps(key)}, {answer});\n", "ascii")
        self.names[key] = name

    def manifest(self, document: Json) -> None:
        """Write what there is."""
        (self._folder / "manifest.js").write_text(
            f"explorer.bundle = {json.dumps(self._scrub(document))};\n", "ascii"
        )


def _write_answers(writer: _Scripts, explored: Explored, announcer: Announcer) -> None:
    for endpoint in ENDPOINTS.values():
        for query in endpoint.bundled(explored):
            try:
                document = ask(explored, endpoint.name, query)
            except EvalcubeError:  # a part of which nothing is planned: the page says that there is nothing
                continue
            writer.add(f"{endpoint.name}?{query.key}", document)
            announcer.count("answers", len(writer.names))


def _write_trials(
    writer: _Scripts, explored: Explored, kept: Kept, most: int, announcer: Announcer
) -> tuple[list[Json], list[str]]:
    """Write the trials of each evaluation and task; returns what there is of each, and what a reader should know."""
    if kept == "none":
        return [], []
    table = explored.trials(
        status=WRONG if kept == "wrong" else (),
        columns=("params", "trial", "repeat", "status", "tiers", "tokens", "latency", "difficulty"),
    )
    labels = explored.label_of()
    readers = [reader_of(explored, number) for number in range(len(explored.cubes))]
    groups = [
        (cube, model, task)
        for cube, reader in enumerate(readers)
        for model in range(len(reader.plan.evaluations))
        for task in range(len(reader.plan.tasks))
    ]
    share = max(1, most // max(1, len(groups)))
    written, cut, done = [], 0, 0
    for cube, model, task in groups:
        reader = readers[cube]
        rows, more = _chosen(table.part(cube, model, task), kept, share)
        if not rows:
            continue
        cut += more
        label = labels[reader.plan.evaluations[model].eval_id]
        entry = reader.plan.tasks[task]
        slots = {canonical_json(planned.cell.plain_params): slot for slot, planned in enumerate(entry.cells)}
        places = [
            TrialPlace(cube, model, task, slots[row["params"]], row["trial"], row["repeat"]) for row in rows
        ]
        name = f"{cube}-{model}-{task}"
        for number, begin in enumerate(range(0, len(rows), _TOGETHER)):
            documents = [document_of(explored, trial) for trial in places[begin : begin + _TOGETHER]]
            writer.add(f"texts?{name}-{number}", documents)
            for row, document in zip(rows[begin:], documents, strict=False):
                row |= {"reference": document["reference"], "answer": document["parsed"]}
            done += len(documents)
            announcer.count("trials", done)
        same = {"cube": cube, "label": label, "task": entry.label}
        writer.add(f"rows?{name}", [{**same, **row, "n": trial} for trial, row in enumerate(rows)])
        written.append({**same, "name": name, "rows": len(rows)})
    notes = {
        "sample": [f"Of each model and task there are up to {_SAMPLED} trials of each outcome."],
        "wrong": ["Only trials without a right answer are here."],
        "all": [],
    }[kept]
    notes += dict.fromkeys(f"{reason}." for reader in readers for reason in reader.plan.not_run)
    if cut:
        notes.append(f"{cut:,} models and tasks have more trials than the {share:,} that are here of each.")
    if done and all(reader.cache() is None for reader in readers):
        notes.append("No cache was at hand, so that replies are not here.")
    return written, notes


def _chosen(table: Trials, kept: Kept, share: int) -> tuple[list[dict[str, Any]], bool]:
    """The rows of a model and a task that a bundle has, and whether there are more that it would have."""
    rows = list(islice(_sample_rows(table) if kept == "sample" else table.rows(), share + 1))
    return rows[:share], kept != "sample" and len(rows) > share


def _sample_rows(table: Trials) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for row in islice(table.rows(), _LOOKED):
        seen[row["status"]] += 1
        if seen[row["status"]] <= _SAMPLED:
            yield row
