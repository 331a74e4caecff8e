"""What each layer of the reader of answers moves: its patterns are taken out one by one.

    python -m benchmarks.answers [--replies FILE]

Forms are those of authors who had not seen the readers (`tests/data/forms.jsonl`). FILE has real replies, one JSON
object a line with ``reply``, ``kind`` (choice, number, math), ``options`` and ``reference``. A layer that moves nothing
on either can go.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from evalcube.stages.generate.answers.choices import read_choice
from evalcube.stages.generate.dataset.kinds import READERS
from evalcube.stages.process.reading import split_reasoning
from tests.stages.generate.answers.blind import is_read, load_forms, states_a_value

ROOM = "evalcube.stages.generate.answers"
MODULES = ("wording", "passages", "final", "values", "texts", "choices", "numbers", "documents")
NEVER = re.compile(r"(?!)")


def real(path: Path) -> Iterator[Callable[[], str | None]]:
    """What is read of each real reply but for mathematical ones, which another process compares."""
    with gzip.open(path, "rt") as lines:
        for row in map(json.loads, lines):
            text = split_reasoning(row["reply"])[0]
            if row["kind"] == "choice":
                labels = [chr(65 + i) for i in range(len(row["options"]))]
                yield lambda text=text, labels=labels, row=row: read_choice(text, labels, row["options"])  # type: ignore[misc]
            elif row["kind"] == "number":
                yield lambda text=text: READERS["number"](text)  # type: ignore[misc]


def layers(modules: list[ModuleType]) -> dict[str, list[tuple[ModuleType, str]]]:
    """Each pattern of the room by name, with the modules that know it."""
    found: dict[int, tuple[str, list[tuple[ModuleType, str]]]] = {}
    for module in modules:
        for name, value in vars(module).items():
            if hasattr(value, "pattern") and name.strip("_").isupper():
                found.setdefault(id(value), (f"{module.__name__.rpartition('.')[2]}.{name}", []))[1].append(
                    (module, name)
                )
    return dict(found.values())


def main() -> None:
    """Print a line for each layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=Path)
    parser.add_argument("--only", default="", help="part of the names of layers")
    parser.add_argument("--every", type=int, default=1, help="take each so manieth form and reply alone")
    arguments = parser.parse_args()
    forms = load_forms()[:: arguments.every]
    right = [states_a_value(form) for form in forms]
    replies = list(real(arguments.replies))[:: arguments.every] if arguments.replies else []
    begun = time.process_time()
    known = [reply() for reply in replies]
    spent = time.process_time() - begun
    base = [is_read(form) for form in forms]
    missed = sum(states and not read for read, states in zip(base, right, strict=True))
    passed = sum(read is False and not states for read, states in zip(base, right, strict=True))
    print(
        f"forms: {sum(right)} right ones, {missed} missed; {len(forms) - sum(right)} wrong ones, {passed} passed"
    )
    if replies:
        print(f"replies: {len(replies)}, {1e3 * spent / len(replies):.2f} ms of CPU each")
    print("Without a layer: replies read otherwise, right forms lost, wrong ones let in")
    for layer, places in layers([importlib.import_module(f"{ROOM}.{name}") for name in MODULES]).items():
        if arguments.only not in layer:
            continue
        whole: list[Any] = [getattr(module, name) for module, name in places]
        for module, name in places:
            setattr(module, name, NEVER)
        try:
            moved = sum(reply() != value for reply, value in zip(replies, known, strict=True))
            now = [is_read(form) for form in forms]
            rows = list(zip(now, base, right, strict=True))
            lost = sum(states and before is True and after is not True for after, before, states in rows)
            let_in = sum(
                not states and after is False and before is not False for after, before, states in rows
            )
            print(f"{layer:34} {moved:8} {lost:6} {let_in:6}", flush=True)
        except (AttributeError, TypeError, ValueError, re.error) as error:
            print(f"{layer:34} needed: {type(error).__name__}", flush=True)
        finally:
            for (module, name), value in zip(places, whole, strict=True):
                setattr(module, name, value)


if __name__ == "__main__":
    main()
