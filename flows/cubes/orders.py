"""Orders something of the run that works on a cube, from any machine that reaches it, and waits for the answer."""

from __future__ import annotations

import getpass
import platform
import time
from collections.abc import Sequence
from contextlib import suppress

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.control import COMMANDS, Answer, Order, clean, own_key, post, read_answer
from evalcube.storage.cube.address import Address
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import apparent_holder, read_holder
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError

_POLL_SECONDS = 0.25
_STORE_SECONDS = 1.0


def order(url: Address, command: str, words: Sequence[str] = (), *, wait: float = 30.0) -> Answer:
    """Order something of the run that works on a cube, and wait for its answer.

    Parameters
    ----------
    url
        The cube's address.
    command
        One of `evalcube.flows.plan.control.COMMANDS`.
    words
        What belongs to it: limits as in ``connections=4``, names of models.
    wait
        Seconds to wait for the answer.

    Returns
    -------
    Answer
        What the run did. Its text may come from whoever can write the cube.

    Raises
    ------
    SweepError
        If there is no such command, nobody works on the cube, or no answer came.
    StorageError
        If there is no cube, or it cannot be written.
    """
    _check(command, words)
    records = Cube.open(url).records
    holder = apparent_holder(records)
    if holder is None:
        raise SweepError(f"no run works on '{url}' at the moment", "Start one with `evalcube run`")
    sent = Order(command, clean(words), _sender(), time.time())
    number = post(records, holder.token, sent, own_key())
    deadline = time.monotonic() + wait
    while True:
        answer = read_answer(records, holder.token, number)
        if answer is not None:
            return answer
        if _is_over(records, holder.token):
            if command == "stop":
                return Answer(True, "the run has ended")
            raise SweepError(f"the run on '{url}' ended before it answered", "Nothing is left to be ordered")
        if time.monotonic() > deadline:
            raise SweepError(
                f"the run on '{url}' has not answered within {wait:g} s",
                "The order stays: the run follows it when it looks, as after waiting for workers",
            )
        time.sleep(_STORE_SECONDS if records.trusted else _POLL_SECONDS)


def _check(command: str, words: Sequence[str]) -> None:
    if command not in COMMANDS:
        raise SweepError(f"`command`: '{command}' is none", f"Give one of: {', '.join(COMMANDS)}")
    takes = {"limits": "limits, as in connections=4", "drop-model": "the name of a model"}
    if command in takes and not words:
        raise SweepError(f"`command`: {command} needs {takes[command]}", "Add it")
    if words and command not in takes:
        raise SweepError(f"`command`: {command} takes nothing more, got '{words[0]}'", "Leave it out")


def _is_over(records: Space, token: str) -> bool:
    try:
        found = read_holder(records)
    except (OSError, StorageError):
        return False  # a store that is away for a moment
    return found is None or found[0].token != token


def _sender() -> str:
    name = "somebody"
    with suppress(OSError, KeyError):  # a user without a name, as in some containers
        name = getpass.getuser()
    return f"{name}@{platform.node()}"
