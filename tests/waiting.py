"""Waiting for what another process, thread or machine brings about, as long as the slowest of them takes."""

import time

PATIENCE = 200.0
"""Seconds after which something hangs that takes moments on a calm machine: nothing here says how fast it must be."""


def wait_until(condition, *, told=lambda: "it did not come about in time", pause=0.02):
    """Wait until `condition` returns something true, and return that; `told` says what there is instead."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, told()
        time.sleep(pause)
    return found
