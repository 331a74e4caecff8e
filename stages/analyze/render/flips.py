"""Questions that two evaluations answered differently, as tables and as a comment on a merge request."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.labelled.pairing import Pair
from evalcube.stages.analyze.render.rows import PlainRow
from evalcube.stages.analyze.render.table import Column, TableSpec
from evalcube.stages.analyze.render.table_specs import p_text, pair_conclusion
from evalcube.stages.analyze.render.text import ABSENT, CODE_MOST, code, number, percent, sentence

NO_ANSWER = {"truncated": "truncated", "invalid": "no answer read", "refused": "refused"}
"""Outcomes that are shown in the place of an answer."""


def totals(pair: Pair | None, counts: Sequence[PlainRow], names: tuple[str, str]) -> list[str]:
    """What changed, what of it may be noise, and what was not asked of both: sentences, the first thing to be read.

    Parameters
    ----------
    pair
        The comparison of all tasks; None if nothing was answered by both.
    counts
        Of the tasks, as `evalcube.flows.read.trials.flips.Count` has them.
    names
        Of the first and the second side.
    """
    total = {
        name: sum(row[name] for row in counts)
        for name in ("questions", "lost", "won", "first_alone", "second_alone", "unanswered")
    }
    first, second = names
    if pair is None:
        found = [f"No question was answered by both, {first} and {second}."]
    else:
        changed = f"{total['lost'] + total['won']:,} of {total['questions']:,} questions changed"
        found = [
            f"{changed} from {first} to {second}: {total['lost']:,} lost, {total['won']:,} won.",
            pair_conclusion(pair),
        ]
        matched = min(total["lost"], total["won"])
        if matched:
            found.append(
                f"Noise flips either way alike: {matched:,} lost are matched by {matched:,} won, so read single flips "
                "as examples, and the p value for whether there is more to it."
            )
    gaps = [
        (total["first_alone"], f"only {first} was asked"),
        (total["second_alone"], f"only {second} was asked"),
        (total["unanswered"], "were asked of both, and not yet answered by both"),
    ]
    told = [f"{count:,} {words}" for count, words in gaps if count]
    if told:
        found.append(f"Not compared: questions that are not answered by both: {'; '.join(told)}.")
    return found


def task_spec(rows: Sequence[PlainRow], names: tuple[str, str]) -> TableSpec:
    """Counts by task, with the test of each.

    Parameters
    ----------
    rows
        Counts of `evalcube.flows.read.trials.flips.Count`, and ``first_rate``, ``second_rate``, ``p_holm`` of the
        comparison.
    """
    columns = [
        Column("task", lambda row: plain(row["task"]), right=False, name=True),
        Column("lost", lambda row: number(row["lost"])),
        Column("won", lambda row: number(row["won"])),
        Column("questions", lambda row: number(row["questions"])),
        Column("first", lambda row: percent(row["first_rate"]), 1),
        Column("second", lambda row: percent(row["second_rate"]), 1),
        Column("p (Holm)", lambda row: ABSENT if math.isnan(row["p_holm"]) else p_text(row["p_holm"])),
        Column("not in both", lambda row: number(_alone(row)) if _alone(row) else ABSENT, 2),
    ]
    first, second = names
    notes = (
        (
            f"lost: {first} was right more often, won: {second} was. p: that the shares right are the same, adjusted "
            "for all tasks."
        ),
        f"first: share right of {first}, second: of {second}; points weighed as in the first plan.",
    )
    return TableSpec(tuple(columns), rows, notes, lambda row: not row["questions"], {notes[1]: "first"})


def point_spec(rows: Sequence[PlainRow], notes: tuple[str, ...] = ()) -> TableSpec:
    """Points with changed questions; ``shown`` has the parameters in which the points of the task differ."""
    columns = [
        Column("task", lambda row: plain(row["task"]), right=False, name=True),
        Column("point", lambda row: assigned(row["shown"]), right=False, name=True),
        Column("tier", lambda row: plain(", ".join(row["tiers"])) or ABSENT, 1, right=False),
        Column("lost", lambda row: number(row["lost"])),
        Column("won", lambda row: number(row["won"])),
        Column("questions", lambda row: number(row["questions"])),
    ]
    return TableSpec(tuple(columns), rows, notes)


def assigned(params: Mapping[str, object]) -> str:
    """Parameters as they are written on a command line; `ABSENT` without any."""
    return plain(" ".join(f"{name}={value}" for name, value in params.items())) or ABSENT


def said(reply: PlainRow) -> str:
    """The answer of a reply, or what became of it."""
    outcome = NO_ANSWER.get(reply["status"])
    if outcome is None:
        return (
            plain(str(reply["answer"]))
            if reply["answer"] is not None
            else f"{reply['status']}, reply not at hand"
        )
    tail = plain((reply["response"] or "")[-CODE_MOST:])
    return f"{outcome}: …{tail}" if tail else outcome


def _told(text: str | None) -> str:
    """A text on a line; a mark where it cannot be made here, as of a task whose package is not installed."""
    return ABSENT if text is None else plain(text)


def flip_cells(row: PlainRow) -> dict[str, str]:
    """The cells of a changed question by head, as plain text."""
    shares = {
        side: f"{row[side]['right']}/{row['asked']} " if row["asked"] > 1 else ""
        for side in ("first", "second")
    }
    return {
        "": row["change"],
        "task": plain(row["task"]),
        "point": assigned(row["shown"]),
        "trial": str(row["trial"]) if not row["row_id"] else f"{row['trial']} ({plain(row['row_id'])})",
        "question": _told(row["prompt"]),
        "reference": _told(row["reference"]),
        "first": shares["first"] + said(row["first"]),
        "second": shares["second"] + said(row["second"]),
    }


def flips_markdown(
    head: Sequence[str],
    tables: Sequence[TableSpec],
    flips: Sequence[PlainRow],
    names: tuple[str, str],
    notes: Sequence[str],
    tasks: Sequence[str],
) -> str:
    """All of it as a comment on a merge request.

    What models, questions and cubes say stands in code, in which no mention, link, image or HTML comes to life.

    Parameters
    ----------
    head
        Of `totals`.
    tables
        Of `task_spec` and `point_spec`.
    tasks
        Labels of the tasks, which sentences may quote.
    """
    foreign = (*names, *map(plain, tasks))
    heads = ("", "task", "point", "trial", "question", "reference", *map(code, names))
    lines = [
        f"### {code(names[0], cell=False)} → {code(names[1], cell=False)}",
        "",
        *(f"- {coded(text, foreign)}" for text in head),
        "",
    ]
    for table in tables:
        lines += [*_table([column.head for column in table.columns], table.texts()), ""]
        lines += [f"{coded(note, foreign)}\n" for note in table.notes]
    if flips:
        lines += [*_table(heads, [list(flip_cells(row).values()) for row in flips]), ""]
    return "\n".join([*lines, *(f"{coded(note, foreign)}\n" for note in notes)])


def coded(text: str, names: Sequence[str]) -> str:
    """A sentence of ours in Markdown: what it quotes of foreign names is code."""
    known = sorted({name for name in names if name}, key=len, reverse=True)
    if not known:
        return _escaped(text)
    parts = re.split(rf"(?<!\w)({'|'.join(map(re.escape, known))})(?!\w)", text)
    return "".join(
        code(part, cell=False) if place % 2 else _escaped(part) for place, part in enumerate(parts)
    )


def _escaped(text: str) -> str:
    kept = sentence(text)
    return f"{' ' * text.startswith(' ')}{kept}{' ' * (text.endswith(' ') and bool(kept))}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
        *(f"| {' | '.join(map(_cell, row))} |" for row in rows),
    ]


def _cell(text: str) -> str:
    """A number as it is, all other text as code."""
    return text if re.fullmatch(r"[-+<–]?[0-9.,]*( %)?|lost|won", text) else code(text)


def _alone(row: PlainRow) -> int:
    return int(row["first_alone"] + row["second_alone"] + row["unanswered"])
