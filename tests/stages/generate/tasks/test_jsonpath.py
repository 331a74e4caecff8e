"""Documents and paths have the stated sizes, and usual ways to answer are read."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from evalcube.stages.generate import TASKS
from tests.cases import with_cases
from tests.stages.generate.tasks.trials import body, trials


def depth_of(value: Any) -> int:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if members is None else 1 + max(map(depth_of, members))


@pytest.mark.parametrize("width", [1, 2, 8])
@pytest.mark.parametrize("depth", [1, 3, 8])
def test_jsonpath__document_has_the_stated_size(depth: int, width: int) -> None:
    for trial in trials("jsonpath", depth=depth, width=width):
        document = json.loads(body(trial))
        path = re.search(r"the path \$((?:\.\w+|\[\d+\])+)", trial.prompt)

        assert len(document) == width
        assert depth_of(document) == depth
        assert path is not None
        assert len(re.findall(r"[.\[]", path[1])) == depth


@pytest.mark.parametrize(("wildcards", "filters"), [(1, 0), (0, 1), (2, 0), (3, 2)])
def test_jsonpath__steps_with_several_values(wildcards: int, filters: int) -> None:
    found = trials("jsonpath", depth=5, width=4, wildcards=wildcards, filters=filters)
    sizes = Counter(len(json.loads(trial.answer)) for trial in found)

    assert min(sizes) >= 1
    assert len(sizes) > 1
    for trial in found:
        path = trial.prompt.split("\n\n")[3]
        assert path.count("[*]") == wildcards
        assert path.count("[?") == filters


def test_jsonpath__more_such_steps_than_depth_are_refused() -> None:
    with pytest.raises(ValidationError, match="must not exceed depth"):
        TASKS["jsonpath"].Params(depth=2, wildcards=2, filters=1)


@with_cases(
    ("text", "answer"),
    [
        ("Answer: [1, 'lamp', True, None]", '[1, "lamp", true, null]'),
        ("Answer: lamp", '"lamp"'),
        ('It is below.\nAnswer:\n```json\n[1,\n "lamp"]\n```', '[1, "lamp"]'),
        ("The answer is the value 42.", "42"),
        ("$\\boxed{\\text{lamp}}$", '"lamp"'),
        ("Answer: []", "[]"),
        ('Answer: "\\u006camp"', '"lamp"'),
        ('Answer: ["\\x"]', None),
        ("Answer: ['lamp', drum, '5']", '["lamp", "drum", 5]'),
        ("Answer: '[1, 2]'", "[1, 2]"),
        ("Answer: [1] or lamp", None),
        ("Answer: 88 / 77", None),
        ("Answer: 5 or 6", None),
        ("Answer: 5.0", "5"),
    ],
)
def test_jsonpath_parse__reads_usual_answers(text: str, answer: str | None) -> None:
    assert TASKS["jsonpath"].parse(text) == answer
