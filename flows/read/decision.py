"""The decisions of a policy in words: what a gate prints, and what a report and the explorer open with."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError

from evalcube.flows.config.views import noted_policy
from evalcube.flows.errors import ConfigError, SweepError
from evalcube.flows.read.design import composite_settings
from evalcube.flows.read.gate import FUTILE, Decision, GateResult, PolicyLine, gate_of
from evalcube.flows.read.reader import Reader
from evalcube.flows.state.records import read_record
from evalcube.stages.analyze.formulas.design import WEIGHING
from evalcube.stages.analyze.formulas.margins import inside
from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.render.table import Column, TableSpec
from evalcube.stages.analyze.render.table_specs import e_text, points
from evalcube.stages.analyze.render.text import ABSENT, number, percent
from evalcube.stages.analyze.render.verdicts import ShownDecision
from evalcube.stages.analyze.verdict.result import NEXT_STEP
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError, guarded

GATE = "gate.json"
"""Key among a cube's records of the last decision at planned looks."""
_MOST_BYTES = 10_000_000
_NEXT = {
    "GO": NEXT_STEP["PROGRESS"],
    "NO-GO": "Do not ship: `evalcube compare CUBE --flips` shows the answers that changed.",
    "INCONCLUSIVE": "Not decided: each open line states what it needs; a person decides on a refuted supporting line.",
}


def remember_decision(address: str, result: GateResult) -> None:
    """Keep a decision at planned looks beside the cube, so that later readers of the same answers see the same."""
    records = Cube.open(address).records
    with guarded(f"{records.address}/{GATE}", "keep the decision"):
        records.put(GATE, json.dumps({"answers": _answers(records), "decision": asdict(result)}).encode())


def _answers(records: Space) -> int:
    """How many trials are recorded."""
    return sum(receipt.finished for receipt in Ledger(records).newest().values())


def _recorded_decision(reader: Reader) -> GateResult | None:
    """The last decision at planned looks; None where there is none, or more was asked since."""
    records = reader.cube.records
    record = read_record(records, GATE, _MOST_BYTES)
    if not isinstance(record, Mapping) or record.get("answers") != _answers(records):
        return None
    form = TypeAdapter(GateResult)
    form.rebuild(_types_namespace={"Decision": Decision, "PolicyLine": PolicyLine})  # it is known elsewhere
    try:
        return form.validate_python(record.get("decision"))
    except ValidationError:
        return None


def shown_decisions(reader: Reader) -> tuple[list[ShownDecision], str]:
    """Return the decision on each treatment that a cube's config asks for by its policy, and why there is none.

    What was decided at planned looks stands as it was; other treatments are looked at once.
    """
    recorded, labels = _recorded_decision(reader), reader.plan.labels
    try:
        policy = noted_policy(reader.notes)
        control = composite_settings(reader.notes)[1] if policy else None
        pairs = [(labels[0], labels[1])] if policy and control is None and len(labels) == 2 else []
        if control is not None:
            in_use = labels[reader.plan.evaluation_index(control, "composite.control")]
            pairs = [(in_use, label) for label in labels if label != in_use]
        if policy and not pairs and recorded is None:
            missing = f"the config does not say which of {len(labels)} evaluations is in use"
            return [], f"There is a policy, and no decision by it: {missing} (composite: {{control: NAME}})."
        decisions = {} if recorded is None else {(recorded.control, recorded.treatment): recorded}
        for pair in pairs:
            if policy and (plain(pair[0]), plain(pair[1])) not in decisions:
                decisions[pair] = gate_of(policy, [str(reader.cube.url)], pair)
    except (ConfigError, SweepError, StorageError) as error:
        return [], f"There is no decision by the policy: {error}"
    return [_for_people(decision) for decision in decisions.values()], ""


def _for_people(result: GateResult) -> ShownDecision:
    table = decision_table(result)
    return ShownDecision(
        result.decision,
        result.control,
        result.treatment,
        result.reason,
        tuple(open_lines(result)),
        _NEXT[result.decision],
        tuple(column.head for column in table.columns),
        tuple(map(tuple, table.texts())),
        (*table.notes, *result.warnings),
    )


def open_lines(result: GateResult) -> list[str]:
    """A sentence for each line that is not shown: why, and what it would take."""
    return [
        f"{line.role}, {_place(line)}, {_claim(line)}: {_reason(line)}"
        for line in result.lines
        if line.outcome != "shown"
    ]


def _place(line: PolicyLine) -> str:
    return " ".join(filter(None, (line.task or "all tasks", f"({line.tier})" if line.tier else "")))


def _claim(line: PolicyLine) -> str:
    """What is to be shown, in words."""
    if math.isnan(line.margin):
        return line.claim
    points_of_100 = f"{100 * line.margin:.3g}"
    by = f"by {points_of_100}" if line.margin else "at all"
    words = {
        "noninferior": f"not worse {by}",
        "superior": f"better {by}",
        "equivalent": f"within ±{points_of_100}",
    }
    return words[line.claim]


def _reason(line: PolicyLine) -> str:
    if line.looks and not line.look:
        return "not decided yet: its first look is not reached; run the same command again"
    if line.outcome == "not measured" and not line.lacking:
        return "not measured: there are no such questions"
    if line.outcome == "not measured":
        asked = "were they asked the same (data file, params, version, seed)?"
        return f"not measured: {line.lacking:,} questions, none answered by both; {asked}"
    seen = f"changed by {points(line.change)} points ({_level(line)}: {_interval(line)})"
    if line.outcome == "refuted":
        return f"{seen}, shown not to hold"
    return f"{seen}, not decided. {_what_it_takes(line)}"


def _interval(line: PolicyLine) -> str:
    return ABSENT if math.isnan(line.lower) else f"{points(line.lower)} to {points(line.upper)}"


def _level(line: PolicyLine) -> str:
    return f"{100 * line.level:.4g}%"


def _what_it_takes(line: PolicyLine) -> str:
    if line.lacking and (line.more is None or inside(line.lower, line.upper, line.claim, line.margin)):
        return (
            f"{line.lacking:,} questions lack an answer; with these, the change might be {points(line.lowest)} to "
            f"{points(line.highest)} (95%): `evalcube run` asks them again"
        )
    if 0 < line.look < line.looks:
        hopeless = max(line.chance, line.chance_refuted) < FUTILE
        return (
            f"At look {line.look} of {line.looks}; the last one would show it in {percent(line.chance)} of cases"
            f"{'' if line.claim == 'superior' else ' if nothing changed'}, and refute it in "
            f"{percent(line.chance_refuted)} if this is the true change"
            f"{': it is asked no further, except in a run to the end' if hopeless else ''}"
        )
    if line.more is None:
        return "If this is the true change, no number of questions can show it"
    truth = "nothing changed" if not line.assumed else f"the true change is {points(line.assumed)}"
    return f"About {line.more:,} more questions would show it with 80% power if {truth}"


def decision_table(result: GateResult) -> TableSpec:
    """The policy's lines, with what was measured of each."""
    looks = any(row.looks for row in result.lines)
    head = "interval" if looks else "95%"
    columns = (
        Column("role", lambda row: row.role, right=False),
        Column("task", lambda row: plain(row.task) or "all", right=False, name=True),
        Column("tier", lambda row: plain(row.tier) or "all", right=False),
        Column("to be shown", _claim, right=False),
        Column("control", lambda row: percent(row.control), 2),
        Column("treatment", lambda row: percent(row.treatment), 2),
        Column("change", lambda row: points(row.change)),
        Column(head, lambda row: _interval(row) + f" ({_level(row)})" * bool(row.look), 1),
        Column("questions", lambda row: number(row.questions), 3),
        Column("look", lambda row: f"{row.look} of {row.looks}" if row.looks else ABSENT, 2),
        Column("lacking", lambda row: number(row.lacking) if row.lacking else ABSENT, 3),
        Column("e", lambda row: ABSENT if math.isnan(row.e) else e_text(row.e), 4),
        Column("outcome", lambda row: row.outcome, right=False),
    )
    words = (
        "change: accuracy of the treatment minus that of the control, in percentage points, on the questions that both "
        f"answered; truncated answers count as wrong; {WEIGHING['tasks']}."
    )
    shares = (
        "at a level that the lines of a role share"
        if looks
        else "also when adjusted for the number of lines of its role (Holm)"
    )
    levels = f"shown: the whole interval is on the right side of the margin; refuted: on the wrong side, {shares}; "
    levels += "open: neither."
    levels += " In brackets: its level at this look; those of all looks hold together with 95%." * looks
    lacking = (
        "lacking: questions that not both answered; a line is only shown if it holds with these at their worst, and "
        "only refuted if it fails with them at their best."
    )
    e = "e: e-value against a change equal to the margin, valid however often you look; significant at 5% from 20."
    notes = [words, levels, *([lacking] if any(row.lacking for row in result.lines) else []), e]
    floor = dict.fromkeys(_place(row) for row in result.lines if row.control == 0)
    if floor:
        notes.append(f"The control has no right answer in {', '.join(floor)}: it could not drop there.")
    if result.selection:
        notes.append(f"Part of the cube ({result.selection}).")
    return TableSpec(
        columns, result.lines, tuple(notes), explains={levels: head, lacking: "lacking", e: "e"}
    ).without_empty()
