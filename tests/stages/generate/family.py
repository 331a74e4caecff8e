"""A large cell of each bundled task, and the tasks that make their trials up."""

from __future__ import annotations

from typing import Any

from evalcube.stages.generate import TASKS, Task

LARGE: dict[str, dict[str, Any]] = {
    "arithmetic": {"length": 30, "max_depth": 5, "max_number": 99, "prob_dewhitespace": 0.5},
    "boolean": {"length": 30, "max_depth": 5, "format": "on/off", "prob_dewhitespace": 0.5},
    "brackets": {"length": 40, "max_depth": 12, "kinds": 4},
    "cars": {"cars": 9, "moves": 12, "confounders": 6, "reference": "attribute", "question": "car"},
    "constraints": {"rules": 6, "kind": "layout"},
    "dataset": {"kind": "number", "order": "file"},
    "dates": {"level": 4, "offset": 45, "format": "european"},
    "haystack": {"length": 3000, "depth": 90, "distractors": 12},
    "jsonpath": {"depth": 6, "width": 5, "wildcards": 2, "filters": 1},
    "letters": {"letters": "rare", "target_letters": 3, "target_words": 12, "confounder_words": 9},
    "movies": {"reference_count": 7, "choice_count": 11, "hint": "none"},
    "objects": {
        "target_items": 6,
        "target_groups": 3,
        "max_count": 40,
        "distractor_count": 20,
        "prob_adjective": 0.5,
    },
    "sequence": {"rules": 4, "terms": 6, "max_constant": 50},
    "shapes": {"choices": 12, "rotation": 180, "scale": 20, "offset": 200, "noise": 1.5},
    "shuffle": {"length": 9, "swaps": 12, "confounders": 6, "anchors": "roman"},
    "sort": {"length": 40, "run_length": 5, "prob_mutation": 0.5, "prob_duplication": 0.2},
    "tables": {"rows": 40, "columns": 7, "conditions": 3, "format": "json", "operation": "mean"},
    "tools": {"tools": 8, "distractors": 6, "nesting": 2, "calls": 3},
}
"""Params of a large cell by the name of the task."""

OWN_TEXT = {"constraints"}
"""Tasks that are answered by a text of the model's own, of which many are right."""

FAMILY: dict[str, Task] = {
    name: task for name, task in TASKS.items() if task.size(task.example()) is None and name not in OWN_TEXT
}
"""The tasks that make their trials up and have one right answer, by name."""
