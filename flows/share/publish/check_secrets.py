"""Looks through all that would be published for what is nobody else's business: keys, private hosts, home folders."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from evalcube.flows.config.secrecy import SECRETS, Pattern, without_secrets
from evalcube.flows.errors import SweepError

_SHORTEST_VALUE = 6
_MOST_FINDINGS = 1000
_SHOWN = 20
_SHOWN_SECRET = 4
_SHOWN_PLACE = 60


_USER = r"[^/\s\"'<>]{1,300}@"
"""What an address has before its host."""
_PRIVATE = (
    r"localhost|127\.\d|10\.\d|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|\[(?:::1|f[cd]|fe80)"
    r"|(?:[\w-]+\.)+(?:internal|local|lan|corp|intranet|home)(?![\w.])|[A-Za-z][\w-]*(?=[:/]|$)"
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_LOCAL_ADDRESS = (
    rf"(?<![\w.])(?<!version )(?<!version: )(?<!release )(?<!section )"
    rf"(?:(?:10|127)(?:\.{_OCTET}){{3}}|(?:192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.{_OCTET}){{2}})(?!\w|\.\d)"
)

_PRIVATE_HOST = "|".join(
    (
        rf"(?:https?|tcp|rediss?|wss?)://(?:{_USER})?(?!{_USER})(?:{_PRIVATE})[^\s\"'<>)\\]*",
        r"(?<![\d.])(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}:\d{2,5}(?!\d)",
        _LOCAL_ADDRESS,
        # Eight groups, or fewer around a gap: no time of day and no list of numbers is like that.
        r"(?<![\w:.])f[cd][0-9a-f]{2}(?=[0-9a-f:]{0,35}::|(?::[0-9a-f]{1,4}){7})[0-9a-f:]{2,35}(?![\w:])",
        r"(?<![\w.-])(?:[\w-]{1,63}\.){0,5}localhost(?:\.localdomain)?(?::\d{2,5})?(?![\w-])",
    )
)
_PRIVATE_TEXTS = (
    Pattern(
        "private-host",
        ("://", "10.", "127.", "192.168.", "172.", "fc", "fd", "localhost"),
        re.compile(_PRIVATE_HOST, re.IGNORECASE),
    ),
    Pattern(
        "e-mail",
        ("@",),
        re.compile(r"(?<![\w.+%/-])[\w.+%-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])"),
    ),
    Pattern(
        "home-folder",
        ("/home/", "/users/", "/root", "\\users\\"),
        re.compile(
            r"(?<![\w.:/])/(?:home|Users)/[\w.-]+[^\s\"'<>]*|(?<![\w.:/])/root(?=/\w)[^\s\"'<>]+"
            r"|\b[A-Z]:\\{1,2}Users\\{1,2}[\w.-]+"
        ),
    ),
)


@dataclass(frozen=True)
class SecretFinding:
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

    def __init__(self, findings: Sequence[SecretFinding]) -> None:
        lines = [str(one) for one in findings[:_SHOWN]]
        more = [f"and {len(findings) - _SHOWN:,} more"] if len(findings) > _SHOWN else []
        text = "what would be published has something in it that looks secret or private:\n"
        super().__init__(
            text + "\n".join(lines + more),
            "Take it out of the sweep, or say that it may be published: `evalcube publish --allow`, with the id in "
            "brackets, or a kind",
        )
        self.findings = tuple(findings)

    def __reduce__(self) -> tuple[object, ...]:
        return SecretsError, (self.findings,)

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
        self._found: dict[str, SecretFinding] = {}

    def search(self, place: str, text: str, passing: Collection[str] = ()) -> None:
        """Look through a text."""
        for kind, match, secret in self._matches(text):
            number = hashlib.sha256(f"{kind} {match}".encode()).hexdigest()[:8]
            if number in self._allow or kind in self._allow or kind in passing:
                continue
            known = self._found.get(number)
            if known is not None:
                self._found[number] = replace(known, times=known.times + 1)
            elif len(self._found) < _MOST_FINDINGS:
                shown = f"{match[:_SHOWN_SECRET]}…" if secret else match[:_SHOWN_PLACE]
                self._found[number] = SecretFinding(self._without_secrets(place), kind, shown, number)

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
        """Raise if anything was found."""
        if self._found:
            raise SecretsError(sorted(self._found.values(), key=lambda one: (one.kind, one.place)))

    def _matches(self, text: str) -> Iterator[tuple[str, str, bool]]:
        """Yield kind, content and secrecy of each match."""
        hidden, lower = self._without_secrets(text), text.lower()
        for name, value in self._values.items():
            if value in text:
                yield f"value-of-{name}", value, True
        for host in self._hosts:
            if host in lower:
                yield "endpoint", host, False
        for pattern in (*SECRETS, *_PRIVATE_TEXTS):
            if pattern.may_be_in(lower):
                secret = pattern in SECRETS
                # What is shown of a private host or folder has no secret within.
                for match in pattern.expression.finditer(text if secret else hidden):
                    yield pattern.kind, match[0], secret

    def _without_secrets(self, text: str) -> str:
        """A text for messages, whatever secret it holds."""
        for value in self._values.values():
            text = text.replace(value, "…")
        return without_secrets(text)


def named_by(*configs: Mapping[str, Any] | None) -> tuple[set[str], set[str]]:
    """Environment variables and hosts that configs name."""
    variables: set[str] = set()
    hosts: set[str] = set()
    for config in configs:
        for name, text in _texts(config, ""):
            if name.endswith(("key_env", "env_from")):
                variables.add(text)
            if name in ("endpoint", "cache", "cube"):
                variables.update(re.findall(r"password_env=(\w+)", text)[:1])
                hosts.update(filter(None, [_host(text)]))
    return variables, hosts


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            # Its own keys are variables of a server; what they are taken from is what may be secret.
            yield from _texts(item, name if name == "env_from" else str(key))
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
