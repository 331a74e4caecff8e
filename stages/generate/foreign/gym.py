"""The tasks ``gym:NAME``: what the generators of reasoning-gym ask, scored by themselves, in a process of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, cast

from pydantic import Field, ValidationInfo, create_model, field_validator

from evalcube.stages.generate.answers.passages import passages
from evalcube.stages.generate.answers.texts import line_of, without_fence
from evalcube.stages.generate.base import Task, TaskParams, Trial
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign.bounded import Failure, ProcessLimits, ask, version_of
from evalcube.stages.generate.foreign.rendered import RenderedTask, Row

PACKAGE = "reasoning-gym"
_RENDERING = ProcessLimits(cpu_seconds=120, wall_seconds=600, memory=4 << 30, answer_bytes=256 << 20)
"""For a block."""
_KINDS: Mapping[str, type] = {"int": int, "float": float, "bool": bool, "str": str}
_CLOSING = "Give your final answer, and nothing else, between <answer> and </answer>."
_LONGEST = 100_000
"""Characters at the end of a reply in which its answer is looked for."""
_SHOWN = 60
"""Characters of the levels of an attribute that are shown."""


@cache
def catalogue() -> Mapping[str, Any]:
    """What is known of the generators of one version; `benchmarks/gym_catalogue.py` writes it."""
    document: Mapping[str, Any] = json.loads(files(__package__).joinpath("gym.json").read_text("utf-8"))
    return document


class GymParams(TaskParams):
    """Params that all generators have. What is not given is as the generator has it."""

    reasoning_gym: str = Field(
        "", max_length=40, description="Version of the package; found when the sweep is planned."
    )

    @field_validator("*", mode="before")
    @classmethod
    def _is_of_its_kind(cls, value: object, info: ValidationInfo) -> object:
        kinds = getattr(cls.model_fields[str(info.field_name)].annotation, "__args__", ())
        if value is not None and isinstance(value, bool) and kinds and bool not in kinds:
            raise ValueError("a number is expected" if str not in kinds else "a text is expected")
        if isinstance(value, str) and kinds and str not in kinds:
            raise ValueError("a number is expected" if bool not in kinds else "true or false is expected")
        return value

    def canonical(self) -> dict[str, object]:
        """What is given, with the version of the package: it has none for each generator."""
        return self.model_dump(mode="json", exclude_none=True)


def _level(most: int, description: str) -> tuple[Any, Any]:
    return int | None, Field(None, ge=0, le=most, description=description)


@cache
def params_of(name: str) -> type[GymParams]:
    """The class of a generator's params: levels of its curriculum, and its plain settings."""
    entry = catalogue()["generators"][name]
    description = GymParams.model_fields["reasoning_gym"].description
    fields: dict[str, tuple[Any, Any]] = {
        "reasoning_gym": (str, Field(catalogue()["version"], max_length=40, description=description)),
        "level": _level(
            entry["levels"] - 1, "Level of all attributes, or the last one of those that have fewer."
        ),
    }
    for attribute, levels in entry["attributes"].items():
        shown = _describe_levels(levels)
        fields[f"level_{attribute}"] = _level(len(levels) - 1, f"Level of {attribute}, in order: {shown}.")
    for setting, (kind, default) in entry["settings"].items():
        own = Field(
            None,
            description=f"Setting of the generator, {json.dumps(default)} where no level says otherwise.",
        )
        fields[setting] = (_KINDS[kind] | None, own)
    model: type[GymParams] = create_model(  # type: ignore[call-overload]  # fields by name
        f"{name}_params", __base__=GymParams, __module__=__name__, __doc__=f"Params of gym:{name}.", **fields
    )
    return model


def _describe_levels(levels: Sequence[Mapping[str, object]]) -> str:
    """The levels of an attribute in short."""
    texts = [" to ".join(dict.fromkeys(json.dumps(value) for value in level.values())) for level in levels]
    if len("; ".join(texts)) <= _SHOWN:
        return "; ".join(texts)
    short = len(texts[0] + texts[-1]) < _SHOWN
    return f"{texts[0]}; ...; {texts[-1]}" if short else f"{len(texts)} sets of weights"


def __getattr__(name: str) -> Any:  # noqa: ANN401 - so that params can be pickled by the name of their class
    generator = name.removesuffix("_params")
    if generator == name or generator not in catalogue()["generators"]:
        raise AttributeError(name)
    return params_of(generator)


def task(name: str) -> Task[Any]:
    """The task of a generator."""
    offered, refused = catalogue()["generators"], catalogue()["refused"]
    if name in offered:
        return Gym(name)
    if name in refused:
        raise TaskError(f"gym:{name} is not offered: {refused[name]}; take another generator", value=name)
    if not name:
        raise TaskError(
            f"gym: names no generator of {PACKAGE}; write gym:NAME with one of {', '.join(offered)}"
        )
    near = get_close_matches(name, offered, n=1)
    remedy = f"Did you mean 'gym:{near[0]}'?" if near else f"There are: {', '.join(offered)}"
    raise TaskError(f"{PACKAGE} has no generator '{name}'. {remedy}", value=name)


def read_answer(text: str, lines: int = 1) -> str | None:
    r"""The text of a reply's last answer tag, in as many lines as it has; else so many lines after a mark.

    Examples
    --------
    >>> read_answer("So: <answer>1 2\n3 4</answer>"), read_answer("The answer is 7."), read_answer("7")
    ('1 2\n3 4', '7', None)
    """
    text = text[-_LONGEST:]
    begin = text.rfind("<answer>")
    if begin < 0 and lines > 1:
        passage = next(passages(text), None)
        return "\n".join(passage.text.strip().splitlines()[:lines]).strip("` \n") or None if passage else None
    if begin < 0:
        return next(map(line_of, passages(text)), None)
    return without_fence(text[begin + len("<answer>") :].partition("</answer>")[0].strip()) or None


class Gym(RenderedTask[GymParams]):
    """Ask what a generator of reasoning-gym makes; right is what its scorer gives the whole score.

    Parameters
    ----------
    generator
        Its name there.
    """

    version = 1
    guess_rule = "measured for the points of the suite gym30, else 0"

    def __init__(self, generator: str) -> None:
        self._generator = generator
        self.name = f"gym:{generator}"  # type: ignore[misc]  # of an instance, here
        self.summary = f"what the generator {generator} of {PACKAGE} makes"  # type: ignore[misc]
        self.Params = params_of(generator)  # type: ignore[misc]

    def __reduce__(self) -> tuple[object, ...]:
        return task, (self._generator,)

    def resolve(self, params: GymParams) -> GymParams:
        """Check the version; whether the package is there matters where something is made or graded."""
        self._check_version(params)
        return params

    def _check_version(self, params: GymParams) -> None:
        wanted = catalogue()["version"]
        if params.reasoning_gym != wanted:
            raise TaskError(
                f"{self.name} of {PACKAGE} {params.reasoning_gym} cannot be made again: this version of evalcube knows "
                f"{wanted}; leave `reasoning_gym` out",
                field="reasoning_gym",
                value=params.reasoning_gym,
            )

    def check_package(self) -> None:
        """See that the package is there, in the version whose generators are known."""
        wanted, present = catalogue()["version"], _installed_version()
        if present != wanted:
            state = f"and {present} is installed" if present else "which is not installed"
            raise TaskError(
                f"{self.name} needs {PACKAGE} {wanted}, {state}. Run: pip install 'evalcube[gym]'",
                value=present,
            )

    def config(self, params: GymParams) -> dict[str, object]:
        """The settings that the params stand for."""
        values = params.canonical()
        settings: dict[str, object] = {}
        for attribute, levels in self._entry["attributes"].items():
            level = values.get(f"level_{attribute}", values.get("level"))
            if level is not None:
                settings |= levels[min(cast("int", level), len(levels) - 1)]
        return settings | {
            setting: values[setting] for setting in self._entry["settings"] if setting in values
        }

    @property
    def _entry(self) -> Mapping[str, Any]:
        entry: Mapping[str, Any] = catalogue()["generators"][self._generator]
        return entry

    def render(self, params: GymParams, seeds: Sequence[int]) -> Sequence[Row]:
        """Make an item for each seed, the first one of it."""
        if not _installed_version():
            self.check_package()
        self._check_version(params)
        config = self.config(params)
        rows = ask(
            "gym", {"render": {"name": self._generator, "config": config, "seeds": list(seeds)}}, _RENDERING
        )
        if isinstance(rows, Failure):
            values = {name: value for name, value in params.canonical().items() if name != "reasoning_gym"}
            raise TaskError(
                f"{self.name} makes no questions with {json.dumps(values)}: it {rows.reason.removeprefix('grader ')}; "
                "correct the params",
                value=values,
            )
        return cast("Sequence[Row]", rows)

    def trial(self, params: GymParams, row: Row) -> Trial:
        """The question of an item, with the form that the answer is to have."""
        prompt = f"{row['prompt']}\n\n{_CLOSING}"
        return Trial(prompt, str(row["target"]), self._floor(params), (), {"entry": row.get("entry")})

    def _floor(self, params: GymParams) -> float:
        values = params.canonical()
        if values.keys() != {"reasoning_gym", "level"}:
            return 0.0
        floors = catalogue()["floors"].get(self._generator, {})
        return float(floors.get(str(values["level"]), {"floor": 0.0})["floor"])

    def difficulty(self, params: GymParams) -> float:
        """1 and the sum of the levels: nothing else is known of how hard the items are."""
        values = params.canonical()
        levels = [
            min(cast("int", values.get(f"level_{attribute}", values.get("level", 0))), len(levels) - 1)
            for attribute, levels in self._entry["attributes"].items()
        ]
        return 1.0 + sum(levels)

    def parse(self, text: str) -> str | None:
        """The text between the tags, or else the first line after a mark of an answer."""
        return read_answer(text)

    def parse_reply(self, text: str, params: GymParams, trial: Trial) -> str | None:  # noqa: ARG002
        """As `parse`, with as many lines as the reference has where there are no tags."""
        return read_answer(text, trial.answer.count("\n") + 1)

    def grade_reply(self, answer: str, params: GymParams, trial: Trial) -> bool:  # noqa: ARG002
        """Whether the generator's scorer gives the whole score; what gives less is wrong, and so is what breaks it."""
        entry = trial.extras["entry"]
        if answer == trial.answer or entry is None:  # which then asks for the very text
            return answer == trial.answer
        score = ask("gym", {"name": self._generator, "answer": answer, "entry": entry})
        return isinstance(score, (int, float)) and score == 1


_installed_version = cache(lambda: version_of(PACKAGE))
"""Version of the package; empty if it is missing."""
