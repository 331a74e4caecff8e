"""Decides by a policy whether a treatment may replace the control, for `verdict --policy`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from evalcube.flows.cli.options import cubes_and_models, part_of
from evalcube.flows.cli.output import outlived, safe, show, show_json
from evalcube.flows.cli.tables import show_table, warn

if TYPE_CHECKING:
    from evalcube.flows.read.policy import Check, PolicyVerdict
    from evalcube.stages.analyze.render.table import TableSpec

_MEANING = {
    "GO": "no critical or supporting rule is broken",
    "REVIEW": "a supporting rule is broken: a person has to decide",
    "NO-GO": "a critical rule is broken, or what a rule needs was not measured",
}


def decide_by_policy(
    path: str,
    arguments: Sequence[str],
    named: Sequence[str],
    others: Sequence[str],
    *,
    as_json: bool,
    markdown: bool,
) -> None:
    """Print what the policy says, and end with its exit code.

    Parameters
    ----------
    path
        File with the policy.
    arguments
        A cube; then a second one, or names of evaluations.
    named
        The control and the treatment, as far as flags name them.
    others
        Flags that were given and say nothing to a policy.
    as_json, markdown
        Whether to print JSON or Markdown; at most one of them.

    Raises
    ------
    SweepError, ConfigError
        If the policy is wrong, or the two cannot be compared.
    typer.Exit
        With exit code 0 for GO, else 1.
    """
    from evalcube.flows.config.load import load_policy
    from evalcube.flows.errors import SweepError
    from evalcube.flows.read.policy import policy_verdict

    if others:
        raise SweepError(
            f"{', '.join(others)}: not with --policy, whose rules say all", "Leave one of the two out"
        )
    policy = load_policy(path)
    cubes, models = cubes_and_models(arguments[0], arguments[1:])
    found = policy_verdict(policy, cubes, [*named, *models], part_of())
    with outlived():
        if as_json:
            show_json(found.to_dict())
        else:
            _print(found, markdown=markdown)
    warn(found.warnings)
    raise typer.Exit(found.exit_code)


def _print(found: PolicyVerdict, *, markdown: bool) -> None:
    meaning = _MEANING[found.decision]
    broken = [
        f"{check.level}, {_place(check)}: {_reason(check, found.missing)}"
        for check in found.checks
        if not check.passed
    ]
    if markdown:
        show(_markdown(found, meaning, broken))
        return
    head = f"{found.decision}: {found.treatment} in the place of {found.control}"
    for line in (head, f"  {meaning}", *(f"  {text}" for text in broken), ""):
        show(safe(line))
    show_table(_table(found))


def _markdown(found: PolicyVerdict, meaning: str, broken: Sequence[str]) -> str:
    """The verdict as a comment on a merge request; what foreign names say stands in code."""
    from evalcube.stages.analyze.render.table import markdown_text
    from evalcube.stages.analyze.render.text import code, sentence

    names = [code(name, cell=False) for name in (found.treatment, found.control)]
    lines = [f"### {found.decision}: {' in the place of '.join(names)}", "", sentence(meaning), ""]
    lines += [f"- {sentence(text)}" for text in broken] + [""] * bool(broken)
    return "\n".join([*lines, markdown_text(_table(found))]).rstrip("\n")


def _place(check: Check) -> str:
    return " ".join(filter(None, (check.task or "all tasks", f"({check.tier})" if check.tier else "")))


def _reason(check: Check, missing: float) -> str:
    if check.outcome == "missing":
        return _lacking(check, missing)
    drop, limit = 100 * check.drop, 100 * check.limit
    span = f"95 %: {100 * check.lower:+.1f} to {100 * check.upper:+.1f}"
    if check.outcome == "unsure":
        return (
            f"dropped by {drop:.1f} points, within {limit:.1f}, but more is not excluded ({span}): ask more"
        )
    noise = "" if check.lower > check.limit else "; so few questions do not exclude a smaller drop"
    return f"dropped by {drop:.1f} points, more than {limit:.1f} ({span}){noise}"


def _lacking(check: Check, missing: float) -> str:
    if not check.questions and not check.lacking:
        return "not measured: neither side has such questions, or only the treatment"
    allowed = f", {100 * missing:g} % are allowed" if missing else ""
    return f"{check.lacking:,} of the control's questions are not answered by both{allowed}"


def _table(found: PolicyVerdict) -> TableSpec:
    from evalcube.stages.analyze.labelled.axes import plain
    from evalcube.stages.analyze.render.table import Column, TableSpec
    from evalcube.stages.analyze.render.text import ABSENT, number, percent

    columns = (
        Column("level", lambda row: row.level, right=False),
        Column("task", lambda row: plain(row.task) or "all", right=False, name=True),
        Column("tier", lambda row: plain(row.tier) or "all", right=False),
        Column("control", lambda row: percent(row.control), 1),
        Column("treatment", lambda row: percent(row.treatment), 1),
        Column("drop", lambda row: _points(row.drop)),
        Column(
            "95 %",
            lambda row: ABSENT if math.isnan(row.lower) else f"{_points(row.lower)} to {_points(row.upper)}",
            2,
        ),
        Column("allowed", lambda row: ABSENT if math.isnan(row.limit) else f"{100 * row.limit:.1f}"),
        Column("questions", lambda row: number(row.questions), 3),
        Column("", lambda row: row.outcome, right=False),
    )
    words = (
        "drop: the control's share right less the treatment's, in points of 100, of the questions that both answered; "
        "truncated answers count as wrong; tasks weigh the same, and their points as in the first plan."
    )
    alone = "95 %: the interval of each line by itself."
    floor = [_place(row) for row in found.checks if row.control == 0]
    notes = [words, alone]
    if floor:
        notes.append(f"The control is never right in {', '.join(floor)}: nothing could drop there.")
    if found.selection:
        notes.append(f"Part of the cube ({found.selection}).")
    return TableSpec(columns, found.checks, tuple(notes), explains={alone: "95 %"})


def _points(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:+.1f}"
