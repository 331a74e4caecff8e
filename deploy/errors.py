"""Errors of clusters, managed servers and the simulator.

DeployError            a server or cluster did not start, answer or stop
├── ClusterError       a cluster cannot be started or reached, or its nodes cannot run our code
└── SimulatorError     a setting of the simulated model is out of range (also a ValueError)
"""

from __future__ import annotations

from functools import partial

from evalcube import EvalcubeError


class DeployError(EvalcubeError):
    """A cluster or a server that did not start, answer or stop.

    Parameters
    ----------
    message
        What failed, with the offending value.
    remedy
        What to do about it, a sentence.
    log
        Last lines of the failed process's output, if there are any.
    """

    def __init__(self, message: str, *, remedy: str = "", log: str = "") -> None:
        super().__init__(message, remedy)
        self.log = log

    def __str__(self) -> str:
        tail = f"The last lines of its output:\n{self.log}" if self.log else ""
        return "\n".join(part for part in (self.message, tail, self.remedy) if part)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), remedy=self.remedy, log=self.log), (self.message,)


class ClusterError(DeployError):
    """A cluster cannot be started or reached, or its nodes cannot run our code."""


class SimulatorError(DeployError, ValueError):
    """A setting of the simulated model, of its truth or of a fault rule breaks a rule.

    Parameters
    ----------
    field
        Name of the setting, with its path where it is nested: ``rules[0].share``.
    value
        The value that was refused.
    rule
        What the value must be.
    """

    def __init__(self, field: str, value: object, rule: str) -> None:
        self.field = field
        self.value = value
        self.rule = rule
        super().__init__(f"{field} = {value!r:.120}: {rule}")

    def __reduce__(self) -> tuple[object, ...]:
        return SimulatorError, (self.field, self.value, self.rule)
