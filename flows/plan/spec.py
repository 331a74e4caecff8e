"""The description of a sweep in a cube's attributes, checked: anyone may have written it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.evaluations import Evaluation, IdentityRecord, Judge, Values
from evalcube.stages.reply.status import BASE, COUNTERS, QUESTION_COUNTERS
from evalcube.storage.cube.cube import Coordinate

SPEC_FORMAT = 1
DIGEST = "spec_digest"
"""Attribute of a cube: what its description was when it was written."""

REMEDY = (
    "Take the cube from a copy, or run its sweep again: with the cache, nothing that it holds is asked again"
)


class PointSpec(IdentityRecord):
    """A point of a task; its params are checked by the task."""

    cell_id: str
    params: dict[str, Any]
    tiers: list[str]
    base: int = Field(ge=1, le=2**53)
    """Answers that the first plan gave the point, which is its weight."""
    older: bool = False
    """Whether its data file was edited since, so that another point of the task asks what is in it now."""

    def placed(self, files: Mapping[str, str]) -> dict[str, Any]:
        """The params with the path of their data file as it is in `files`, by SHA-256."""
        from evalcube.stages.generate.dataset.hub.address import with_files  # with all tasks

        params: dict[str, Any] = with_files(
            self.params, lambda named: files.get(str(named["sha256"]), named["file"])
        )
        return params


class TaskSpec(IdentityRecord):
    """A place on the task axis."""

    label: str
    name: str
    version: int
    points: list[PointSpec] = Field(min_length=1)
    assertions: list[Values] = Field(default_factory=list)
    rubric: str = ""
    reader: Values = Field(default_factory=dict)


class Spec(IdentityRecord):
    """A sweep's identity."""

    format: Literal[1]
    seed: int = Field(ge=0, le=2**63 - 1)
    evaluations: list[Evaluation] = Field(min_length=1)
    tasks: list[TaskSpec] = Field(min_length=1)
    judges: list[Judge] = Field(default_factory=list)
    asserted_prices: list[list[float]] = Field(default_factory=list)

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the cube's dimensions, as far as the spec decides them."""
        points = max(len(task.points) for task in self.tasks)
        return {"model": len(self.evaluations), "task": len(self.tasks), "params": points}


def parse_spec(spec: object, sizes: Mapping[str, int] | None = None) -> Spec:
    """Check a spec."""
    written = spec.get("format") if isinstance(spec, Mapping) else None
    if type(written) is int and written > SPEC_FORMAT:
        raise SweepError(
            f"the cube's description has format {written}; this version reads format {SPEC_FORMAT}",
            "Update evalcube",
        )
    try:
        parsed = Spec.model_validate(spec)
        json.dumps(spec, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise damaged_at("spec", "it has half a character, which is no Unicode") from None
    except ValidationError as error:
        raise damage_error(error) from None
    except RecursionError:
        raise damaged_at("spec", "nested too deep") from None
    for name, size in {**parsed.sizes, "counter": len(COUNTERS + QUESTION_COUNTERS)}.items():
        expected = size if sizes is None else sizes.get(name)
        if expected != size:
            raise damaged_at("spec", f"it lists {size} along {name}, and the cube's arrays have {expected}")
    return parsed


def description(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a cube that describe its sweep: its spec, and the digest of that."""
    return {"spec": spec, DIGEST: _digest(spec)}


def description_problem(attrs: Mapping[str, Any], parsed: Spec) -> str | None:
    """Why a cube's description is not what a run wrote; None if it may be."""
    for index, row in enumerate(parsed.evaluations):
        if row.eval_id != row.own_id:
            return (
                f"spec.evaluations[{index}].eval_id is '{row.eval_id:.40}', and not the digest of its fields"
            )
    if DIGEST in attrs and attrs[DIGEST] != _digest(attrs["spec"]):
        return "spec does not have the digest that stands beside it"
    return None


def in_short(value: object) -> str:
    """What a spec says somewhere, in at most 80 characters of JSON."""
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _digest(spec: object) -> str:
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:32]


def damage_error(error: ValidationError, *where: str | int) -> SweepError:
    """The error for what pydantic found below the place `where`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in ("spec", *where, *first["loc"])
    )
    return damaged_at(path[1:], first["msg"])


def damaged_at(where: str, what: str) -> SweepError:
    """The error for a description that no sweep wrote."""
    text = f"the cube's description is damaged or not by evalcube: {where}: {what}"
    return SweepError(" ".join(text.split()), REMEDY)


Array = npt.NDArray[np.int64]

_SAID = "answers (trials times repeats) that the first plan gave the point: its weight within the task"


def base_design_array(base: npt.NDArray[Any]) -> Coordinate:
    """The array (model, task, params) as a cube has it."""
    return Coordinate(BASE, ("model", "task", "params"), base.astype(np.int64), {"long_name": _SAID})


def described_base(spec: Spec, slots: int) -> Array:
    """What a description says of points, shape (task, params); 0 where there is none."""
    base = np.zeros((len(spec.tasks), slots), dtype=np.int64)
    for row, task in enumerate(spec.tasks):
        base[row, : len(task.points)] = [point.base for point in task.points]
    return base


def filled_base(stored: npt.NDArray[Any] | None, described: Array, models: int) -> Array:
    """Base design of each evaluation: what a cube has of it, and the description's for points that came later.

    Examples
    --------
    >>> filled_base(np.array([[[8, 0]], [[0, 0]]]), np.array([[32, 32]]), 2).tolist()
    [[[8, 8]], [[32, 32]]]
    """
    every = np.broadcast_to(described, (models, *described.shape))
    if stored is None or stored.shape != every.shape:
        return np.array(every)
    # A point that came later has no more than the others of its evaluation had at first.
    most = stored.max(axis=(1, 2), initial=0, keepdims=True)
    return np.where(stored > 0, stored, np.where(most > 0, np.minimum(every, most), every)).astype(np.int64)


def joined_base(parts: Sequence[Array]) -> Array:
    """Base design of evaluations from those of several cubes, 0 where a cube lacks an evaluation or a point.

    An evaluation keeps the design of its own cube. Where it is in several whose designs of a task have other ratios,
    the points of that task have the same weight.

    Examples
    --------
    >>> one, other = np.array([[[32, 32, 0]]]), np.array([[[0, 64, 8]]])
    >>> joined_base([one]).tolist(), joined_base([one, other]).tolist()
    ([[[32, 32, 0]]], [[[1, 1, 1]]])
    """
    most = np.maximum.reduce(parts)
    apart = np.zeros(most.shape[:2], dtype=bool)
    for part in parts:
        times = np.where(part > 0, most / np.where(part > 0, part, 1), np.nan)
        low, high = np.fmin.reduce(times, axis=-1), np.fmax.reduce(times, axis=-1)
        apart |= low < high
    return np.asarray(np.where(apart[..., np.newaxis], most > 0, most), dtype=np.int64)
