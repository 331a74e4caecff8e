"""How well-known model servers are started: each one's command and variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

HOST = "127.0.0.1"
"""Where servers listen: whoever else may use the machine's network has no business there."""
_PROMPT_TOKENS = 8192
_UNKNOWN_TOKENS = 24_576


@dataclass(frozen=True)
class Preset:
    """How one kind of server is started."""

    command: tuple[str, ...]
    """Words with ``{model}``, ``{name}`` (what requests call it), ``{host}``, ``{port}`` and ``{context}`` in them."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that it needs, with the same words in them."""
    file_ending: str = ""
    """What paths of weights end with that are given by `of_file` in place of `command`."""
    of_file: tuple[str, ...] = ()


_LISTENING = ("--host", "{host}", "--port", "{port}")

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "vllm": Preset(("vllm", "serve", "{model}", "--served-model-name", "{name}", *_LISTENING)),
        "sglang": Preset(
            (
                *("python3", "-m", "sglang.launch_server", "--model-path", "{model}"),
                *("--served-model-name", "{name}", *_LISTENING),
            )
        ),
        "llama.cpp": Preset(
            ("llama-server", "--hf-repo", "{model}", "--alias", "{name}", *_LISTENING),
            file_ending=".gguf",
            of_file=("llama-server", "--model", "{model}", "--alias", "{name}", *_LISTENING),
        ),
        # It serves whatever it has, each model under its own name, and takes its address from a variable. Its own
        # context is 4096 tokens on small GPUs, prompt and answer together, whatever a request's `max_tokens` says: what
        # is longer is cut without a word. Requests in OpenAI's form cannot ask for more, so the server is told.
        "ollama": Preset(
            ("ollama", "serve"),
            {"OLLAMA_HOST": "{host}:{port}", "OLLAMA_CONTEXT_LENGTH": "{context}"},
        ),
    }
)
"""All presets by name."""


def preset_command(name: str, model: str, arguments: Sequence[str] = ()) -> tuple[str, ...]:
    """The command of a preset for some weights, with ``{name}``, ``{host}`` and ``{port}`` still in it.

    Parameters
    ----------
    name
        One of `PRESETS`.
    model
        Weights: a name on a model hub or a path.
    arguments
        Further ones, which come last.

    Examples
    --------
    >>> preset_command("ollama", "qwen3:8b")
    ('ollama', 'serve')
    >>> preset_command("llama.cpp", "/weights/a.gguf", ["-ngl", "99"])[:3]
    ('llama-server', '--model', '/weights/a.gguf')
    """
    preset = PRESETS[name]
    words = preset.of_file if preset.file_ending and model.endswith(preset.file_ending) else preset.command
    return (*(model if word == "{model}" else word for word in words), *arguments)


def context_length(answer_tokens: int) -> int:
    """Tokens of prompt and answer together that a server is to have room for.

    Parameters
    ----------
    answer_tokens
        Most tokens of an answer; 0 where nobody bounds it.

    Examples
    --------
    >>> context_length(2000), context_length(32_000), context_length(0)
    (10240, 40960, 32768)
    """
    return -(-(_PROMPT_TOKENS + (answer_tokens or _UNKNOWN_TOKENS)) // 1024) * 1024


def filled(text: str, words: Mapping[str, object]) -> str:
    """A text with ``{port}`` and the like replaced; other braces stay, as arguments may be JSON.

    Parameters
    ----------
    text
        One word of a command, or a variable's value.
    words
        What stands for each name.

    Examples
    --------
    >>> filled('--port={port} {"a": 1}', {"port": 8000})
    '--port=8000 {"a": 1}'
    """
    for name, value in words.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text
