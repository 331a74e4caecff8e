"""The child process of `evalcube.deploy.servers.local_model`: llama.cpp's own HTTP server until its parent is gone."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from evalcube.deploy.servers.guard import when_parent_dies

_CONTEXT = 2048
"""Tokens of prompt and reply together, for each slot."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, SIGINT or the end of standard input."""
    parser = argparse.ArgumentParser(
        prog="python -m evalcube.deploy.servers.llama_child", description=__doc__
    )
    parser.add_argument("--model", required=True, help="path of a GGUF file")
    parser.add_argument("--slots", type=int, required=True, help="requests served at the same time")
    options = parser.parse_args(arguments)
    # First of all: loading the library and the model takes seconds, in which the parent may end, too.
    when_parent_dies(_leave)

    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = options.model
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0  # a free one; the line below tells the parent which
    settings.offline = True
    settings.ui = False
    settings.model_alias = {Path(options.model).stem}
    settings.n_parallel = options.slots
    settings.n_ctx = _CONTEXT * options.slots
    # One is best where other work shares the cores.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(settings)
    # From here on the server's threads would keep the interpreter from ending by itself.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _leave())
    sys.stdout.write(f"listening on {server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


def _leave() -> None:
    os._exit(0)  # the C++ server's threads would keep the interpreter from finishing


if __name__ == "__main__":
    main()
