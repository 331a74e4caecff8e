"""Looks through all that would be published for what is nobody else's business: keys, private hosts, home folders."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from flows.errors import SweepError

_SHORTEST_VALUE = 6
_MOST_FINDINGS = 1000
_SHOWN = 20
_SHOWN_SECRET = 4
_SHOWN_PLACE = 60


@dataclass(frozen=True)
class _Pattern:
    kind: str
    anchors: tuple[str, ...]
    """One of them is in any text, in lower case, that has something of the kind: so most texts are soon passed."""
    expression: re.Pattern[str]
    secret: bool = True
    """Whether what is found must not be shown."""


_PRIVATE = (
    r"localhost|127\.\d|10\.\d|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|\[(?:::1|f[cd]|fe80)"
    r"|(?:[\w-]+\.)+(?:internal|local|lan|corp|intranet|home)(?![\w.])|[A-Za-z][\w-]*(?=[:/]|$)"
)

_PATTERNS = (
    _Pattern(
        "api-key",
        (
            "sk-",
            "sk_",
            "gh",
            "hf_",
            "gsk_",
            "nvapi-",
            "glpat-",
            "xox",
            "akia",
            "asia",
            "aiza",
            "pplx-",
            "xai-",
            "r8_",
        ),
        re.compile(
            r"(?<![A-Za-z0-9])(?:sk-[A-Za-z0-9_-]{16,}|sk_(?:live|test)_\w{10,}|gh[opsu]_[A-Za-z0-9]{20,}"
            r"|github_pat_\w{20,}|hf_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|nvapi-[\w-]{20,}|glpat-[\w-]{16,}"
            r"|xox[abprs]-[\w-]{10,}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{30,}|pplx-[A-Za-z0-9]{20,}"
            r"|xai-[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,})"
        ),
    ),
    _Pattern("token", ("bearer ",), re.compile(r"bearer +[a-z0-9._~+/=-]{16,}", re.IGNORECASE)),
    _Pattern(
        "token", ("authorization",), re.compile(r"authorization\W{1,4}basic\s+[a-z0-9+/=]{8,}", re.IGNORECASE)
    ),
    _Pattern("token", ("eyj",), re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}")),
    _Pattern("private-key", ("private key-----",), re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    _Pattern(
        "password",
        ("api_key", "api-key", "apikey", "passw", "secret", "token"),
        re.compile(
            r"(?:api[-_]?key|passw(?:or)?d|secret|token)[\"']?\s*[=:]\s*[\"']?"
            r"(?=[^\s\"',;]*\d)(?=[^\s\"',;]*[A-Za-z])[^\s\"',;]{8,}",
            re.IGNORECASE,
        ),
    ),
    _Pattern("user-info", ("@",), re.compile(r"://[^/\s@:\"']{1,100}:[^/\s@\"']{1,200}@")),
    _Pattern(
        "private-host",
        ("://",),
        re.compile(rf"(?:https?|tcp|rediss?|wss?)://(?:{_PRIVATE})[^\s\"'<>)\\]*", re.IGNORECASE),
        secret=False,
    ),
    _Pattern(
        "private-host",
        ("10.", "127.", "192.168.", "172."),
        re.compile(
            r"(?<![\d.])(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}:\d{2,5}(?!\d)"
        ),
        secret=False,
    ),
    _Pattern(
        "home-folder",
        ("/home/", "/users/", "/root/", "\\users\\"),
        re.compile(
            r"(?<![\w.:/])/(?:home|Users)/[\w.-]+[^\s\"'<>]*|(?<![\w.:/])/root/[^\s\"'<>]+|\b[A-Z]:\\{1,2}Users\\{1,2}[\w.-]+",
        ),
        secret=False,
    ),
)


@dataclass(frozen=True)
class Finding:
    """Something that should perhaps not be published."""

    place: str
    """Where it stands first."""
    kind: str
    excerpt: str
    """What it is; of a secret, its first characters."""
    id: str
    """What `--allow` takes."""
    times: int = 1

    def __str__(self) -> str:
        more = f" (and {self.times - 1:,} times more)" if self.times > 1 else ""
        return f"{self.place}{more}: {self.kind} {self.excerpt!r} [{self.id}]"


class SecretsError(SweepError):
    """What would be published has something in it that looks secret or private."""

    def __init__(self, findings: Sequence[Finding], remedy: str = "") -> None:
        lines = [str(one) for one in findings[:_SHOWN]]
        more = [f"and {len(findings) - _SHOWN:,} more"] if len(findings) > _SHOWN else []
        text = "what would be published has something in it that looks secret or private:\n"
        super().__init__(
            text + "\n".join(lines + more),
            remedy
            or "Take it out of the sweep, or say that it may be published: --allow with the id in brackets, or a kind",
        )
        self.findings = tuple(findings)

    def __reduce__(self) -> tuple[object, ...]:
        return SecretsError, (self.findings, self.remedy)

    def to_list(self) -> list[dict[str, Any]]:
        """The findings as JSON values."""
        return [asdict(one) for one in self.findings]


class SecretFinder:
    """Collects what it finds in texts.

    Parameters
    ----------
    variables
        Names of environment variables whose values must not occur.
    hosts
        Names of hosts that must not occur, such as those of endpoints.
    allow
        Ids of findings, and kinds, that are no harm.
    """

    def __init__(self, variables: Iterable[str], hosts: Iterable[str], allow: Collection[str] = ()) -> None:
        self._values = {
            name: value for name in variables if len(value := os.environ.get(name, "")) >= _SHORTEST_VALUE
        }
        self._hosts = {host.lower() for host in hosts if len(host) >= _SHORTEST_VALUE}
        self._allow = set(allow)
        self._found: dict[str, Finding] = {}

    def search(self, place: str, text: str) -> None:
        """Look through a text.

        Parameters
        ----------
        place
            What to call it.
        text
            What would be published.
        """
        for kind, match, secret in self._matches(text):
            number = hashlib.sha256(f"{kind} {match}".encode()).hexdigest()[:8]
            if number in self._allow or kind in self._allow:
                continue
            known = self._found.get(number)
            if known is not None:
                self._found[number] = Finding(known.place, kind, known.excerpt, number, known.times + 1)
            elif len(self._found) < _MOST_FINDINGS:
                shown = f"{match[:_SHOWN_SECRET]}…" if secret else match[:_SHOWN_PLACE]
                self._found[number] = Finding(place, kind, shown, number)

    def search_json(self, place: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Look through all texts of a document, keys included."""
        if isinstance(value, str):
            self.search(place, value)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                self.search(place, str(key))
                self.search_json(f"{place}.{key}" if place else str(key), item)
        elif isinstance(value, (list, tuple)):
            for number, item in enumerate(value):
                self.search_json(f"{place}[{number}]", item)

    def refuse(self) -> None:
        """Raise if anything was found.

        Raises
        ------
        SecretsError
            With all findings.
        """
        if self._found:
            raise SecretsError(sorted(self._found.values(), key=lambda one: (one.kind, one.place)))

    def _matches(self, text: str) -> Iterator[tuple[str, str, bool]]:
        for name, value in self._values.items():
            if value in text:
                yield f"value-of-{name}", value, True
        lower = text.lower()
        for host in self._hosts:
            if host in lower:
                yield "endpoint", host, False
        for pattern in _PATTERNS:
            if any(anchor in lower for anchor in pattern.anchors):
                for match in pattern.expression.finditer(text):
                    yield pattern.kind, match[0], pattern.secret


def named_by(*configs: Mapping[str, Any] | None) -> tuple[set[str], set[str]]:
    """Environment variables and hosts that configs name.

    Parameters
    ----------
    configs
        As notes of a cube, or the record of a user's own run, have them.

    Returns
    -------
    tuple
        Names of variables; names of hosts.
    """
    variables: set[str] = set()
    hosts: set[str] = set()
    for config in configs:
        for name, text in _texts(config, ""):
            if name.endswith("key_env"):
                variables.add(text)
            if name in ("endpoint", "cache", "cube"):
                found = re.search(r"password_env=(\w+)", text)
                variables.update([found[1]] if found else [])
                host = _host(text)
                hosts.update([host] if host else [])
    return variables, hosts


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, str(key))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item, name)


def _host(address: str) -> str | None:
    address = address.removeprefix("sim:")
    try:
        parts = urlsplit(address)
        return parts.hostname if parts.scheme in ("http", "https", "redis", "rediss") else None
    except ValueError:
        return None
