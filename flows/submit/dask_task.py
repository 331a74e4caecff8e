"""The task that keeps a sweep's driver on a Dask worker: a process of its own, whose words it passes on."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from typing import Any

from distributed import get_worker, secede


def drive(order: dict[str, Any]) -> dict[str, Any]:
    """Run a sweep's driver to its end; what came of it.

    Parameters
    ----------
    order
        The fields of an `evalcube.flows.submit.dask_driver.DriverOrder`.

    Raises
    ------
    RuntimeError
        The process ended without a word, so that the scheduler is to try again.
    """
    worker = get_worker()
    # It waits for days and computes nothing: the thread is the cluster's.
    secede()
    tls = {name: getattr(worker.security, f"tls_{place}", None) for name, place in _TLS.items()}
    there = {
        "address": worker.scheduler.address,
        "worker": worker.address,
        "tls": tls if all(tls.values()) else None,
    }
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "evalcube.flows.submit.dask_driver"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - they are pipes
    answer: dict[str, Any] = {}
    # Its input stays open: where it ends, this process has, and the driver with it.
    with process, process.stdin:
        process.stdin.write(json.dumps({**order, **there}) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            message = json.loads(line)
            answer = message if {"done", "failed"} & message.keys() else answer
            with suppress(Exception):  # whoever submitted it may listen no more
                worker.log_event(order["name"], message)
    if not answer:
        raise RuntimeError(
            f"the driver ended with code {process.returncode}; its own words are in the worker's log"
        )
    return answer


_TLS = {"ca": "ca_file", "cert": "worker_cert", "key": "worker_key"}
