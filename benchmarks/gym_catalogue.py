"""What evalcube says of the generators of reasoning-gym: levels of their curricula, other settings, guess floors.

    python -m benchmarks.gym_catalogue [NAME ...]    # levels and settings, each tried
    python -m benchmarks.gym_catalogue --floors      # what no work gains at the points of the suite gym30, in minutes

Writes `stages/generate/foreign/gym.json`; the generators that are refused, and why, stay as they stand there. Needs the
extra `gym`. Run it when the version of reasoning-gym is raised.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import signal
import sys
import time
import typing
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from evalcube.flows.config.suites import load_suite
from evalcube.stages.generate import Trial, all_tasks, expand
from evalcube.stages.generate.foreign import gym_door
from tests.stages.generate.no_work import places

CATALOGUE = Path(__file__).parents[1] / "stages/generate/foreign/gym.json"
TRIED = 8
"""Items of each level that are tried."""
MOST_SECONDS = 0.5
"""For one item; what is slower is no level."""
_KINDS = {int: "int", float: "float", bool: "bool", str: "str"}
_OURS = ("seed", "size", "data_file")


class SlowError(Exception):
    """An item took too long."""


@contextlib.contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """End what takes longer."""

    def end(*_: object) -> None:
        raise SlowError

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def is_sound(name: str, config: dict[str, Any]) -> bool:
    """Whether a config makes items in time, which accept their own answers."""
    spent = 0.0
    try:
        with bounded(60 * MOST_SECONDS * TRIED):
            for seed in range(TRIED):
                began = time.process_time()
                row = gym_door.row(name, config, seed)
                spent += time.process_time() - began
                if not row["target"] or (
                    row["entry"] and gym_door.score(name, row["target"], row["entry"]) != 1
                ):
                    return False
    except Exception:  # noqa: BLE001 - whatever a generator raises
        return False
    return spent < MOST_SECONDS * TRIED + 1


def levels_of(curriculum: Any, attribute: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """The settings that each level of an attribute stands for, without those before it."""
    from reasoning_gym.coaching.base_curriculum import DefaultCurriculumContext, RangeAttributeMode

    context = DefaultCurriculumContext(RangeAttributeMode.UPPER_BOUND)
    found: list[dict[str, Any]] = []
    for level in range(len(attribute.levels)):
        curriculum.set_attr_level(attribute.name, level)
        value = context.get_attr_value(curriculum, attribute)
        if hasattr(attribute, "field_name"):
            settings = {attribute.field_name: value}
        else:
            both = value if isinstance(value, list) else [value]
            settings = {attribute.lower_field_name: min(both), attribute.upper_field_name: max(both)}
        settings = gym_door.plain(settings)
        if settings not in found:  # the last of intervals is that before it
            found.append(settings)
    return found


def settings_of(config: type) -> dict[str, list[Any]]:
    """The plain settings of a generator: kind and default."""
    found = {}
    hints = typing.get_type_hints(config)
    for field in dataclasses.fields(config):
        kinds = [
            kind for kind in (typing.get_args(hints[field.name]) or (hints[field.name],)) if kind in _KINDS
        ]
        origin = typing.get_origin(hints[field.name])
        if field.name not in _OURS and len(kinds) == 1 and origin not in (list, tuple, dict):
            default = None if field.default is dataclasses.MISSING else field.default
            found[field.name] = [_KINDS[kinds[0]], default]
    return found


def described(name: str) -> dict[str, Any]:
    """A generator's entry in the catalogue."""
    from reasoning_gym.factory import CURRICULA, DATASETS

    curriculum = CURRICULA[name]()
    attributes = {key: levels_of(curriculum, one) for key, one in curriculum.attributes.items()}
    lowest: dict[str, Any] = {}
    for found in attributes.values():
        lowest |= found[0]
    for found in attributes.values():
        good = 0
        while good < len(found) and is_sound(name, lowest | found[good]):
            good += 1
        del found[max(good, 1) :]
    levels, most = 0, max(map(len, attributes.values()))
    while levels < most:
        config: dict[str, Any] = {}
        for found in attributes.values():
            config |= found[min(levels, len(found) - 1)]
        if not is_sound(name, config):
            break
        levels += 1
    return {"levels": levels, "attributes": attributes, "settings": settings_of(DATASETS[name][1])}


def floor_of(name: str, config: dict[str, Any], trials: int) -> dict[str, Any]:
    """How often the best of those is right who read nothing; by which strategy; and how many questions differ.

    The commonest answers are found on one half of the items and counted on the other, so that chance does not choose.
    """
    import reasoning_gym

    with bounded(600):
        rows = [gym_door.row(name, config, seed) for seed in range(trials)]
        scorer = reasoning_gym.create_dataset(name, **config, seed=0, size=1)
        half, shares = trials // 2, Counter[str]()

        def is_right(row: dict[str, Any], said: str) -> bool:
            if said == row["target"] or row["entry"] is None:
                return bool(said == row["target"])
            try:
                return bool(scorer.score_answer(said, row["entry"]["item"]) == 1)
            except Exception:  # noqa: BLE001 - whatever a scorer raises
                return False

        for row in rows:
            for strategy, said in guesses(row["prompt"]).items():
                shares[strategy] += bool(said) and is_right(row, said)
        best = max((count / trials, strategy) for strategy, count in shares.items())
        common = [said for said, _ in Counter(row["target"] for row in rows[:half]).most_common(3)]
        for said in (*common, "0", "1", "True", "False", "Yes", "No", "[]", "None"):
            share = sum(is_right(row, said) for row in rows[half:]) / (trials - half)
            best = max(best, (share, f"always {said[:30]}"))
    distinct = len({row["prompt"] for row in rows})
    return {
        "floor": round(best[0], 3),
        "by": best[1] if best[0] else "none",
        "questions": distinct,
        "of": trials,
    }


def guesses(question: str) -> dict[str, str]:
    """What those say who read nothing: parts of the question and counts of them."""
    found = places(Trial(f"{question}\nAnswer:", ""))
    lines = [line.strip() for line in question.splitlines() if line.strip()]
    parts = [part for part in question.split("\n\n") if part.strip()]
    found |= {"first line": lines[0], "last line": lines[-1], "last line but one": lines[-2:][0]}
    found |= {"first part": parts[0], "last part": parts[-1], "longest part": max(parts, key=len)}
    return found


def write_floors(found: dict[str, Any], trials: int) -> None:
    """Measure the floors at the points of the suite."""
    suite = load_suite("gym30", ["sim:"])
    found["floors"] = {}
    for label in suite.tasks:
        name, entries = suite.manifold(label)
        task = all_tasks()[name]
        for point in expand(task, entries):
            generator, level = name.partition(":")[2], str(point.params.canonical()["level"])
            floor = floor_of(generator, task.config(point.params), trials)  # type: ignore[attr-defined]
            print(f"{generator:24}{','.join(point.tiers):8}{level:4}{floor}", file=sys.stderr)
            found["floors"].setdefault(generator, {})[level] = floor


def main() -> None:
    """Write the catalogue."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--floors", action="store_true")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    found = json.loads(CATALOGUE.read_text())
    if given.floors:
        write_floors(found, given.trials)
    else:
        from reasoning_gym.factory import DATASETS

        found["version"] = version("reasoning-gym")
        for name in given.names or sorted(DATASETS.keys() - found["refused"].keys() - {"composite"}):
            print(name, file=sys.stderr)
            found["generators"][name] = described(name)
    CATALOGUE.write_text(text_of(found))


def text_of(found: dict[str, Any]) -> str:
    """The catalogue with a line for each entry."""
    parts = []
    for key, value in found.items():
        if isinstance(value, dict):
            rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in value.items())
            parts.append(f"{json.dumps(key)}: {{\n{rows}\n}}")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    main()
