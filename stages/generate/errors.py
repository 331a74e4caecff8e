"""The error of tasks, of their params and of plugins."""

from __future__ import annotations

from evalcube import EvalcubeError

PARAMS_ELSEWHERE = {"num_terms": "length", "num_steps": "length", "nesting": "max_depth"}
"""What ReasonScape calls params of ours: errors hint at these."""


class TaskError(EvalcubeError, ValueError):
    """An unknown or impossible param of a task, an empty grid, or a broken plugin.

    Parameters
    ----------
    message
        Rule, offending value and remedy, without the location.
    field
        The param concerned, or None when the mistake is not about one param.
    value
        The offending value as the user wrote it.
    entry
        Index of the manifold entry, from 0, or None.
    where
        Path inside that entry, such as ``("grid", "length", 2)``.
    """

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        value: object = None,
        entry: int | None = None,
        where: tuple[str | int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
        self.entry = entry
        self.where = where

    def __str__(self) -> str:
        path = "" if self.entry is None else f"manifold[{self.entry}]"
        for step in self.where:
            path += f"[{step}]" if isinstance(step, int) else f".{step}"
        return f"{path}: {self.message}" if path else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (
            type(self),
            (self.message,),
            self.__dict__,
        )  # what is given by keywords comes with the attributes


def file_error(path: str, why: str) -> TaskError:
    """An error about a data set's file, whose name begins the message."""
    return TaskError(f"{path} {why}", field="file", value=path)


class CodeError(TaskError):
    """Code that a cube names is not at hand, or is not run on its word: a task, or a grader."""
