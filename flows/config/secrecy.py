"""Recognises secrets, in a config's values and in what would be published, and shows any value in a short, safe way.

A config's value is hidden at a glance: whoever looks for his mistake loses nothing. What would be published is full of
words that a model wrote, so that there a find has to be as long as a real one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

HIDDEN = "<hidden>"
LONGEST_SHOWN = 60

_NAMED = r"(?:api[-_]?key|passw(?:or)?d|secret|token)"
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(sk|pk|rk)[-_][A-Za-z0-9]"
    r"|(?<![A-Za-z0-9])(ghp|gho|ghs|hf|gsk|r8|pplx|xai|nvapi|glpat|xox[abp]|github_pat)[-_][A-Za-z0-9]{4}"
    r"|(?<![A-Za-z0-9])(AIza|AKIA|ASIA|eyJ)[A-Za-z0-9_-]{8}"
    rf"|\b(bearer|basic)\s+\S|://[^/@]*@|{_NAMED}\s*[=:]\s*\S",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Pattern:
    """What secrets of one kind look like in any text."""

    kind: str
    anchors: tuple[str, ...]
    """One of them is in any text, in lower case, that has something of the kind: so most texts are soon passed."""
    expression: re.Pattern[str]

    def may_be_in(self, lower: str) -> bool:
        """Whether a text, in lower case, has an anchor."""
        return any(anchor in lower for anchor in self.anchors)


SECRETS = (
    Pattern(
        "api-key",
        tuple("sk- sk_ gh hf_ gsk_ nvapi- glpat- xox akia asia aiza pplx- xai- r8_".split()),
        re.compile(
            r"(?<![A-Za-z0-9])(?:sk-[A-Za-z0-9_-]{16,}|sk_(?:live|test)_\w{10,}|gh[opsu]_[A-Za-z0-9]{20,}"
            r"|github_pat_\w{20,}|hf_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|nvapi-[\w-]{20,}|glpat-[\w-]{16,}"
            r"|xox[abprs]-[\w-]{10,}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{30,}|pplx-[A-Za-z0-9]{20,}"
            r"|xai-[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,})"
        ),
    ),
    Pattern(
        "token",
        ("bearer ", "authorization", "eyj"),
        re.compile(
            r"bearer +[a-z0-9._~+/=-]{16,}|authorization\W{1,4}basic\s+[a-z0-9+/=]{8,}"
            r"|(?-i:eyJ[\w-]{8,512}\.[\w-]{8,4096}\.[\w-]{4,})",
            re.IGNORECASE,
        ),
    ),
    Pattern("private-key", ("private key-----",), re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    Pattern(
        "password",
        ("api_key", "api-key", "apikey", "passw", "secret", "token"),
        re.compile(
            rf"{_NAMED}[\"']?\s*[=:]\s*[\"']?(?=[^\s\"',;]{{0,512}}\d)(?=[^\s\"',;]{{0,512}}[A-Za-z])[^\s\"',;]{{8,}}",
            re.IGNORECASE,
        ),
    ),
    Pattern("user-info", ("@",), re.compile(r"://[^/\s@:\"']{1,100}:[^/\s@\"']{1,200}@")),
)
"""Secrets as they are found in texts that are published. What is looked ahead at has an end: texts are anybody's."""

_USER = re.compile(r"(?<=://)[^/\s\"'<>]{1,300}(?=@)")
"""What an address has before its host."""
_PUBLIC = re.compile(
    r"(?<![A-Za-z0-9])hf://[\w.-]{1,96}/[\w.-]{1,96}@[0-9a-f]{40}(?![0-9A-Za-z])|\bHF_TOKEN\b(?!\s*[=:])"
    r"|\bSHA-256 [0-9a-f]{64}\b",
    re.ASCII,
)
"""What looks like a key and is none: a commit of a data set, the name of a variable, the digest of a file."""
_LONG_RUN = re.compile(r"[A-Za-z0-9_+-]{20,}")
_SECRET_NAME = re.compile(
    r"authori[sz]ation|api[-_]?key|cookie|secret|passw(or)?d|credential|bearer"
    r"|(?:^|[-_])(auth|token|key|access[-_]token)$",
    re.IGNORECASE,
)


def looks_secret(text: str) -> bool:
    """Tell whether a text has the form of a key, a token or a URL with a password."""
    text = _PUBLIC.sub("", text)
    return bool(_KEY.search(text)) or any(_is_random(run) for run in _LONG_RUN.findall(text))


def _is_random(run: str) -> bool:
    """Tell a random token from a long word: letters and digits change places often."""
    changes = len(re.findall(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])", run))
    return changes >= 4


def secret_word(name: str) -> str | None:
    """Find the part of a header's or parameter's name that says it carries a secret."""
    found = _SECRET_NAME.search(name)
    return found.group(0).lower().strip("-_") if found else None


def without_secrets(text: str) -> str:
    """A text with a mark in place of each secret, and of each user of an address.

    Examples
    --------
    >>> without_secrets("https://ann:x@host/?token=abcd1234")
    'https://…@host/?…'
    """
    text, lower = _USER.sub("…", text) if "@" in text else text, text.lower()
    for pattern in SECRETS:
        if pattern.kind != "user-info" and pattern.may_be_in(lower):
            text = pattern.expression.sub("…", text)
    return text


def mask(text: str) -> str:
    """Return the text, or a stand-in if it looks like a secret."""
    return HIDDEN if looks_secret(text) else text


def show(value: object) -> str:
    """Give a value in at most about 60 characters of one line; contents of lists and mappings stay out.

    Examples
    --------
    >>> show("abc"), show(None), show([1, 2]), show("sk-12345")
    ("'abc'", 'null', 'a list', '<hidden>')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return HIDDEN if looks_secret(value) else _shorten(ascii(value) if _odd(value) else repr(value))
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "a list"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**LONGEST_SHOWN else "a huge number"
    if isinstance(value, float):
        return repr(value)
    return f"a {type(value).__name__}"


def _odd(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 4]}...{text[-1]}"
