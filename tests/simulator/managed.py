"""The tests' simulator as a managed server."""

from __future__ import annotations

import os
from pathlib import Path

from evalcube.deploy.servers.managed import ManagedServer, python_module

ROOT = Path(__file__).parents[2]


class Simulator(ManagedServer):
    """The simulated model's server. One serves any number of models: their profiles are in their names.

    Parameters
    ----------
    faults
        JSON list of the fault rules to begin with; see `tests.simulator.faults.Rule`.
    key_env
        Environment variable with the API key that clients must send; None lets all in.
    requests_log
        File that gets one line for each finished request.
    start_timeout
        Seconds until the server must be ready.
    """

    def __init__(
        self,
        *,
        faults: str = "[]",
        key_env: str | None = None,
        requests_log: Path | None = None,
        start_timeout: float = 30.0,
    ) -> None:
        arguments = ["--port", "0", "--follow-parent", "--faults", faults]
        if key_env is not None:
            arguments += ["--key-env", key_env]
        if requests_log is not None:
            arguments += ["--log", str(requests_log)]
        super().__init__(
            python_module("tests.simulator", *arguments),
            name="the simulated model",
            env={"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))},
            start_timeout=start_timeout,
        )
