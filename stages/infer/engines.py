"""Finds out what serves a model: the engine, its version, and how the weights are quantised.

Pure: a generator yields paths to look up and receives documents; who drives it brings the socket. Only what engines say
of themselves is asked, and only those that were recognised by their list of models; no question is sent.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from evalcube.stages.reply.body import short_text

LISTING = "models"
"""Path of the list of models, below the base URL; others begin with / and are below the server's root."""

_OWNERS = {"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama.cpp", "library": "Ollama"}
"""What engines write as the owner of the models that they list."""
Identification = Generator[str, object, "EngineInfo | None"]


class EngineInfo(NamedTuple):
    """What serves a model; a field is empty where nobody says it."""

    engine: str
    version: str = ""
    quantization: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, self))


def identification(model: str) -> Identification:
    """Yield paths to look up, receive the documents (None where there is none), and return what serves a model.

    Parameters
    ----------
    model
        Name that is sent in requests.

    Returns
    -------
    EngineInfo or None
        None where the server does not say which engine it is.

    Examples
    --------
    >>> steps = identification("m")
    >>> next(steps), steps.send({"data": [{"id": "m", "owned_by": "vllm"}]})
    ('models', '/version')
    >>> try:
    ...     steps.send({"version": "0.11.0"})
    ... except StopIteration as found:
    ...     print(found.value)
    vLLM 0.11.0
    """
    entry = _entry((yield LISTING), model)
    engine = _OWNERS.get(str(entry.get("owned_by")))
    if engine == "vLLM":
        return EngineInfo(engine, _text((yield "/version"), "version"))
    if engine == "SGLang":
        info = yield "/server_info"
        if not isinstance(info, dict):
            info = yield "/get_server_info"  # what earlier versions call it
        return EngineInfo(engine, _text(info, "version"), _text(info, "quantization"))
    if engine == "llama.cpp":
        return EngineInfo(engine, _text((yield "/props"), "build_info"), _text(entry.get("meta"), "ftype"))
    if engine == "Ollama":
        version = _text((yield "/api/version"), "version")
        if not version:
            return None  # others list their models as a library's, too
        kept = _entry((yield "/api/tags"), model, listed="models", named="model")
        return EngineInfo(engine, version, _text(kept.get("details"), "quantization_level"))
    return None


def _text(document: object, name: str) -> str:
    return short_text(document.get(name)) if isinstance(document, dict) else ""


def _entry(document: object, model: str, listed: str = "data", named: str = "id") -> dict[str, object]:
    """The entry of a model in a list of models; the only one where it has another name there."""
    rows = document.get(listed) if isinstance(document, dict) else None
    entries = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    for entry in entries:
        if entry.get(named) == model:
            return entry
    return entries[0] if entries and (len(entries) == 1 or listed == "data") else {}
