"""Some thousand replies with their grades, which are the same on every Python.

``python -m tests.stages.generate.answers.corpus > tests/data/grades.json`` writes the grades anew. Where an old reply
gets another grade, `GRADER` of `stages.process.grading` is raised.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from evalcube.stages.generate.answers.choices import read_choice
from evalcube.stages.generate.dataset.kinds import READERS
from evalcube.stages.generate.dataset.params import Comparison
from evalcube.stages.process.judging import read_judge
from evalcube.stages.process.reading import split_reasoning
from tests.stages.generate.answers.formats import INVALID, JSON_FORMATS, NATURAL
from tests.stages.generate.answers.test_fuzz import TOKENS
from tests.stages.generate.answers.trials import KINDS, trials

GRADES = Path(__file__).parents[3] / "data" / "grades.json"
GARBLED = 120
FOLLOWED = (
    "The answer is {}. I checked 3 times.",
    "It is {}. Have a nice day!",
    "So it is {}, as 2 + 2 = 4.",
    "Answer: {} {other}",
    "Answer: {}, {other}",
    "First {other}. Then {}.",
)
PLAIN = (
    "42",
    "-3.5",
    "1,234",
    "March 5th, 2021",
    "true",
    "red",
    "apple, Bear, cat",
    "])}",
    '{"a": [1]}',
    "B",
)


def replies(answer: str, other: str, seed: str) -> Iterator[str]:
    """Right, wrong, open and damaged replies around an answer."""
    rng = random.Random(seed)
    forms = (*NATURAL, *FOLLOWED, *INVALID)
    yield from (form.format(answer, other=other) for form in forms)
    yield from (form.format(json.dumps(answer)) for form in JSON_FORMATS)
    for _ in range(GARBLED):
        text = rng.choice(forms).format(answer[:200], other=other[:200])
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(text) + 1)
            text = text[:place] + rng.choice(TOKENS) + text[place + rng.randrange(3) :]
        yield text
    for _ in range(GARBLED // 2):
        yield rng.choice(("", "Answer: ")) + rng.choice((" ", "")).join(
            rng.choices(TOKENS, k=rng.randrange(12))
        )


def _summary(marks: Iterable[str], answers: Iterable[object]) -> list[str]:
    digest = hashlib.sha256("\n".join(map(ascii, answers)).encode()).hexdigest()
    return ["".join(marks), digest[:16]]


def grades() -> dict[str, list[str]]:
    """For each point of a task and each other reader: a mark for each reply, and a digest of what was read.

    The marks are ``r`` for right, ``w`` for wrong and ``.`` for nothing read.
    """
    found = {}
    for name, params in KINDS:
        cell, trial, answer, other = next(trials(name, params))
        read = [cell.parse(text, trial) for text in replies(answer, other, name)]
        marks = ("." if a is None else "r" if cell.grade(a, trial) else "w" for a in read)
        found[f"{name} {json.dumps(params)}"] = _summary(marks, read)
    texts = [text for answer in PLAIN for text in replies(answer, "7", answer)][::3]
    readers = {
        **{kind: lambda text, reader=reader: reader(text, Comparison()) for kind, reader in READERS.items()},
        "choice": lambda text: read_choice(text, "ABCD", ["red", "42", "a lamp", "apple"]),
        "judge": lambda text: read_judge(text).score,
        "reasoning": lambda text: split_reasoning(text)[0],
    }
    for name, reader in readers.items():
        read = [reader(text) for text in texts]
        found[name] = _summary(("." if answer is None else "r" for answer in read), read)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(grades(), indent=1) + "\n")
