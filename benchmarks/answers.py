"""What each layer of the reader of answers moves: its patterns are taken out one by one.

    python -m benchmarks.answers [--replies FILE]

Forms are those of the tests, right and wrong ones, for each kind. FILE has real replies, one JSON object a line with
``reply``, ``kind`` (choice, number, math), ``options`` and ``reference``. A layer that moves nothing on either can go.
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
from evalcube.stages.generate.dataset.kinds import READERS, is_right
from evalcube.stages.generate.dataset.params import Comparison
from evalcube.stages.process.reading import split_reasoning
from tests.stages.generate.answers.formats import ASIDE, INVALID, NATURAL, OPEN, RETRACTED, STRUCK
from tests.stages.generate.answers.test_later import GAPS, MARKS, STANDS, TAKEN_BACK

ROOM = "evalcube.stages.generate.answers"
MODULES = ("wording", "passages", "final", "values", "texts", "choices", "numbers", "documents")
NEVER = re.compile(r"(?!)")
OPTIONS = ["red", "42", "a lamp", "apple"]
VALUES = (
    ("number", "24", "31"),
    ("text", "Paris", "Rome"),
    ("text", "the Treaty of Utrecht", "Peace of Westphalia"),
    ("json", '{"a": [1]}', '{"a": [2]}'),
    ("choice", "B", "C"),
    ("choice", "red", "a lamp"),
)

Case = tuple[Callable[[], str | None], str, bool]
"""What is read, a name of it, and whether what is read should be right; for a real reply this is not known."""


def read(kind: str, text: str, answer: str) -> bool:
    """Whether an answer is read in a text."""
    if kind == "choice":
        return read_choice(text, "ABCD", OPTIONS) == read_choice(f"Answer: {answer}", "ABCD", OPTIONS)
    found = READERS[kind](text)
    return found is not None and is_right(kind, found, answer, Comparison())


def forms() -> Iterator[tuple[str, str, str, bool]]:
    """Kind, text, answer, and whether the text gives it."""
    for kind, answer, other in VALUES:
        right = [form.format(answer, answer, other=other) for form in (*NATURAL, *RETRACTED, *STRUCK, *ASIDE)]
        wrong = [form.format(answer, answer, other=other) for form in (*INVALID, *OPEN)]
        wrong += [form.format(other, other, other=answer) for form in (*RETRACTED, *STRUCK)]
        for mark in MARKS:
            for gap in GAPS:
                right += [(mark + gap + form).format(a=answer, b=other) for form in STANDS]
                wrong += [(mark + gap + form).format(a=answer, b=other) for form in TAKEN_BACK]
        yield from ((kind, text, answer, True) for text in right)
        yield from ((kind, text, answer, False) for text in wrong)


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
    texts = list(forms())[:: arguments.every]
    replies = list(real(arguments.replies))[:: arguments.every] if arguments.replies else []
    begun = time.process_time()
    known = [reply() for reply in replies]
    spent = time.process_time() - begun
    base = [read(kind, text, answer) for kind, text, answer, _ in texts]
    rights = sum(right for *_, right in texts)
    missed = sum(right and not got for got, (*_, right) in zip(base, texts, strict=True))
    passed = sum(got and not right for got, (*_, right) in zip(base, texts, strict=True))
    print(f"forms: {rights} right ones, {missed} missed; {len(texts) - rights} wrong ones, {passed} passed")
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
            got = [read(kind, text, answer) for kind, text, answer, _ in texts]
            lost = sum(
                right and before and not now
                for now, before, (*_, right) in zip(got, base, texts, strict=True)
            )
            let_in = sum(
                now and not before and not right
                for now, before, (*_, right) in zip(got, base, texts, strict=True)
            )
            print(f"{layer:34} {moved:8} {lost:6} {let_in:6}", flush=True)
        except (AttributeError, TypeError, ValueError, re.error) as error:
            print(f"{layer:34} needed: {type(error).__name__}", flush=True)
        finally:
            for (module, name), value in zip(places, whole, strict=True):
                setattr(module, name, value)


if __name__ == "__main__":
    main()
