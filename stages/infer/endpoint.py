"""What the client must know of an endpoint: address, where the key is, limits; and what it says of its engine.

The key itself is never here.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from evalcube import EvalcubeError
from evalcube.stages.infer.apis import APIS
from evalcube.stages.infer.rates import Quota
from evalcube.stages.reply.body import short_text
from evalcube.stages.reply.forms import CHAT

if TYPE_CHECKING:
    import ssl


class InferenceError(EvalcubeError, ValueError):
    """An endpoint that cannot be asked as configured."""


@dataclass(frozen=True)
class Batching:
    """How requests are put together to batches."""

    requests: int = 50_000
    """Most requests of one batch."""
    megabytes: float = 100.0
    """Size of its file from which on it is sent."""
    poll: float = 30.0
    """Seconds between two polls of how far it is."""
    window: str = "24h"
    """Time that the endpoint may take, in its own notation."""
    patience: float = 2.0
    """Seconds without a further request after which those that wait are sent."""


@dataclass(frozen=True)
class Endpoint:
    """Where one model's requests go, and how many at once."""

    name: str
    """Label of the model in the config."""
    base_url: str
    """Base URL that ends before ``/chat/completions``, or what another API has in its place."""
    key_env: str | None = None
    """Environment variable that holds the key; read on the worker, when the first request is made."""
    key_file: str | None = None
    """File that holds the key, in place of a variable; read on the worker, and again when the key is refused."""
    key_command: tuple[str, ...] | None = None
    """Program and arguments that print the key, in place of a variable; run on the worker, like `key_file`."""
    connections: int = 64
    """Requests in flight at once at most, for the whole cluster."""
    start: int | None = None
    """Requests in flight at first, where the best number up to `connections` is looked for; None where it is not."""
    requests_per_minute: float | None = None
    """Attempts that may start, for the whole cluster; None has no limit."""
    tokens_per_minute: float | None = None
    """Tokens of prompts and completions, for the whole cluster; None has no limit."""
    timeout: float = 600.0
    """Seconds for one attempt, first byte sent to last byte read."""
    retries: int = 5
    """Further attempts after the first."""
    patience: float = 600.0
    """Seconds for which a request that is refused because of a limit is tried again, whatever `retries` is."""
    backoff_base: float = 0.5
    """Seconds before the first retry; see `evalcube.stages.infer.retry.backoff`."""
    response_bytes: int = 4_000_000
    """Bound on one response body, decompressed."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further plain headers."""
    ca_file: str | None = None
    """PEM file of certificate authorities that are believed, too; read on the worker."""
    api: str = CHAT
    """One of `evalcube.stages.infer.apis.APIS`."""
    stream: bool = False
    """Whether replies come in a stream of events; the record is the same but for the time to the first token."""
    batch: Batching | None = None
    """Whether requests are sent in batches, and how; the record is the same but for the latency."""
    replicas: tuple[str, ...] = ()
    """Base URLs of several servers that all have the model, `base_url` the first of them; empty for it alone."""
    outage: float = 0.0
    """Seconds for which requests wait for a server that was there and is gone, as somebody starts it again."""
    given_up: str | None = None
    """File that comes into being when nobody starts it any more, and that says why."""
    health: str | None = None
    """Path on the server that answers a probe; None has it list its models."""
    refusals: int | None = None
    """Requests of one run that may end as refused by the endpoint; None is any number."""
    model: str = ""
    """Name that requests send, by which servers know it; empty where nobody wants to know what serves it."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Base URLs of all servers, without a last slash."""
        return tuple(url.rstrip("/") for url in self.replicas or (self.base_url,))

    @property
    def targets(self) -> tuple[str, ...]:
        """The address of the API on each server."""
        return tuple(url + APIS[self.api].path for url in self.urls)

    @property
    def probes(self) -> tuple[str, ...]:
        """The address of each server that shows whether it is there."""
        if self.health is None:
            return tuple(f"{url}/models" for url in self.urls)
        return tuple(_root(url) + self.health for url in self.urls)

    def address(self, place: int, path: str) -> str:
        """The address of a document on a server."""
        url = self.urls[place]
        return _root(url) + path if path.startswith("/") else f"{url}/{path}"

    def key(self) -> str | None:
        """Read the key from this process's environment; None if it is not there, see `stages.infer.keys`."""
        if self.key_env is None:
            return None
        value = os.environ.get(self.key_env, "").strip()
        if not value:
            raise InferenceError(
                f"models[{self.name}].key_env: the environment variable {self.key_env} is not set on the worker. "
                f"Export it where the workers start (for a local run: in this shell), then run the same command again."
            )
        if not value.isascii() or not value.isprintable():
            raise InferenceError(
                f"models[{self.name}].key_env: the variable {self.key_env} holds characters that no HTTP header may "
                f"hold. Set it to the bare key."
            )
        return value

    @property
    def quota(self) -> Quota:
        """The limits of the address, for the whole cluster."""
        return Quota(self.connections, self.requests_per_minute, self.tokens_per_minute, self.start)

    @property
    def account(self) -> tuple[str, str | None]:
        """Address and key (a secret): endpoints that agree in both share one set of limits.

        A key that is in a file or comes from a command counts as that file or command, as it changes. Batches have
        limits of their own, and each of them is of one model.
        """
        key = None if self.key_env is None else os.environ.get(self.key_env, "").strip()
        if self.key_file is not None:
            key = f"\0file {self.key_file}"  # no key begins so
        elif self.key_command is not None:
            key = "\0command " + "\0".join(self.key_command)
        batches = "" if self.batch is None else f"/batches#{self.name}"
        return " ".join(sorted(self.urls)) + batches, key

    @property
    def digest(self) -> str:
        """What tells its limits from those of others, and shows no secret: the address, and where the key is.

        On one cluster a variable or a file holds the same key for all runs, as it is read on the workers.
        """
        key = (self.key_env, self.key_file, self.key_command)
        batches = self.name if self.batch is not None else None
        return hashlib.sha256(repr((" ".join(sorted(self.urls)), key, batches)).encode()).hexdigest()[:16]

    def proxy(self, url: str | None = None) -> str | None:
        """The proxy that the environment names for an address, if any; this machine itself is never behind one."""
        import urllib.request  # only workers need it, and planning imports this module

        url = self.base_url if url is None else url
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or ""
        except ValueError as error:
            raise InferenceError(
                f"models[{self.name}].endpoint: {url!r} is no valid URL ({error}). Correct it."
            ) from error
        if host == "localhost" or _is_loopback(host) or urllib.request.proxy_bypass(f"{host}:{port}"):
            return None
        proxies = urllib.request.getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if not proxy:
            return None
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        if urlsplit(proxy).scheme not in {"http", "https"}:
            raise InferenceError(
                f"models[{self.name}].endpoint: the environment names a proxy for {host} that is no HTTP proxy. Set "
                f"{parts.scheme}_proxy to one that is, or add {host} to no_proxy."
            )
        return proxy

    def tls(self) -> ssl.SSLContext | bool:
        """TLS settings: verification on, with the system's authorities or those of ``SSL_CERT_FILE``, and the own."""
        if not any(url.startswith("https:") for url in self.urls):
            return True
        import ssl

        context = ssl.create_default_context()
        if self.ca_file is not None:
            try:
                context.load_verify_locations(cafile=self.ca_file)
            except OSError as error:  # among them ssl.SSLError, of a file without certificates
                raise InferenceError(
                    f"models[{self.name}].ca_file: {self.ca_file} cannot be used on the worker "
                    f"({error.strerror or 'no certificate in it'}). Give a PEM file of certificate authorities."
                ) from error
        return context


def _root(url: str) -> str:
    """A server's address without the path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
        tag = _entry((yield "/api/tags"), model, listed="models", named="model")
        return EngineInfo(engine, version, _text(tag.get("details"), "quantization_level"))
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
