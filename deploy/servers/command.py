"""Any model server that a command starts, on a free port of this machine, and the commands of well-known ones."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers.guard import GRACE_SECONDS, OUTER_PATH
from evalcube.deploy.servers.managed import ManagedServer, module_path, python_module

HOST = "127.0.0.1"
"""Where servers listen: whoever else may use the machine's network has no business there."""
_PROMPT_TOKENS = 8192
_UNKNOWN_TOKENS = 24_576


@dataclass(frozen=True)
class Preset:
    """How one kind of server is started."""

    command: str
    """Words with ``{model}``, ``{name}`` (what requests call it), ``{host}``, ``{port}`` and ``{context}`` in them."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that it needs, with the same words in them."""
    file_ending: str = ""
    """What paths of weights end with that are given by `of_file` in place of `command`."""
    of_file: str = ""


_LISTENING = "--host {host} --port {port}"

PRESETS: Mapping[str, Preset] = {
    "vllm": Preset(f"vllm serve {{model}} --served-model-name {{name}} {_LISTENING}"),
    "sglang": Preset(
        f"python3 -m sglang.launch_server --model-path {{model}} --served-model-name {{name}} {_LISTENING}"
    ),
    "llama.cpp": Preset(
        f"llama-server --hf-repo {{model}} --alias {{name}} {_LISTENING}",
        file_ending=".gguf",
        of_file=f"llama-server --model {{model}} --alias {{name}} {_LISTENING}",
    ),
    # It serves whatever it has, each model under its own name, and takes its address from a variable. Its own context
    # is 4096 tokens on small GPUs, prompt and answer together, whatever a request's `max_tokens` says: what is longer
    # is cut without a word. Requests in OpenAI's form cannot ask for more, so the server is told.
    "ollama": Preset("ollama serve", {"OLLAMA_HOST": "{host}:{port}", "OLLAMA_CONTEXT_LENGTH": "{context}"}),
}
"""All presets by name."""


def preset_command(name: str, model: str, arguments: Sequence[str] = ()) -> tuple[str, ...]:
    """The command of a preset for some weights, with ``{name}``, ``{host}`` and ``{port}`` still in it.

    Examples
    --------
    >>> preset_command("ollama", "qwen3:8b")
    ('ollama', 'serve')
    >>> preset_command("llama.cpp", "/weights/a.gguf", ["-ngl", "99"])[:3]
    ('llama-server', '--model', '/weights/a.gguf')
    """
    preset = PRESETS[name]
    words = preset.of_file if preset.file_ending and model.endswith(preset.file_ending) else preset.command
    return (*(model if word == "{model}" else word for word in words.split()), *arguments)


def context_length(answer_tokens: int) -> int:
    """Tokens of prompt and answer together that a server is to have room for.

    Examples
    --------
    >>> context_length(2000), context_length(32_000), context_length(0)
    (10240, 40960, 32768)
    """
    return -(-(_PROMPT_TOKENS + (answer_tokens or _UNKNOWN_TOKENS)) // 1024) * 1024


def fill_in(text: str, words: Mapping[str, object]) -> str:
    """A text with ``{port}`` and the like replaced; other braces stay, as arguments may be JSON.

    Examples
    --------
    >>> fill_in('--port={port} {"a": 1}', {"port": 8000})
    '--port=8000 {"a": 1}'
    """
    for name, value in words.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


class CommandServer(ManagedServer):
    """A model server in processes of its own, which end with this one, even if that is killed.

    Parameters
    ----------
    command
        Program and arguments, with ``{host}``, ``{port}`` and other words in them.
    name
        What error messages call the server.
    words
        What stands for other words in the command and in `env`, such as ``model``.
    env
        Environment variables to add, with the same words in them.
    secrets
        Environment variable of the server -> variable of this process with the value, which is shown nowhere.
    start_timeout
        Seconds until it must be healthy.

    Raises
    ------
    DeployError
        A variable of `secrets` is not set.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        words: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        start_timeout: float = 1200.0,
    ) -> None:
        hidden = {variable: _secret(source, name) for variable, source in (secrets or {}).items()}
        self.port, self._reserved = _free_port()
        fields = {**(words or {}), "host": HOST, "port": str(self.port)}
        plain = {variable: fill_in(text, fields) for variable, text in (env or {}).items()}
        outer = os.environ.get("PYTHONPATH", "")
        super().__init__(
            python_module("evalcube.deploy.servers.guard", *(fill_in(word, fields) for word in command)),
            name=name,
            env={**plain, **hidden, **module_path(), OUTER_PATH: plain.get("PYTHONPATH", outer)},
            start_timeout=start_timeout,
            remedy="Look at its output, correct the command under `serve:`, and run the same command again.",
            address=f"http://{HOST}:{self.port}",
            hidden=tuple(hidden.values()),
            stop_seconds=GRACE_SECONDS + 5.0,
        )

    def start(self) -> None:
        """See `ManagedServer.start`; the port was kept free for it until now."""
        # At the last moment: between here and the server's own bind, another process could take the port.
        self.release()
        super().start()

    def release(self) -> None:
        """Keep the port free no longer."""
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None


def _secret(variable: str, name: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        problem = f"{name} needs the environment variable {variable}, which is not set"
        raise DeployError(problem, remedy="Export it in this shell, and run the same command again.")
    return value


def _free_port() -> tuple[int, socket.socket | None]:
    """A port that nobody uses, and the socket that holds it until the server is started.

    On machines with many users the ports between two starts are taken by others; one that is bound is not given away.
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Bound, never listening: the server may bind the port as soon as this socket is closed.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((HOST, 0))
    return int(held.getsockname()[1]), held
