"""Preloaded by workers: some trials kill the process that makes or grades them, as a crash in native code does.

The environment variable `VARIABLE` names them: a list of {"when": "make" or "grade", "length": L, "trial": I}, of the
task arithmetic.
"""

import json
import os
import signal
from pathlib import Path

VARIABLE = "EVALCUBE_CHAOS_POISON"
DEATHS = "EVALCUBE_CHAOS_DEATHS"
"""File that gets a byte for each death."""


def dask_setup(worker):  # noqa: ARG001 - the interface of preloads
    """Put the poison in."""
    from evalcube.flows.run.worker import tasks
    from evalcube.stages.generate import Cell

    poison = {(one["when"], one["length"], one["trial"]) for one in json.loads(os.environ[VARIABLE])}
    make, grade = Cell.trial, tasks.grade_reading

    def make_trial(cell, index):
        _die_if(cell.task.name == "arithmetic" and ("make", cell.plain_params["length"], index) in poison)
        return make(cell, index)

    def grade_trial(reading, cell, trial, *second):
        if cell.task.name == "arithmetic":
            here = ("grade", cell.plain_params["length"])
            _die_if(any((when, where) == here and trial == make(cell, i) for when, where, i in poison))
        return grade(reading, cell, trial, *second)

    Cell.trial, tasks.grade_reading = make_trial, grade_trial


def _die_if(condition):
    if condition:
        with Path(os.environ[DEATHS]).open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
