"""No value of whatever type makes a key of a config fail in any way but by a problem that is told."""

import datetime
from contextlib import suppress

from pydantic import ValidationError

from evalcube.flows.config.field_types import sections_below
from evalcube.flows.config.models import Sweep
from tests.cases import with_cases

ODD = (
    *(None, True, 0, -1, 1.5, 10**400, float("inf"), float("nan"), "", "x", "\0", "\ud800", b"x"),
    *([], [[]], [None], [{}], [1], {}, {"a": {}}, {1: 2}, {None: None}, {"a": None}, {"a": 1}),
    *(datetime.date(2020, 1, 1), object()),
)


def sections(root):
    found = [root]
    for section in found:  # grows meanwhile
        for field in section.model_fields.values():
            below = (inner for inner, _ in sections_below(field.rebuild_annotation(), ""))
            found += [inner for inner in below if inner not in found]
    return found


@with_cases("section", sections(Sweep))
def test_section__takes_or_refuses_any_value(section):
    for key in section.model_fields:
        for value in ODD:
            with suppress(ValidationError):
                section.model_validate({key: value})


def test_sections__are_all_of_them():
    assert len(sections(Sweep)) > 20
