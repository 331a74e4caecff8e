"""Reads an endpoint's key where the config says, and takes it out of what the endpoint says.

It comes from a variable, from a file, or from what a command prints; some endpoints repeat it when they refuse it.

A key that comes from a file or a command may expire while a sweep lasts; it is read again when the endpoint refuses it.
It is kept in the memory of the process that sends it, and nowhere else.
"""

from __future__ import annotations

import asyncio
import base64
import math
import os
import re
import selectors
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np
import numpy.typing as npt

from evalcube.stages.infer.endpoint import Endpoint, InferenceError

_LONGEST_KEY = 16_384
"""Bytes; tokens of identity providers have a few thousand."""
_COMMAND_SECONDS = 30.0
_SHORTEST_PAUSE = 1.0
"""Seconds after which a key that was found unchanged is read again, if it is refused again."""


def read_key(endpoint: Endpoint) -> str | None:
    """The key as it is at this moment; None if the endpoint has none. May wait for a file or a command.

    Parameters
    ----------
    endpoint
        Its settings say where the key is.

    Raises
    ------
    InferenceError
        If there is no key, or one that no header may hold. Nothing of the key or of a command's output is shown.
    """
    if endpoint.key_file is not None:
        return _valid(_file(endpoint, endpoint.key_file), f"models[{endpoint.name}].key_file: the file")
    if endpoint.key_command is not None:
        what = f"models[{endpoint.name}].key_command: what the command prints"
        return _valid(_printed(endpoint, endpoint.key_command), what)
    return endpoint.key()


def check_source(endpoint: Endpoint) -> None:
    """Make sure, as far as it can be seen without running a command, that there is a key.

    Parameters
    ----------
    endpoint
        Its settings say where the key is.

    Raises
    ------
    InferenceError
        If there is none.
    """
    if endpoint.key_command is None:
        read_key(endpoint)
    elif shutil.which(endpoint.key_command[0]) is None:
        raise _no_program(endpoint)


class KeyHolder:
    """The key of one account, as this process knows it; models at the account share it.

    Parameters
    ----------
    endpoint
        Any model's of the account.

    Raises
    ------
    InferenceError
        If the key is in a variable, and missing. Others are read when they are first needed, see `ready`.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._renewable = endpoint.key_file is not None or endpoint.key_command is not None
        # Of several requests that are refused at once, one reads the key, and the others wait for it.
        self._lock = asyncio.Lock()
        self._refused_at = -math.inf
        self._problem: InferenceError | None = None
        self.key: str | None = None
        """Of the present generation."""
        self.generation = 0
        """Number of different keys so far; 0 while none has been read."""
        if not self._renewable:
            self.key, self.generation = read_key(endpoint), 1

    async def ready(self) -> None:
        """Read the key, unless it has been read.

        Raises
        ------
        InferenceError
            If there is none.
        """
        async with self._lock:
            if self._problem is not None:
                raise self._problem  # not once for each request: a command may take long to fail
            if self.generation:
                return
            try:
                # On a thread, as the loop serves other endpoints meanwhile.
                self.key = await asyncio.to_thread(read_key, self._endpoint)
            except InferenceError as problem:
                self._problem = problem
                raise
            self.generation = 1

    async def renew(self, generation: int) -> bool:
        """Whether there is another key than that of `generation`, which was refused; it is read again for that.

        Raises
        ------
        InferenceError
            If there is none any more.
        """
        if not self._renewable:
            return False
        async with self._lock:
            if self.generation != generation:
                return True
            if time.monotonic() - self._refused_at < _SHORTEST_PAUSE:
                return False
            try:
                key = await asyncio.to_thread(read_key, self._endpoint)
            finally:
                self._refused_at = time.monotonic()
            if key == self.key:
                return False
            self.key, self._refused_at = key, -math.inf
            self.generation += 1
            return True


def _valid(data: bytes, what: str) -> str:
    """The key in some bytes, whatever white space is around it."""
    if len(data) > _LONGEST_KEY:
        raise InferenceError(f"{what} is longer than {_LONGEST_KEY} bytes. Have it hold the bare key only.")
    text = data.decode("utf-8", "replace").strip()
    if not text:
        raise InferenceError(f"{what} is empty. Have it hold the bare key.")
    if not text.isascii() or not text.isprintable():
        raise InferenceError(
            f"{what} holds characters that no HTTP header may hold. Have it hold the bare key only."
        )
    return text


def _file(endpoint: Endpoint, name: str) -> bytes:
    try:
        # A pipe or a terminal would be waited for, without an end.
        if stat.S_ISREG(Path(name).stat().st_mode):
            with open(name, "rb") as file:  # noqa: PTH123 - bounded below
                return file.read(_LONGEST_KEY + 1)
    except (OSError, ValueError) as error:
        raise InferenceError(
            f"models[{endpoint.name}].key_file: {name} cannot be read on the worker "
            f"({getattr(error, 'strerror', None) or 'no path'}). Give a file that the workers can read."
        ) from None
    raise InferenceError(f"models[{endpoint.name}].key_file: {name} is no file. Give a file.")


def _printed(endpoint: Endpoint, command: tuple[str, ...]) -> bytes:
    """What a command prints; its standard error, which may hold the key, goes nowhere."""
    what = f"models[{endpoint.name}].key_command: {command[0]!r}"
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError):
        raise _no_program(endpoint) from None
    try:
        printed = _read_output(process)
        status = 0 if len(printed) > _LONGEST_KEY else process.wait(_COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        raise InferenceError(
            f"{what} took more than {_COMMAND_SECONDS:g} s. Have it print the key and end sooner."
        ) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status:
        raise InferenceError(
            f"{what} failed with status {status}. Run it where the workers run to see why; it must print the key."
        )
    return printed


def _read_output(process: subprocess.Popen[bytes]) -> bytes:
    """What a process prints until nobody has its output open any more, or until that is too long for a key."""
    printed, deadline = b"", time.monotonic() + _COMMAND_SECONDS
    with cast(IO[bytes], process.stdout) as output, selectors.DefaultSelector() as ready:
        ready.register(output, selectors.EVENT_READ)
        while len(printed) <= _LONGEST_KEY:
            if not ready.select(max(deadline - time.monotonic(), 0.0)):
                raise subprocess.TimeoutExpired(process.args, _COMMAND_SECONDS)
            part = os.read(output.fileno(), _LONGEST_KEY + 1)
            if not part:
                break
            printed += part
    return printed


def _no_program(endpoint: Endpoint) -> InferenceError:
    program = "" if endpoint.key_command is None else endpoint.key_command[0]
    return InferenceError(
        f"models[{endpoint.name}].key_command: there is no program {program!r} on the worker. Install it there, or "
        f"give its whole path."
    )


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
        self._forms: tuple[_Way, ...] = ()
        if key is None or len(key) < SHORTEST_KEY:
            return
        self._key = key.encode()
        self._escaped = _escaped(key)
        start = _PUBLIC.match(key)
        secret = self._key[start.end() :] if start and len(key) - start.end() >= SHORTEST_KEY else self._key
        encoded = [_Way(text, _SHORTEST_ENCODED) for text in _encodings(secret)]
        forms = (
            _Way(secret, SHORTEST_PART),
            _Way(secret.hex().encode(), 2 * SHORTEST_PART),
            *encoded,
        )
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
class _Way:
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
