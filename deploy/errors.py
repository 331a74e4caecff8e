"""What went wrong in, what the user should do out: the errors of clusters and managed servers.

DeployError            a server or cluster did not start, answer or stop
└── SimulatorError     a setting of the simulated model is out of range (also a ValueError)
"""

from __future__ import annotations


class DeployError(Exception):
    """A failure that the user can act on, told in one message.

    Parameters
    ----------
    message
        What failed, with the offending value.
    remedy
        What to do about it, a sentence.
    log
        Last lines of the failed process's log, if there are any.
    """

    def __init__(self, message: str, *, remedy: str = "", log: str = "") -> None:
        self.message = message
        self.remedy = remedy
        self.log = log
        tail = f"Its last words were:\n{log}" if log else ""
        super().__init__("\n".join(part for part in (message, tail, remedy) if part))


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
        super().__init__(f"{field} = {_short(value)}: {rule}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
