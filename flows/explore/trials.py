"""The third level: trials as pages of a table, one of them whole, and the same question put to other models."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evalcube.flows.errors import SweepError
from evalcube.flows.explore.explored import Explored, conditions
from evalcube.flows.explore.query import Answerer, Json, Query
from evalcube.flows.read.reader import Reader, status_name
from evalcube.flows.read.trials.read import Trials
from evalcube.flows.read.trials.search import Search
from evalcube.stages.generate.answers.passages import passages
from evalcube.stages.generate.base import Cell
from evalcube.stages.reply.status import Status

_LONGEST = 1000
"""Characters of an answer that is looked for."""
_TAIL = 20_000
"""Characters at the end of a reply in which it is looked for where no place is marked as the answer's."""
_GAP = r"(?>\s+)"
_WHOLE = re.compile(r"[-+]?\d+")


def answer_place(reply: str, parsed: str | None) -> tuple[int, int] | None:
    """Return where an answer stands in its reply, in whole words, whatever their case; None if worded otherwise.

    Start and end are in UTF-16 units, as JavaScript counts them. Passages that readers look at come first, in their
    order; then the end of the reply, of which the last occurrence counts.

    Examples
    --------
    >>> answer_place("A guess. Answer: a", "A")
    (17, 18)
    >>> answer_place("Answer: The  Hague", "the hague")
    (8, 18)
    """
    answer = parsed or ""
    if len(answer) > _LONGEST or not answer.strip():
        return None
    words = _GAP.join(map(_word_pattern, answer.split()))
    pattern = re.compile(rf"(?<!\w)(?<!\d[.,]){words}(?!\w|[.,]\d)", re.IGNORECASE)
    match = None
    for passage in passages(reply):
        start = reply.rfind(passage.text) if passage.text else -1
        if start >= 0 and (match := pattern.search(reply, start, start + len(passage.text))):
            break
    if match is None:
        for match in pattern.finditer(reply, max(0, len(reply) - _TAIL)):  # noqa: B007 - the last one is used
            pass
    return (
        None if match is None else (_utf16_units(reply[: match.start()]), _utf16_units(reply[: match.end()]))
    )


def _word_pattern(word: str) -> str:
    """Return a pattern of a word; a whole number may have commas and another minus sign."""
    if not _WHOLE.fullmatch(word):
        return re.escape(word)
    return ",?".join("[-−]" if char == "-" else re.escape(char) for char in word)


def _utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


IDENTITY = ("cube", "eval_id", "task", "params", "trial", "repeat", "status")
"""Columns that every row has: which trial it is, and how it ended."""
BRIEF = ("tokens", "latency", "prompt", "reference", "answer", "response")

MOST_ROWS, SECONDS = 200, 2.0
"""Rows of a page, and how long texts are searched for one."""
_LONGEST_CELL, LONGEST_TEXT = 400, 400_000
"""Characters of a text in a table, and on the page of its trial."""
MOST_MODELS = 500
MOST_COUNTED = 1_000_000
"""Trials up to which a page tells how many of them fulfil its filters."""


class TrialPlace(NamedTuple):
    """Which trial is meant."""

    cube: int
    model: int
    task: int
    slot: int
    trial: int
    repeat: int


def page(explored: Explored, query: Query) -> Json:
    """Some rows of the table of trials, from ``offset`` on; with a search, as many as are found within `SECONDS`.

    ``next`` is the offset of the row behind the last one that was looked at, or null if there is none.
    """
    offset, limit = query.number("offset", 0, 0, 10**15), query.number("limit", 50, 1, MOST_ROWS)
    within = query.all("in") or ("prompt", "response", "reasoning")
    search = Search.of(query.one("grep") or None, query.one("regex") or None, within)
    names = [name for name in query.one("columns").split(",") if name] or BRIEF
    ids = ",".join(_eval_id(explored, label) for label in query.all("model"))
    table = explored.trials(
        where=(*conditions(query), *([f"eval_id={ids}"] if ids else ())),
        status=query.all("status"),
        sort=None if search else query.one("sort") or None,
        offset=offset,
        limit=None if search else limit + 1,
    )
    by_name = {column.name: column for column in table.columns}
    wanted = dict.fromkeys([*IDENTITY, *names, *(search.within if search else ())])
    shown = table.with_columns([by_name[name] for name in wanted if name in by_name])
    if search is None:
        rows = list(shown.rows())
        after = offset + limit if len(rows) > limit else None
        numbered = [(offset + index, row) for index, row in enumerate(rows[:limit])]
    else:
        numbered, after = _search_rows(shown, search, offset, limit)
    by_id = explored.label_of()
    return {
        "columns": [
            {"name": column.name, "kind": column.kind, "source": column.source, "meaning": column.meaning}
            for column in table.columns
        ],
        "rows": [_row(explored, number, row, names, by_id) for number, row in numbered],
        "offset": offset,
        "next": after,
        "count": None if search or table.planned_trials > MOST_COUNTED else table.count(),
        "notes": [*shown.notes, *(search.notes if search else ())],
    }


def whole(explored: Explored, query: Query) -> Json:
    """All that is known of one trial: question, reply, answer, outcome, opinions of judges."""
    return document_of(explored, _place(explored, query))


def document_of(explored: Explored, trial: TrialPlace) -> Json:
    """`whole` of the trial at a place."""
    reader = reader_of(explored, trial.cube)
    document = reader.view(*trial[1:]).to_dict()
    cell = reader.plan.tasks[trial.task].cells[trial.slot]
    mark = answer_place(document["response"] or "", document["parsed"])
    cut = _cut(document, ("response", "reasoning"))
    for message in document["messages"]:
        cut = _cut(message, ("content",)) or cut
    evaluation = reader.plan.evaluations[trial.model]
    return {
        **document,
        "label": explored.label_of()[evaluation.eval_id],
        "cube": trial.cube,
        "address": explored.addresses[trial.cube],
        "sampler": evaluation.sampler.name,
        "template": evaluation.template.name,
        "tiers": list(cell.tiers),
        "difficulty": float(cell.cell.difficulty),
        "replies": reader.cache() is not None,
        "cut": cut,
        "answer_place": None if mark is None or mark[1] > LONGEST_TEXT else mark,
    }


def same(explored: Explored, query: Query) -> Json:
    """How every evaluation did on the same question; where several cubes have it, as the first that has finished it."""
    trial = _place(explored, query)
    asked = reader_of(explored, trial.cube).plan.tasks[trial.task].cells[trial.slot].cell
    by_label: dict[str, Json] = {}
    for number in range(len(explored.cubes)):
        for row in _same_in(explored, number, asked, trial):
            if by_label.get(row["label"], {"status": "missing"})["status"] == "missing":
                by_label[row["label"]] = row
    return {"rows": list(by_label.values())}


def _same_in(explored: Explored, number: int, asked: Cell, trial: TrialPlace) -> Iterator[Json]:
    """How each evaluation of a cube did on a question; nothing if the cube does not ask it."""
    reader = reader_of(explored, number)
    plan, labels = reader.plan, explored.label_of()
    cells = [[planned.cell.id for planned in task.cells] for task in plan.tasks]
    spots = [(task, row.index(asked.id)) for task, row in enumerate(cells) if asked.id in row]
    if not spots or trial.trial >= plan.trials or trial.repeat >= plan.repeats:
        return
    at = (*spots[0], 0, 0)
    spans = slice(trial.trial, trial.trial + 1), slice(trial.repeat, trial.repeat + 1)
    for model, evaluation in enumerate(plan.evaluations[:MOST_MODELS]):
        read = reader.cube.read_span(model, *spans, ["status", "tokens"])
        yield {
            "label": labels[evaluation.eval_id],
            "cube": number,
            "status": status_name(Status(int(read["status"][at])), asked),
            "tokens": int(read["tokens"][at]),
        }


def _search_rows(
    table: Trials, search: Search, offset: int, limit: int
) -> tuple[list[tuple[int, dict[str, Any]]], int | None]:
    """Rows in which something is found with their numbers, and the number behind the last row that was read."""
    matches: list[tuple[int, dict[str, Any]]] = []
    until = time.monotonic() + SECONDS
    for number, row in enumerate(table.rows(), offset):
        if any(search.finds([[row[name]] for name in search.within])):
            matches.append((number, row))
        if len(matches) == limit or time.monotonic() > until:
            return matches, number + 1
    return matches, None


def _row(
    explored: Explored, number: int, row: dict[str, Any], names: Sequence[str], by_id: Mapping[str, str]
) -> Json:
    return {
        "n": number,
        "cube": explored.addresses.index(row["cube"]),
        "label": by_id.get(row["eval_id"], row["eval_id"]),
        **{name: row[name] for name in IDENTITY[2:]},
        **{name: _brief(row[name]) for name in names if name in row},
    }


def _brief(value: Any) -> Any:  # noqa: ANN401 - a cell
    if isinstance(value, list):
        parts = (part.get("content", part) if isinstance(part, dict) else part for part in value[:20])
        value = "; ".join(map(str, parts))
    if isinstance(value, str) and len(value) > _LONGEST_CELL:
        return value[: _LONGEST_CELL - 1] + "…"
    return value


def _cut(document: dict[str, Any], names: Sequence[str]) -> bool:
    """Cut texts that no page could show, in place; returns whether there were any."""
    long = [name for name in names if len(document[name] or "") > LONGEST_TEXT]
    for name in long:
        document[name] = document[name][:LONGEST_TEXT]
    return bool(long)


def _place(explored: Explored, query: Query) -> TrialPlace:
    """The trial that a query names."""
    eval_id = _eval_id(explored, query.one("evaluation"))
    trial, repeat = query.number("trial", 0, 0, 10**12), query.number("repeat", 0, 0, 10**9)
    cubes = range(len(explored.cubes))
    if query.one("cube"):
        cubes = range(number := query.number("cube", 0, 0, len(cubes) - 1), number + 1)
    refused: SweepError | None = None
    for number in cubes:
        reader = reader_of(explored, number)
        ids = [row.eval_id for row in reader.plan.evaluations]
        if eval_id not in ids:
            continue
        try:
            task, slot = reader.point(query.one("asked"), query.one("point") or None)
        except SweepError as error:  # another cube may have it
            refused = error
            continue
        return TrialPlace(number, ids.index(eval_id), task, slot, trial, repeat)
    raise refused or SweepError("no cube has this trial", "Choose one from the table of trials")


def reader_of(explored: Explored, number: int) -> Reader:
    """One of the cubes, with its plan and its cache."""
    return explored.cached(("reader", number), lambda: Reader(explored.cubes[number], explored.cache))


def _eval_id(explored: Explored, label: str) -> str:
    return list(explored.label_of())[explored.model(label)]


ENDPOINTS = (Answerer("trials", page), Answerer("trial", whole), Answerer("same", same))
