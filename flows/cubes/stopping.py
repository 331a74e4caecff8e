"""Asks the run that works on a cube to stop, from any machine that reaches the cube, and waits until it has heard."""

from __future__ import annotations

import getpass
import platform
import time
from contextlib import suppress

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.stopping import ask_to_stop, who_stops
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import apparent_holder, read_holder
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError
from evalcube.storage.urls import Address

PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.5


def stop_run(url: Address, *, wait: float = PATIENCE_SECONDS) -> bool:
    """Ask the run that works on a cube to stop in good order.

    Parameters
    ----------
    url
        The cube's address.
    wait
        Seconds to wait until it has heard.

    Returns
    -------
    bool
        Whether there is such a run.

    Raises
    ------
    SweepError
        If it has not heard by then.
    StorageError
        If there is no cube, or it cannot be written.
    """
    records = Cube.open(url).records
    holder = apparent_holder(records)
    if holder is None:
        return False
    ask_to_stop(records, holder.token, _sender())
    deadline = time.monotonic() + wait
    while who_stops(records, holder.token) and not _is_over(records, holder.token):
        if time.monotonic() > deadline:
            raise SweepError(
                f"the run on '{url}' has not answered within {wait:g} s",
                "It stops when it looks, as after starting a model's server; `evalcube status` shows whether it has",
            )
        time.sleep(_POLL_SECONDS)
    return True


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
