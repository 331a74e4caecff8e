"""Tasks in a config: ranges, windows, degrees, densities, fixed params, labels; one mistake, one problem."""

from __future__ import annotations

import pytest

from evalcube.flows.config.load import from_mapping, parse_config
from evalcube.flows.config.models import Sweep
from evalcube.stages.generate import TASKS, expand
from tests.cases import with_cases
from tests.flows.config.sources import problems, text

SLIDING = "{range: [8, 16, 24, 32, 40, 48], window: {skip: degree, body: 4}}"


def points(config: Sweep, label: str = "arithmetic") -> list[tuple[object, tuple[str, ...]]]:
    name, entries = config.manifold(label)
    return [(point.params.canonical()["length"], point.tiers) for point in expand(TASKS[name], entries)]


def test_manifold__tiers_with_degrees_share_one_grid() -> None:
    config = parse_config(
        text(
            tasks="arithmetic:\n    manifold:\n"
            f"      - grid: {{length: {SLIDING}}}\n        tiers: {{easy: 0, medium: 1, hard: 2}}\n"
        )
    )

    assert points(config) == [
        (8, ("easy",)),
        (16, ("easy", "medium")),
        (24, ("easy", "medium", "hard")),
        (32, ("easy", "medium", "hard")),
        (40, ("medium", "hard")),
        (48, ("hard",)),
    ]


@with_cases(
    ("sweep", "entry", "expected"),
    [
        ("degree: 1", "", [16, 24, 32, 40]),
        ("degree: 1", ", degree: 0", [8, 16, 24, 32]),
        ("degree: 1", ", tiers: {easy: 0}", [8, 16, 24, 32]),
        ("density: lowdef", "", [8, 16, 32]),
        ("density: lowdef", ", density: normal", [8, 16, 24, 32]),
        ("degree: 2\ndensity: corner", "", [24, 48]),
    ],
)
def test_manifold__the_nearest_degree_and_density_win(sweep: str, entry: str, expected: list[int]) -> None:
    source = text(tasks=f"arithmetic: {{manifold: [{{grid: {{length: {SLIDING}}}{entry}}}]}}")

    assert [length for length, _ in points(parse_config(f"{source}{sweep}\n"))] == expected


@pytest.mark.parametrize(
    ("skip", "degree", "expected"),
    [("1", 2, [16, 24]), ("{degree: 2}", 2, [40, 48]), ("degree", 2, [24, 32])],
)
def test_window__forms_of_skip(skip: str, degree: int, expected: list[int]) -> None:
    axis = SLIDING.replace("skip: degree, body: 4", f"skip: {skip}, body: 2")
    source = text(tasks=f"arithmetic: {{manifold: [{{grid: {{length: {axis}}}}}]}}", degree=str(degree))

    assert [length for length, _ in points(parse_config(source))] == expected


def test_manifold__params_alone_are_one_point_and_labels_are_free() -> None:
    config = parse_config(
        text(
            tasks="short: {task: arithmetic, params: {length: 4}}\n"
            "  long: {task: arithmetic, params: {max_depth: 2}, manifold: [{grid: {length: [20, 30]}}]}\n"
            "  boolean: {params: {}}"
        )
    )

    assert points(config, "short") == [(4, ("default",))]
    assert points(config, "long") == [(20, ("default",)), (30, ("default",))]
    assert config.manifold("boolean")[0] == "boolean"
    assert config.manifold("long")[0] == "arithmetic"


def test_parse_config__tells_the_mistakes_of_all_tasks() -> None:
    wrong = "{params: {length: -1}}"
    tasks = f"nope: {wrong}\n  sort: {wrong}\n  nine: {{task: nonesuch, params: {{}}}}\n  boolean: {wrong}"
    found = problems(text(tasks=tasks))

    fields = [line.split(": ")[1] for line in found]
    assert fields == [
        "tasks.nope", "tasks.sort.params.length", "tasks.nine.task", "tasks.boolean.params.length"
    ]  # fmt: skip


def test_from_mapping__round_trip_of_every_form() -> None:
    config = parse_config(
        text(
            tasks=f"a: {{task: arithmetic, params: {{max_depth: 1}}, manifold: [{{grid: {{length: {SLIDING}, "
            "min_number: -3, max_number: [3, 9]}, tiers: {easy: 0, hard: 2}}]}",
            views="v: {where: {task: a, param_length: {min: 4}, tier: [easy]}, trials: 3, unique_only: true}",
            precision="high",
        )
    )

    assert from_mapping(config.model_dump()) == config
    assert from_mapping(config.model_dump(mode="json")) == config


def grid(axis: str, more: str = "") -> str:
    return text(tasks=f"arithmetic:\n    manifold:\n    - grid:\n        length: {axis}\n{more}")


AXIS = "c.yaml:9: tasks.arithmetic.manifold[0].grid.length"
BAD = {
    "window past the end": (
        grid(SLIDING, "degree: 3"),
        (
            f"{AXIS}.window: length: a window of 4 after the first 3 values (degree 3) reaches past the end of a range "
            "of 6; the largest degree is 2, or give the range more values"
        ),
    ),
    "window past the end for one tier": (
        grid(SLIDING, "      tiers: {easy: 0, hard: 5, hopeless: 6}"),
        (
            f"{AXIS}.window: length: a window of 4 after the first 5 values (degree 5) reaches past the end of a range "
            "of 6; the largest degree is 2, or give the range more values"
        ),
    ),
    "value of a range": (
        grid("{range: [4, 99]}", "      tiers: {easy: 0, hard: 5}"),
        f"{AXIS}.range[1]: length must be a whole number from 3 to 50, got 99",
    ),
    "empty range": (grid("{range: []}"), f"{AXIS}.range: must not be empty. Give at least one"),
    "no range": (
        grid("{window: {body: 1}}"),
        f"{AXIS}.range: is missing. Add it: Values of the param, the easiest first",
    ),
    "misspelt range": (grid("{rang: [4]}"), f"{AXIS}.rang: unknown field 'rang'. Did you mean 'range'?"),
    "misspelt window": (
        grid("{range: [4], window: {bodi: 1}}"),
        f"{AXIS}.window.bodi: unknown field 'bodi'. Did you mean 'body'?",
    ),
    "no body": (
        grid("{range: [4], window: {body: 0}}"),
        f"{AXIS}.window.body: must be at least 1, got 0",
    ),
    "wrong skip": (
        grid("{range: [4], window: {body: 1, skip: {tier: 2}}}"),
        (
            f"{AXIS}.window.skip: must be a number of values, degree or {{degree: 2}}, got a mapping. "
            "Write skip: degree"
        ),
    ),
    "negative degree": (text(degree="-1"), "c.yaml:8: degree: must be at least 0, got -1"),
    "unknown density": (
        text(density="sparse"),
        "c.yaml:8: density: must be one of 'normal', 'lowdef' or 'corner', got 'sparse'",
    ),
    "degree beside degrees": (
        grid("[4]", "      tiers: {easy: 0}\n      degree: 1"),
        (
            "c.yaml:11: tasks.arithmetic.manifold[0].degree: tiers have degrees of their own, so that degree "
            "has no use. Remove degree, or write tiers as a list"
        ),
    ),
    "no tier": (
        grid("[4]", "      tiers: {}"),
        "c.yaml:10: tasks.arithmetic.manifold[0].tiers: must not be empty. Give at least one",
    ),
    "blank tier": (
        grid("[4]", "      tiers: [easy, ' ']"),
        "c.yaml:10: tasks.arithmetic.manifold[0].tiers[1]: must not be blank, got ' '. Give it a name",
    ),
    "no points": (
        text(tasks="arithmetic: {rubric: Be brief.}"),
        (
            "c.yaml:6: tasks.arithmetic.manifold: is missing. Add it: entries, each a grid or points; or give params, "
            "for a single point"
        ),
    ),
    "unknown task behind a label": (
        text(tasks="mine:\n    params: {length: 4}\n    task: aritmetic"),
        "c.yaml:8: tasks.mine.task: unknown task 'aritmetic'. Did you mean 'arithmetic'?",
    ),
    "unknown fixed param": (
        text(
            tasks="arithmetic:\n    params:\n      lenght: 4\n    manifold: [{points: [{}, {}]}, {grid: {length: 4}}]"
        ),
        "c.yaml:8: tasks.arithmetic.params.lenght: unknown field 'lenght'. Did you mean 'length'?",
    ),
    "fixed param out of range": (
        text(tasks="arithmetic:\n    params:\n      length: 99"),
        "c.yaml:8: tasks.arithmetic.params.length: length must be a whole number from 3 to 50, got 99",
    ),
    "trials and precision": (
        text(trials="16", precision="low"),
        (
            "c.yaml:9: precision: excludes trials (16): precision decides how many trials a cell has. "
            "Remove one of the two"
        ),
    ),
    "unknown precision": (
        text(precision="hihg"),
        (
            "c.yaml:8: precision: must be one of low, medium, high or a mapping, got 'hihg'. "
            "Or write {base: 32, target: 0.09, max: 192}"
        ),
    ),
    "percent for a fraction": (
        text(precision="{base: 32, target: 9, max: 192}"),
        "c.yaml:8: precision.target: must be less than 0.5, got 9",
    ),
    "less than the base": (
        text(precision="{base: 32, target: 0.09, max: 16}"),
        "c.yaml:8: precision.max: must be at least base (32), got 16. Raise it",
    ),
    "precision without its target": (
        text(precision="{base: 32, max: 64}"),
        "c.yaml:7: precision.target: is missing. Add it: Half-width of the interval to reach, such as 0.06 for ±6%",
    ),
}


@with_cases(("source", "expected"), BAD.values())
def test_parse_config__tells_one_mistake_once(source: str, expected: str) -> None:
    assert problems(source) == [expected]


@pytest.mark.parametrize(
    ("level", "base", "target", "most"),
    [
        ("low", 32, 0.09, 192),
        ("medium", 64, 0.06, 512),
        ("high", 128, 0.04, 1280),
        ("{base: 10, target: 0.1, max: 40}", 10, 0.1, 40),
    ],
)
def test_precision__decides_the_trials(level: str, base: int, target: float, most: int) -> None:
    config = parse_config(text(precision=level))

    assert config.precision is not None
    assert (config.precision.base, config.precision.target, config.precision.max) == (base, target, most)
    assert config.trials == base
    assert parse_config(text(precision=level, trials=str(base))) == config


def test_trials__without_precision() -> None:
    assert (parse_config(text()).trials, parse_config(text()).precision) == (32, None)


READER = "arithmetic:\n    params: {{length: 4}}\n    reader: {}\n"


def test_reader__is_a_pattern_or_a_graders_name() -> None:
    task = parse_config(
        text(tasks=READER.format("{pattern: '#### ([0-9]+)', take: last, ignore: [',']}"))
    ).tasks["arithmetic"]

    assert task.reader is not None
    assert task.reader.described() == {
        "name": "theirs",
        "pattern": "#### ([0-9]+)",
        "take": "last",
        "ignore": [","],
    }
    named = parse_config(text(tasks=READER.format("team:strict"))).tasks["arithmetic"].reader
    assert named is not None
    assert named.described() == {"name": "team:strict", "grader": "team:strict"}


@with_cases(
    ("reader", "rule"),
    [
        ("{}", "must have either pattern or grader"),
        ("{pattern: a, grader: b}", "must have either pattern or grader"),
        ("{pattern: '(a'}", "is no regular expression"),
        ("{pattern: a, ignore: ['(']}", "is no regular expression"),
        ("{pattern: '(a)', group: 2}", "the pattern has no group 2"),
        ("{pattern: a, take: best}", "first"),
        ("{patern: a}", "unknown field 'patern'"),
    ],
)
def test_reader__one_mistake_is_one_problem(reader: str, rule: str) -> None:
    (problem,) = problems(text(tasks=READER.format(reader)))

    assert "tasks.arithmetic.reader" in problem
    assert rule in problem


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{{ prompt }} {{ params.none }}", "(with task arithmetic)"),
        ("{{ prompt }} {{ 1 / 0 }}", "fails: ZeroDivisionError"),
        ("Hello.", "never uses the prompt"),
    ],
)
def test_renders__names_the_task_if_its_params_are_what_fails(content: str, told: str) -> None:
    templates = f'bad: [{{role: user, content: "{content}"}}]'

    (line,) = problems(text(tasks="arithmetic: {params: {length: 4}}", templates=templates))

    assert told in line
    assert ("with task" in line) == ("params" in content)
