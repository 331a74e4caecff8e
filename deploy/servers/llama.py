"""Local models served by llama.cpp: your own GGUF file, or the small model that comes as a wheel."""

from __future__ import annotations

from pathlib import Path

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers import local_model
from evalcube.deploy.servers.managed import ManagedServer, module_path, python_module


class LlamaServer(ManagedServer):
    """llama.cpp behind OpenAI's chat completions API, on the loopback address.

    Parameters
    ----------
    model_path
        GGUF file; None is SmolLM2-135M-Instruct from its wheel.
    slots
        Requests served at the same time; more wait.

    Raises
    ------
    DeployError
        The wheels are not installed, or there is no such file.
    """

    def __init__(self, model_path: Path | None = None, *, slots: int = 4) -> None:
        local_model.require_server()
        path = local_model.model_path() if model_path is None else model_path.resolve()
        if not path.is_file():
            raise DeployError(f"no model file {path}", remedy="Give the path of a GGUF file.")
        arguments = ("--model", str(path), "--slots", str(slots))
        super().__init__(
            python_module("evalcube.deploy.servers.llama_child", *arguments),
            name=f"the local model {path.stem}",
            env={**module_path(), "OMP_WAIT_POLICY": "passive"},
            start_timeout=180.0,
            remedy="Check that the file is a GGUF model and that its context fits in memory.",
        )
