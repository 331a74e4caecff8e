"""Tells Python's logging what a run notes and how it ends, under the name ``evalcube``, for programs that listen."""

from __future__ import annotations

import logging

from evalcube.flows.run.events import Event, Finished, Noted

_LOGGER = logging.getLogger("evalcube")
_LOGGER.addHandler(logging.NullHandler())  # silent unless somebody listens


def to_logging(event: Event) -> None:
    """A subscriber: what a reader should act on is a warning, all else information."""
    if isinstance(event, Noted):
        _LOGGER.log(
            logging.WARNING if event.urgent else logging.INFO, "%s", event.message
        )  # no log holds what a server said
    elif isinstance(event, Finished):
        _LOGGER.log(
            logging.INFO if event.reason == "complete" else logging.WARNING, "the run is %s", event.reason
        )
