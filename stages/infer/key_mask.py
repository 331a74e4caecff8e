"""Takes an API key out of what an endpoint says, as some repeat it, whole or in part, when they refuse it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MASK = b"[key]"
SHORTEST_KEY = 8
"""Characters of a key below which it is a placeholder ("none", "EMPTY") and may stand in any text."""
SHORTEST_PART = 8
"""Characters of a key that are taken for an echo of it; fewer may stand in a text by chance."""

_PUBLIC = re.compile(r"[A-Za-z]{1,8}[-_](?:[A-Za-z0-9]{1,7}[-_]){0,2}")
"""How keys of a provider begin (``sk-ant-api03-``): no secret, and a text about keys may well hold it."""
_SHORTEST_ENCODED = 4 * SHORTEST_PART // 3 + 4
"""Characters of Base64 that hold as much, wherever in a group of three bytes the part begins."""


class KeyMask:
    """Finds one key in bytes: as it is, escaped as in JSON or a URL, in Base64, in hexadecimal, and parts of it.

    Parameters
    ----------
    key
        Printable ASCII; one of fewer than `SHORTEST_KEY` characters is no secret, and nothing is masked.
    """

    def __init__(self, key: str | None) -> None:
        self._forms: tuple[_Form, ...] = ()
        if key is None or len(key) < SHORTEST_KEY:
            return
        self._key = key.encode()
        self._escaped = _escaped(key)
        start = _PUBLIC.match(key)
        secret = self._key[start.end() :] if start and len(key) - start.end() >= SHORTEST_KEY else self._key
        encoded = [_Form(text, _SHORTEST_ENCODED) for text in _encodings(secret)]
        forms = (_Form(secret, SHORTEST_PART), _Form(secret.hex().encode(), 2 * SHORTEST_PART), *encoded)
        self._forms = tuple(form for form in forms if len(form.text) >= form.shortest)
        self._blocks = frozenset(block for form in self._forms for block in form.blocks())
        self._hashes = np.zeros(1 << 16, dtype=np.bool_)
        self._hashes[[_hash(np.frombuffer(block, dtype="<u4"))[0] for block in self._blocks]] = True

    def clean(self, body: bytes) -> bytes:
        """The bytes without the key."""
        if not self._forms:
            return body
        body = body.replace(self._key, MASK)
        if b"\\" in body or b"%" in body:
            body = self._escaped.sub(MASK, body)
        if self._may_hold_a_part(body):
            for form in self._forms:
                body = form.masked(body)
        return body

    def _may_hold_a_part(self, body: bytes) -> bool:
        """Whether a block of any form occurs; nearly always not, and told in some microseconds."""
        if len(body) < SHORTEST_PART:
            return False
        groups: npt.NDArray[np.uint32] = np.ndarray((len(body) - 3,), "<u4", body, strides=(1,))
        places = np.flatnonzero(self._hashes[_hash(groups)]).tolist()
        return any(body[place : place + 4] in self._blocks for place in places)


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to write the key, of which also parts are found."""

    text: bytes
    shortest: int
    """Bytes of the shortest part."""

    def blocks(self) -> Iterator[bytes]:
        """Groups of four bytes of which every part holds one, wherever it begins."""
        for at in range(0, len(self.text) - 3, self.shortest - 3):
            yield self.text[at : at + 4]

    def masked(self, body: bytes) -> bytes:
        """The bytes without the parts of the form, each as long as it goes on."""
        parts = {self.text[at : at + self.shortest] for at in range(len(self.text) - self.shortest + 1)}
        pieces, done, at = [], 0, 0
        while at <= len(body) - self.shortest:
            if body[at : at + self.shortest] not in parts:
                at += 1
                continue
            end = at + self.shortest
            while end < len(body) and body[at : end + 1] in self.text:
                end += 1
            pieces += [body[done:at], MASK]
            done = at = end
        return b"".join([*pieces, body[done:]])


def _hash(groups: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Sixteen bits of each group of four bytes."""
    mixed: npt.NDArray[np.uint32] = (groups * np.uint32(2654435761)) >> np.uint32(16)
    return mixed


def _escaped(key: str) -> re.Pattern[bytes]:
    r"""The key with any characters escaped by JSON (``\/``, ``\u002b``) or a URL (``%2B``)."""
    parts = (rf"(?:\\?{re.escape(c)}|(?i:\\u{ord(c):04x}|%{ord(c):02x}))" for c in key)
    return re.compile("".join(parts).encode())


def _encodings(secret: bytes) -> list[bytes]:
    """Base64 of the secret at each place in a group of three bytes, without what its neighbours decide."""
    found = []
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + secret)
        inner = encoded[-(-before * 8 // 6) :]
        inner = inner[: (before + len(secret)) * 8 // 6 - -(-before * 8 // 6)]
        found += [inner, inner.translate(bytes.maketrans(b"+/", b"-_"))]
    return list(dict.fromkeys(found))
