"""Forms of replies by authors who had not seen the readers, each with what a careful person would record.

``tests/data/forms.jsonl`` has one form a line: its kind, the reply, and `want`, what may be read in it (null where it
states no value); for texts and JSON the reference, and whether the reply is right. `by` is its author.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from evalcube.stages.generate.answers.choices import read_choice
from evalcube.stages.generate.answers.dates import last_date
from evalcube.stages.generate.dataset.kinds import READERS, is_right, read_declared
from evalcube.stages.generate.dataset.params import Comparison
from evalcube.stages.process.reading import split_reasoning

FORMS = Path(__file__).parents[3] / "data" / "forms.jsonl"


def load_forms() -> list[dict[str, Any]]:
    """All forms, in the order of their authors."""
    return [json.loads(line) for line in FORMS.read_text("utf-8").splitlines()]


def is_read(form: dict[str, Any]) -> bool | None:
    """Whether what is read is among what may be read; None if nothing is read."""
    text, want = split_reasoning(form["reply"])[0], form["want"]
    if form["kind"] == "choice":
        value = read_choice(text, "ABCD", form["options"])
    elif form["kind"] == "date":
        value = last_date(text)
    elif form["kind"] == "number":
        value = READERS["number"](text)
        want = [None if number is None else str(Fraction(number)) for number in want]
        value = None if value is None else str(Fraction(value))
    else:
        reference = form["reference"]
        text_or_json = (
            READERS["json"](text)
            if form["kind"] == "json"
            else read_declared(text, "auto", "", [reference], Comparison())
        )
        right = text_or_json is not None and is_right(form["kind"], text_or_json, reference, Comparison())
        return True if right and True in want else False if right else None
    return None if value is None else value in want


def states_a_value(form: dict[str, Any]) -> bool:
    """Whether a value has to be read in it."""
    return form["want"][0] not in (None, False)
