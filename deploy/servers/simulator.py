"""The project's own simulated model as a managed server."""

from __future__ import annotations

from evalcube.deploy.servers.managed import ManagedServer, module_path, python_module


class Simulator(ManagedServer):
    """The simulated model's server. One serves any number of models: their profiles are in their names."""

    def __init__(self) -> None:
        super().__init__(
            python_module("evalcube.deploy.simulator", "--port", "0", "--follow-parent"),
            name="the simulated model",
            env=module_path(),
        )
