"""Tasks `lm-eval:NAME`: the questions of a generative task of lm-evaluation-harness, graded as it grades them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, ClassVar, Literal, cast

from pydantic import Field, model_validator

from evalcube.stages.generate.base import TaskParams, Trial
from evalcube.stages.generate.dataset import Dataset
from evalcube.stages.generate.dataset.books import RowView
from evalcube.stages.generate.dataset.hub import shelf
from evalcube.stages.generate.dataset.matching import explain_withheld
from evalcube.stages.generate.dataset.params import DatasetParams
from evalcube.stages.generate.errors import CodeError, TaskError
from evalcube.stages.generate.foreign.bounded import Failure, ProcessLimits, ask
from evalcube.stages.generate.foreign.lm_eval_kept import DOOR, members, rendering
from evalcube.stages.generate.foreign.lm_eval_letters import LETTERED
from evalcube.stages.generate.stream import Stream
from evalcube.stages.named_code import folder_code, may_run

_GRADING = ProcessLimits(cpu_seconds=10, answers=500)
"""A task is built once for so many replies, which takes a part of the first one's time."""
_MOST_STOPS = 4
"""Stop sequences that servers take; a reply is cut at all of them anyway."""
_WRONG = "(wrong)"
_LONGEST = 300
_OWN = frozenset({"num_fewshot", "limit", "include_path", "filter", "metric", "graded_by", "order", "sha256"})
"""Params that a config may give; the others are those of the file that a task is rendered to."""
_FORMS: Mapping[str, Mapping[str, object]] = {
    "choice": {"kind": "choice", "answer": "letter", "options": "choices", "answer_is": "letter"},
    "number": {"kind": "number", "answer": "target", "answer_after": "####"},
    "text": {"kind": "text", "answer": "target"},
    DOOR: {"kind": "text", "answer": ""},
}
"""How each reader has the fields of the file."""


class LmEvalParams(DatasetParams):
    """Params of `LmEval`: its own, and those of the file that its task is rendered to."""

    num_fewshot: int | None = Field(
        None, ge=0, le=1000, description="Examples before the question; default: as the task says."
    )
    limit: int = Field(
        0, ge=0, le=10**9, description="The first questions only, as lm-eval limits them; 0 for all."
    )
    include_path: str = Field(
        "", description="Folder with tasks of yours, of which it is one; empty for lm-eval's own."
    )
    filter: str = Field("", description="Name of the task's filter that counts; default: its first one.")
    metric: str = Field("", description="Name of the task's metric that counts; default: its first one.")
    graded_by: Literal["auto", "choice", "number", "text", "lm-eval"] = Field(
        "auto",
        description="What decides whether a reply is right: evalcube's reader of choices, numbers or texts, with "
        "lm-eval's grade as the second reader's, or lm-eval alone; auto: the first reader that reads all references.",
    )

    @model_validator(mode="before")
    @classmethod
    def _file_is_rendered(cls, values: object) -> object:
        return {"file": "(not rendered yet)", **values} if isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _parts_go_together(self) -> LmEvalParams:
        # in place of the rules between a user's params; without `answer` lm-eval grades
        if self.kind == "json" or self.match != "auto":
            raise ValueError("kind and match are not for it: graded_by says how replies are read")
        return self

    def identity(self) -> dict[str, object]:
        """Those of the file; where the folder of a task lies makes no other task of it."""
        return {name: value for name, value in super().identity().items() if name != "include_path"}


class LmEval(Dataset):
    """Ask the questions of one of lm-eval's tasks.

    The task is rendered when a sweep is planned: prompt, references and document of each question are rows of a file,
    whose digest is in the cell's identity.

    Parameters
    ----------
    own_name
        What lm-eval calls the task.
    """

    version: ClassVar[int] = 1
    guess_rule: ClassVar[str] = "1/options where the reference is an option's letter, else 0"
    Params: ClassVar[type[TaskParams]] = LmEvalParams

    def __init__(self, own_name: str) -> None:
        super().__init__()
        self.own_name = own_name
        self.name = f"{DOOR}:{own_name}"  # type: ignore[misc]  # of an instance, here
        self.summary = f"the questions of lm-eval's task {own_name}"  # type: ignore[misc]

    def example(self) -> TaskParams:
        """The task as lm-eval has it."""
        return self.resolve(LmEvalParams())

    def resolve(self, params: TaskParams) -> TaskParams:
        """Render the task, and return the params with file, digest and number of rows, filter, metric and reader."""
        wanted = self._own(params)
        rendered = rendering(self.own_name, wanted.include_path, wanted.num_fewshot, wanted.limit)
        filters = cast("Mapping[str, Mapping[str, Any]]", rendered["filters"]) or {"": {"scores": {"": 1.0}}}
        chosen = _choose(wanted.filter, list(filters), "filter")
        scores = filters[chosen]["scores"]
        metric = _choose(wanted.metric, list(scores), "metric")
        if scores[metric] is None or not 0 <= scores[metric] <= 1:
            raise TaskError(
                f"metric {metric} of {self.name} scores no single reply from 0 to 1; there are {', '.join(scores)}",
                field="metric",
                value=metric,
            )
        sha256 = rendered["sha256"]
        if wanted.sha256 not in ("", sha256):
            raise TaskError(
                f"{self.name} renders to the SHA-256 {sha256} now, and not to the one that is given: lm-eval, the "
                "task or its data are others",
                field="sha256",
                value=wanted.sha256,
            )
        rendered_params: dict[str, object] = {
            "file": str(shelf.content(sha256)),
            "sha256": sha256,
            "format": "jsonl",
        }
        rendered_params |= {"id": "doc_id", "filter": chosen, "metric": metric}
        readers = ["choice"] if rendered["letters"] else []
        if filters.keys() != {""}:
            own = bool(rendered["own"]) or metric != "exact_match"
            readers += [DOOR] if own else ["number", "text", DOOR]
        return self._with_reader(wanted.model_copy(update=rendered_params), readers)

    def _with_reader(self, params: LmEvalParams, readers: Sequence[str]) -> TaskParams:
        """The params with the reader that is asked for, or else the first one that reads all references."""
        asked = params.graded_by
        if asked == "choice" and asked not in readers:
            raise TaskError(
                f"references of {self.name} are no letters of options", field="graded_by", value=asked
            )
        if readers == ["choice"] and asked not in ("auto", "choice"):
            raise TaskError(
                f"{self.name} asks for letters, which lm-eval does not: only graded_by choice reads them",
                field="graded_by",
                value=asked,
            )
        names = readers if asked == "auto" else [asked]
        for name in names:
            try:
                return super().resolve(params.model_copy(update={"graded_by": name, **_FORMS[name]}))
            except TaskError:
                if name == names[-1]:
                    raise
        raise AssertionError  # there is a last one

    def _own(self, params: TaskParams) -> LmEvalParams:
        """The params, of which a config gives no others than the task's own."""
        p = LmEvalParams.of(params)
        fixed = self.Params()
        for name in type(p).model_fields.keys() - _OWN - {"file"}:
            if getattr(p, name) != getattr(fixed, name):
                raise TaskError(
                    f"{self.name} has no param {name}: its task says how it asks. Remove it", field=name
                )
        if not p.include_path:
            return p
        folder = str(Path(p.include_path).absolute())
        _check_folder(folder)
        if not Path(folder).is_dir():
            raise TaskError(f"{folder} is no folder", field="include_path", value=p.include_path)
        return p.model_copy(update={"include_path": folder})

    # ---- trials

    def _trial(
        self,
        params: DatasetParams,  # noqa: ARG002
        view: RowView,
        place: int,
        stream: Stream,  # noqa: ARG002
        key: bytes | None = None,  # noqa: ARG002
    ) -> Trial:
        row = view.source.row(view.rows[place])
        item = view.item(place)
        task = cast("Mapping[str, Any]", row["task"])
        stop = task["sampler"]["stop"][:_MOST_STOPS]
        sampler = {name: value for name, value in task["sampler"].items() if name != "stop"}
        sampler |= {"stop": stop} if stop else {}
        extras = {**item.extras, "accepted": list(item.accepted), "sampler": sampler}
        extras |= {"lm_eval": {"task": task, "doc": row["doc"]}}
        prompt = cast("str", row["prompt"])  # not `item.question`, which is trimmed
        if item.options:
            names = tuple(ascii_uppercase[: len(item.options)])
            extras |= {"accepted": [names[item.right]], "choices": list(item.options)}
            return Trial(prompt, names[item.right], 1 / len(names), names, extras)
        answer = item.accepted[0] if item.accepted else cast("Sequence[str]", row["target"])[0][:_LONGEST]
        return Trial(prompt, answer, extras=extras)

    # ---- replies

    def has_reference(self, params: TaskParams) -> bool:  # noqa: ARG002
        """True: lm-eval grades."""
        return True

    def second_reader(self, params: TaskParams) -> str:
        """The filter's name, unless lm-eval is the first reader or has none."""
        p = LmEvalParams.of(params)
        return f"lm-eval {p.filter}" if p.filter and p.graded_by != DOOR else ""

    def theirs(self, text: str, params: TaskParams, trial: Trial) -> float | None:
        """The score of the filter and metric that count; None where the filter leaves nothing."""
        return self._counting(text, LmEvalParams.of(params), trial)[0]

    def _counting(self, text: str, params: LmEvalParams, trial: Trial) -> tuple[float | None, str]:
        """The score that counts, and what the filter that counts leaves; graded once, which takes long."""
        filtered = (self.scores(text, params, trial) or {}).get(params.filter)
        if filtered is None or filtered["left"].strip() in ("", "[invalid]"):
            return None, ""
        score = filtered["scores"][params.metric]
        return None if score is None else min(1.0, max(0.0, score)), filtered["left"][:_LONGEST]

    def scores(self, text: str, params: TaskParams, trial: Trial) -> Mapping[str, Any] | None:
        """By filter what it leaves of a reply, and its score by each metric; None if grading it does not end."""
        root = LmEvalParams.of(params).include_path
        if root:
            _check_folder(root)
        request = {
            **cast("Mapping[str, object]", trial.extras["lm_eval"]),
            "root": root,
            "text": _cut(text, trial),
        }
        scored = ask(DOOR, request, _GRADING)
        return None if isinstance(scored, Failure) else cast("Mapping[str, Any]", scored)

    def parse_reply(self, text: str, params: TaskParams, trial: Trial) -> str | None:
        """What the reader finds; where that is lm-eval, the reference if it is right, else what its filter leaves."""
        p = LmEvalParams.of(params)
        if p.graded_by != DOOR:
            return super().parse_reply(_cut(text, trial), p, trial)
        score, left = self._counting(text, p, trial)
        if score is None:
            return None
        if score >= 1:
            return trial.answer
        return left if left != trial.answer else _WRONG

    def grade_reply(self, answer: str, params: TaskParams, trial: Trial) -> bool:
        """Whether the answer is the reference, or one of several."""
        p = LmEvalParams.of(params)
        return answer == trial.answer if p.graded_by == DOOR else super().grade_reply(answer, p, trial)


def task(name: str) -> LmEval:
    """The task that lm-eval calls `name`; whether there is one is known when it is rendered."""
    return LmEval(name)


def members_of(name: str, folder: str) -> list[str]:
    """The tasks of a group or a tag such as ``lm-eval:mmlu``, of a user's folder or lm-eval's own; none of a task."""
    own_name = name.removeprefix(f"{DOOR}:")
    kind = LETTERED if own_name.startswith(LETTERED) else ""
    root = str(Path(folder).absolute()) if folder else ""
    return [f"{DOOR}:{kind}{member}" for member in members(own_name.removeprefix(kind), root)]


def _check_folder(folder: str) -> None:
    if not may_run(folder_code(folder)):
        raise CodeError(explain_withheld(folder_code(folder)), field="include_path", value=folder)


def _cut(text: str, trial: Trial) -> str:
    """A reply up to the first stop sequence."""
    for stop in cast("Mapping[str, Any]", trial.extras["lm_eval"])["task"]["sampler"]["stop"]:
        text = text.split(stop, 1)[0]
    return text


def _choose(asked: str, names: Sequence[str], field: str) -> str:
    if asked and asked not in names:
        raise TaskError(
            f"there is no {field} {asked}; the task has {', '.join(names)}", field=field, value=asked
        )
    return asked or names[0]
