"""Answers of those who read nothing: constants, positions and echoes of the input, and how often they are right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from evalcube.stages.generate import Cell, Trial
from evalcube.stages.generate.tasks.brackets import KINDS

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_WORD = re.compile(r"[A-Za-z]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SCALAR = re.compile(r'"[a-z]+"(?!:)|\b[0-9]+\b|\b(?:true|false|null)\b')
_CLOSERS = {left: right for left, right, _ in KINDS}
_OPENER = re.compile("|".join(map(re.escape, _CLOSERS)))


def body(prompt: str) -> str:
    """The part of a prompt without the line that states the answer's form."""
    return prompt.rpartition("\nAnswer:")[0]


def material(prompt: str) -> str:
    """The paragraph between the opening and the question, where a prompt has one."""
    parts = body(prompt).split("\n\n")
    return parts[1] if len(parts) > 2 else parts[0]


def places(trial: Trial) -> dict[str, str]:
    """Guesses of one trial by what they are called, without working anything out."""
    found: dict[str, str] = {}
    text = body(trial.prompt)
    inner = material(trial.prompt)
    for i, option in enumerate(trial.options):
        found[f"option {i}"] = option
    if trial.options:
        at = sorted(trial.options, key=text.rfind)
        found |= {
            "option mentioned last": at[-1],
            "option mentioned first": min(trial.options, key=text.find),
        }
        counted = Counter({option: text.count(option) for option in trial.options}).most_common()
        found |= {"option mentioned most": counted[0][0], "option mentioned least": counted[-1][0]}
    words, numbers = _WORD.findall(inner), _NUMBER.findall(inner)
    found |= {"count of words": str(len(words)), "count of words less one": str(len(words) - 1)}
    found |= {"count of commas": str(inner.count(",")), "count of lines": str(inner.count("\n") + 1)}
    found |= {
        "count of lines less one": str(inner.count("\n")),
        "count of lines less two": str(inner.count("\n") - 1),
    }
    for name, values in (("", numbers), ("all ", _NUMBER.findall(text)), ("date ", _DATE.findall(text))):
        if values:
            found |= {f"{name}number first": values[0], f"{name}number last": values[-1]}
            ordered = sorted(values, key=_size)
            found |= {f"{name}number least": ordered[0], f"{name}number greatest": ordered[-1]}
    found |= {"input": inner, "input reversed": inner[::-1]}
    found |= {"words as given": ", ".join(words), "words reversed": ", ".join(reversed(words))}
    found["last word"] = words[-1] if words else ""
    opened = [_CLOSERS[character] for character in _OPENER.findall(inner)]
    found |= {"closers of all": "".join(reversed(opened)), "closers of all in order": "".join(opened)}
    for count in range(1, 5):
        found[f"closers of the last {count}"] = "".join(reversed(opened[-count:]))
        found[f"closers of the first {count}"] = "".join(reversed(opened[:count]))
    for count in range(1, 9):
        found[f"last number {count} times"] = ", ".join(numbers[-1:] * count)
        found[f"last {count} numbers"] = ", ".join(numbers[-count:])
    asked = re.search(r"(?:position|place) ([0-9]+)", text.rsplit("\n", 1)[-1])
    if asked and len(trial.options) >= int(asked[1]):
        found["start of the asked place"] = trial.options[int(asked[1]) - 1]
    scalars = _SCALAR.findall(inner)
    for name, values in (("first", scalars[:1]), ("last", scalars[-1:])):
        found |= {f"{name} value": value for value in values} | {
            f"{name} value in brackets": f"[{value}]" for value in values
        }
    found["none"] = "[]"
    return found


def _size(value: str) -> float:
    """By which numbers are ordered, and dates."""
    return float(value if value.count("-") < 2 else value.replace("-", ""))


def start_of_asked(trial: Trial) -> str | None:
    """What a named car or person has in the first sentence that names it."""
    question = trial.prompt.rpartition("\nAnswer:")[0].rsplit("\n", 1)[-1]
    text = body(trial.prompt)
    for name in re.findall(r"\b[A-Z][a-z]+\b", question):
        match = re.search(rf"\b{name} has an? ([a-z ]+?)[,.]", text)
        if match:
            return match[1]
    return None


def excess_of_no_work(cell: Cell, trials: int) -> tuple[float, str]:
    """By how much the best strategy is right more often than the declared guess chance, and its name.

    The best constants are chosen on one half of the trials and counted on the other, so that chance does not choose.
    """
    made: Sequence[Trial] = [cell.trial(i) for i in range(trials)]
    half = trials // 2
    shares: Counter[str] = Counter()
    for trial in made:
        guesses = places(trial)
        start = start_of_asked(trial)
        if start is not None:
            guesses["start of the asked one"] = start
        for name, guess in guesses.items():
            shares[name] += bool(guess) and cell.grade(guess, trial)
    best = max(((count / trials, name) for name, count in shares.items()), default=(0.0, ""))
    for constant, _ in Counter(trial.answer for trial in made[:half]).most_common(3):
        share = sum(cell.grade(constant, trial) for trial in made[half:]) / (trials - half)
        best = max(best, (share, f"always {constant}"))
    return best[0] - sum(trial.guess_chance for trial in made) / trials, best[1]
