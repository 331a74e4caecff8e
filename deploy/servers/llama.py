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
    context
        Tokens of prompt and reply together, for each slot.
    slots
        Requests served at the same time; more wait.
    threads
        Threads that compute. One is best where other work shares the cores.
    log
        File that gets the server's output.
    start_timeout
        Seconds until the model must be loaded.

    Raises
    ------
    DeployError
        The wheels are not installed, or there is no such file.
    """

    def __init__(
        self,
        model_path: Path | None = None,
        *,
        context: int = 2048,
        slots: int = 4,
        threads: int = 1,
        start_timeout: float = 180.0,
    ) -> None:
        for name, value in (("context", context), ("slots", slots), ("threads", threads)):
            if value < 1:
                raise DeployError(f"{name} = {value}: must be 1 or more")
        local_model.require_server()
        path = local_model.model_path() if model_path is None else model_path.resolve()
        if not path.is_file():
            raise DeployError(f"no model file {path}", remedy="Give the path of a GGUF file.")
        numbers = (("--context", context), ("--slots", slots), ("--threads", threads))
        arguments = [text for name, value in numbers for text in (name, str(value))]
        super().__init__(
            python_module("evalcube.deploy.servers.llama_child", "--model", str(path), *arguments),
            name=f"the local model {path.stem}",
            env={**module_path(), "OMP_WAIT_POLICY": "passive"},
            start_timeout=start_timeout,
            remedy="Check that the file is a GGUF model and that its context fits in memory.",
        )
