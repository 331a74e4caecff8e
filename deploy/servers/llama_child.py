"""The child process of `evalcube.deploy.servers.llama`: runs llama.cpp's own HTTP server until its parent is gone."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from evalcube.deploy.servers.lifeline import when_parent_dies


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, SIGINT or the end of standard input.

    Parameters
    ----------
    arguments
        The command line without the program's name; None is that of this process.
    """
    options = _parser().parse_args(arguments)
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
    settings.n_ctx = options.context * options.slots
    settings.cpuparams.n_threads = options.threads
    settings.cpuparams_batch.n_threads = options.threads
    server = xllamacpp.Server(settings)
    # From here on the server's threads would keep the interpreter from ending by itself.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _leave())
    sys.stdout.write(f"listening on {server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


def _leave() -> None:
    os._exit(0)  # the C++ server's threads would keep the interpreter from finishing


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evalcube.deploy.servers.llama_child", description=__doc__
    )
    parser.add_argument("--model", required=True, help="path of a GGUF file")
    parser.add_argument("--context", type=int, required=True, help="tokens of prompt and reply, per slot")
    parser.add_argument("--slots", type=int, required=True, help="requests served at the same time")
    parser.add_argument("--threads", type=int, required=True, help="threads that compute")
    return parser


if __name__ == "__main__":
    main()
