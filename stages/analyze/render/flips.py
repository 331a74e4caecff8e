"""Questions that two evaluations answered differently, as tables and as a comment on a merge request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evalcube.stages.analyze.formulas.design import WEIGHING
from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.labelled.pairing import Pair
from evalcube.stages.analyze.render.rows import PlainRow
from evalcube.stages.analyze.render.table import Column, TableSpec, markdown_text
from evalcube.stages.analyze.render.table_specs import p_text, pair_conclusion
from evalcube.stages.analyze.render.text import ABSENT, CODE_MOST, code, number, percent, printable, sentence

NO_ANSWER = {"truncated": "truncated", "invalid": "no answer read", "refused": "refused"}
"""Outcomes that are shown in the place of an answer."""


def totals(pair: Pair | None, counts: Sequence[PlainRow], names: tuple[str, str]) -> list[str]:
    """Summarise the changes, how many of them may be noise, and the questions not answered by both."""
    total = {
        name: sum(row[name] for row in counts)
        for name in ("questions", "lost", "won", "first_alone", "second_alone", "unanswered")
    }
    first, second = names
    if pair is None:
        sentences = [f"No question was answered by both '{first}' and '{second}'."]
    else:
        changed = f"{total['lost'] + total['won']:,} of {total['questions']:,} questions changed"
        sentences = [
            f"{changed} from '{first}' to '{second}': {total['lost']:,} lost, {total['won']:,} won.",
            pair_conclusion(pair),
        ]
        if pair.overall.questions < total["questions"]:
            unrated = total["questions"] - pair.overall.questions
            sentences.append(
                f"{unrated:,} of the questions are in no tier, and left out of the overall test."
            )
        matched = min(total["lost"], total["won"])
        if matched:
            sentences.append(
                "Chance alone flips questions both ways, so take single questions as examples only; the p-value says "
                "whether the difference is more than chance."
            )
    gaps = [
        (total["first_alone"], f"asked only of '{first}'"),
        (total["second_alone"], f"asked only of '{second}'"),
        (total["unanswered"], "asked of both, and not yet answered by both"),
    ]
    uncompared = [f"{count:,} {words}" for count, words in gaps if count]
    if uncompared:
        sentences.append(f"Not compared, as not answered by both: {'; '.join(uncompared)}.")
    return sentences


def task_spec(rows: Sequence[PlainRow], names: tuple[str, str]) -> TableSpec:
    """Counts by task, with the test of each."""
    columns = [
        Column("task", lambda row: plain(row["task"]), right=False, name=True),
        Column("lost", lambda row: number(row["lost"])),
        Column("won", lambda row: number(row["won"])),
        Column("questions", lambda row: number(row["questions"])),
        Column("first", lambda row: percent(row["first_rate"]), 1),
        Column("second", lambda row: percent(row["second_rate"]), 1),
        Column("p (Holm)", lambda row: p_text(row["p_holm"])),
        Column("not compared", lambda row: number(_alone(row)) if _alone(row) else ABSENT, 2),
    ]
    first, second = names
    notes = (
        (
            f"lost: '{first}' was right more often; won: '{second}' was. p: p-value for equal shares of right answers, "
            "adjusted for all tasks (Holm)."
        ),
        f"first: share of right answers of '{first}'; second: of '{second}'; {WEIGHING['tasks'].partition('; ')[2]}.",
    )
    return TableSpec(tuple(columns), rows, notes, lambda row: not row["questions"], {notes[1]: "first"})


def point_spec(rows: Sequence[PlainRow], notes: tuple[str, ...] = ()) -> TableSpec:
    """Points with changed questions; ``shown`` has the parameters in which the points of the task differ."""
    columns = [
        Column("task", lambda row: plain(row["task"]), right=False, name=True),
        Column("point", lambda row: assignments(row["shown"]), right=False, name=True),
        Column("tier", lambda row: plain(", ".join(row["tiers"])) or ABSENT, 1, right=False),
        Column("lost", lambda row: number(row["lost"])),
        Column("won", lambda row: number(row["won"])),
        Column("questions", lambda row: number(row["questions"])),
    ]
    return TableSpec(tuple(columns), rows, notes)


def assignments(params: Mapping[str, object]) -> str:
    """Parameters as they are written on a command line; `ABSENT` without any."""
    return plain(" ".join(f"{name}={value}" for name, value in params.items())) or ABSENT


def answer_text(reply: PlainRow) -> str:
    """The answer of a reply, or what became of it."""
    outcome = NO_ANSWER.get(reply["status"])
    if outcome is None:
        absent = f"{reply['status']}, reply not at hand"
        return absent if reply["answer"] is None else plain(str(reply["answer"]))
    tail = plain((reply["response"] or "")[-CODE_MOST:])
    return f"{outcome}: …{tail}" if tail else outcome


def _line_or_absent(text: str | None) -> str:
    """Return a text on one line; `ABSENT` if it cannot be made here, as without the task's package."""
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
        "point": assignments(row["shown"]),
        "trial": str(row["trial"]) if not row["row_id"] else f"{row['trial']} ({plain(row['row_id'])})",
        "question": _line_or_absent(row["prompt"]),
        "reference": _line_or_absent(row["reference"]),
        "first": shares["first"] + answer_text(row["first"]),
        "second": shares["second"] + answer_text(row["second"]),
    }


def flips_markdown(
    head: Sequence[str],
    tables: Sequence[TableSpec],
    flips: Sequence[PlainRow],
    names: tuple[str, str],
    notes: Sequence[str],
) -> str:
    """Return all of it as a comment on a merge request, in which no mention, link, image or HTML comes to life."""
    lines = [f"### {' → '.join(code(name, cell=False) for name in names)}", ""]
    lines += [*(f"- {sentence(text)}" for text in head), ""]
    lines += map(markdown_text, [*tables, *([_flip_spec(flips, names)] if flips else [])])
    return "\n".join([*lines, *(f"{sentence(note)}\n" for note in notes)])


def _flip_spec(flips: Sequence[PlainRow], names: tuple[str, str]) -> TableSpec:
    def cell(name: str) -> Callable[[PlainRow], str]:
        return lambda row: printable(flip_cells(row)[name], CODE_MOST)

    heads = [*list(flip_cells(flips[0]))[:-2], *names]
    columns = zip(heads, flip_cells(flips[0]), strict=True)
    return TableSpec(tuple(Column(head, cell(name), right=False) for head, name in columns), flips)


def _alone(row: PlainRow) -> int:
    return int(row["first_alone"] + row["second_alone"] + row["unanswered"])
