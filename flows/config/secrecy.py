"""What looks like a secret, in a config's values and in what would be published; and safe short texts of any value.

Both look for the same forms. A config's value is short and hidden at a glance, so that a beginning of a form, and any
run of random characters, is enough there: texts that models wrote are full of both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

HIDDEN = "<hidden>"
LONGEST_SHOWN = 60

_NAMED = r"(?:api[-_]?key|passw(?:or)?d|secret|token)"
_PREFIX = (
    r"(?<![A-Za-z0-9])(?:A(?:KIA|SIA|Iza)"
    r"|(?:[spr]k|gh[opsu]|github_pat|hf|gsk|r8|pplx|xai|nvapi|glpat|xox[abprs])[-_])"
)
_GLANCE = re.compile(
    rf"(?<![A-Za-z0-9])[spr]k[-_][A-Za-z0-9]|{_PREFIX}[A-Za-z0-9]{{4}}|\b(?:bearer|basic)\s+\S|{_NAMED}\s*[=:]\s*\S",
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
        tuple(
            "sk- sk_ pk- pk_ rk- rk_ ghp gho ghs ghu github hf- hf_ gsk r8 pplx xai nvapi glpat xox "
            "akia asia aiza".split()
        ),
        re.compile(
            rf"(?<![A-Za-z0-9])sk-[\w-]{{16,}}|{_PREFIX}(?:(?=[\w-]{{0,64}}\d)[\w-]{{10,}}|[A-Za-z0-9]{{20,}})",
            re.IGNORECASE,
        ),
    ),
    Pattern(
        "token",
        ("bearer ", "authorization", "eyj"),
        re.compile(
            r"bearer +[a-z0-9._~+/=-]{16,}|authorization\W{1,4}basic\s+[a-z0-9+/=]{8,}|(?-i:eyJ[\w-]{8,}[\w.-]*)",
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
    Pattern("user-info", ("@",), re.compile(r"://[^/\s@\"'<>]{1,300}@")),
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
    patterns = (_GLANCE, *(pattern.expression for pattern in SECRETS))
    return any(pattern.search(text) for pattern in patterns) or any(map(_is_random, _LONG_RUN.findall(text)))


def _is_random(run: str) -> bool:
    """Tell a random token from a long word: letters and digits change places often."""
    return len(re.findall(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])", run)) >= 4


def secret_word(name: str) -> str | None:
    """Find the part of a header's or parameter's name that says it carries a secret."""
    match = _SECRET_NAME.search(name)
    return match[0].lower().strip("-_") if match else None


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
    return repr(value) if isinstance(value, float) else f"a {type(value).__name__}"


def _odd(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 4]}...{text[-1]}"
