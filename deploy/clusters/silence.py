"""Keeps Dask's loggers from printing what the driver says, or nobody needs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from evalcube._together import Together

CLIENTS = ("distributed.client", "distributed.batched", "tornado.application")
"""Loggers that tell of a lost connection with a traceback: the driver reports that, once."""
EVERYTHING = (*CLIENTS, "distributed", "bokeh")
"""... and of clusters that nobody looks at but their run."""


@contextmanager
def _muted(name: str) -> Iterator[None]:
    # Dask's own silence lies on the handlers, and is undone by each cluster for itself.
    logger = logging.getLogger(name)
    level, handlers = logger.level, [(handler, handler.level) for handler in logger.handlers]
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
        for handler, before in handlers:
            handler.setLevel(before)


_MUTED = {name: Together(partial(_muted, name)) for name in EVERYTHING}


@contextmanager
def quiet(names: tuple[str, ...] = CLIENTS) -> Iterator[None]:
    """Keep some of Dask's loggers from printing."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(_MUTED[name]())
        yield
