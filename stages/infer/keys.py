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
from collections.abc import Generator
from pathlib import Path
from typing import IO, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from evalcube.stages.infer.endpoint import Endpoint, InferenceError

_BACKSLASHES = re.compile(rb"(?:\\\\)*")
_LONGEST_KEY = 16_384
"""Bytes; tokens of identity providers have a few thousand."""
_COMMAND_SECONDS = 30.0
_WRAPPED = re.compile(
    r"""["'`]|(?:export\s+)?(?:[A-Z][A-Z0-9_]*|\w*(?:key|token|secret)\w*)\s*[=:]\s*[^=\s]"""
)
"""What begins no key, though a file with one may: no provider's has an equals sign but at its end."""
_SHORTEST_PAUSE = 1.0
"""Seconds after which a key that was found unchanged is read again, if it is refused again."""


def read_key(endpoint: Endpoint) -> str | None:
    """The key as it is at this moment; None if the endpoint has none. May wait for a file or a command."""
    if endpoint.key_file is not None:
        return _valid(_file(endpoint, endpoint.key_file), f"models[{endpoint.name}].key_file: the file")
    if endpoint.key_command is not None:
        source = f"models[{endpoint.name}].key_command: what the command prints"
        return _valid(_command_output(endpoint, endpoint.key_command), source)
    return endpoint.key()


def check_source(endpoint: Endpoint) -> None:
    """Make sure, as far as it can be seen without running a command, that there is a key."""
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
        """Read the key, unless it has been read."""
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
        """Whether there is another key than that of `generation`, which was refused; it is read again for that."""
        if not self._renewable:
            return False
        async with self._lock:
            # Another request that was refused has found the new key while this one waited for the lock.
            if self.generation != generation:
                return True
            if time.monotonic() - self._refused_at < _SHORTEST_PAUSE:
                return False
            try:
                key = await asyncio.to_thread(read_key, self._endpoint)
            finally:
                # Also where it could not be read: a thousand refused requests must not run a command a thousand times.
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
    if _WRAPPED.match(text):
        raise InferenceError(
            f"{what} holds quotes or a name before the key. Have it hold the bare key only, unlike a file of variables."
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


def _command_output(endpoint: Endpoint, command: tuple[str, ...]) -> bytes:
    """What a command prints; its standard error, which may hold the key, goes nowhere."""
    source = f"models[{endpoint.name}].key_command: {command[0]!r}"
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # So that a command which takes too long can be killed with all that it started.
            start_new_session=True,
        )
    except (OSError, ValueError):
        raise _no_program(endpoint) from None
    try:
        printed = _read_output(process)
        status = 0 if len(printed) > _LONGEST_KEY else process.wait(_COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        raise InferenceError(
            f"{source} took more than {_COMMAND_SECONDS:g} s. Have it print the key and end sooner."
        ) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status:
        raise InferenceError(
            f"{source} failed with status {status}. Run it where the workers run to see why; it must print the key."
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
_LONGEST_ESCAPE = 6
_STEP_BYTES = 1 << 15
_FEW = 64
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BYTE = np.dtype(np.uint8)
_FOLDED = np.frombuffer(bytes(range(256)).lower(), _BYTE)
_DIGITS = np.array(
    [int(chr(byte), 16) if chr(byte) in "0123456789abcdef" else 16 for byte in range(256)], _BYTE
)
"""Values of hexadecimal digits, by byte of a folded text; 16 for what is none."""
_MASK_BYTES = np.frombuffer(MASK, _BYTE)

Bytes: TypeAlias = npt.NDArray[np.uint8]
Flags: TypeAlias = npt.NDArray[np.bool_]


class KeyMask:
    """Masks one key in bytes: as it is, escaped as in JSON or a URL, in Base64, in hexadecimal, and parts of it.

    Upper and lower case are the same. The work grows with the length of the bytes alone, whatever they hold: each eight
    bytes in a row are looked up among all of those that a form of the key has.

    Parameters
    ----------
    key
        Printable ASCII; one of fewer than `SHORTEST_KEY` characters is no secret, and nothing is masked.
    """

    def __init__(self, key: str | None) -> None:
        self._reach = 0
        """Bytes before and after a place that decide whether it is masked; 0 where there is nothing to mask."""
        if key is None or len(key) < SHORTEST_KEY:
            return
        whole, start = key.encode(), _PUBLIC.match(key)
        secret = whole[start.end() :] if start and len(key) - start.end() >= SHORTEST_KEY else whole
        encoded = ((text, _SHORTEST_ENCODED) for text in _encodings(secret))
        # A form of its own, as the key's public beginning is masked only with some of the rest.
        head = whole[: len(whole) - len(secret) + SHORTEST_PART]
        forms = (
            *((text, SHORTEST_PART) for text in (secret, secret.replace(b"\\", b""))),
            (head, len(head)),
            (secret.hex().encode(), 2 * SHORTEST_PART),
            *encoded,
        )
        grams = [_grams(text.lower()) for text, shortest in forms if len(text) >= shortest]
        runs = [shortest - SHORTEST_PART + 1 for text, shortest in forms if len(text) >= shortest]
        values, lengths = np.concatenate(grams), np.repeat(runs, [len(each) for each in grams])
        order = np.lexsort((lengths, values))
        self._grams, first = np.unique(values[order], return_index=True)
        self._known = frozenset(self._grams.tolist())
        self._runs = lengths[order][first]
        """By gram, how many in a row make a part that is masked."""
        self._shift = np.uint64(64 - max(16, (16 * len(self._grams)).bit_length()))
        self._hashes = np.zeros(1 << (64 - int(self._shift)), np.bool_)
        self._hashes[self._hash(self._grams)] = True
        self._escapable = any(character in key for character in '"/\\%')
        self._reach = _LONGEST_ESCAPE * (max(runs) + SHORTEST_PART)

    def steps(self, body: bytes) -> Generator[int, None, bytes]:
        """Return the bytes without the key, after steps of some milliseconds at most."""
        masked: Flags | None = None
        if not self._reach or len(body) < SHORTEST_PART:
            return body
        for start in range(0, len(body), _STEP_BYTES):
            if start:
                yield _STEP_BYTES
            first = max(start - self._reach, 0)
            part = self._find(body[first : start + _STEP_BYTES + self._reach])
            if part is not None:
                masked = np.zeros(len(body), np.bool_) if masked is None else masked
                masked[start : start + _STEP_BYTES] = part[start - first :][:_STEP_BYTES]
        return body if masked is None else _replace(body, masked)

    def _find(self, body: bytes) -> Flags | None:
        """Which bytes belong to a part of the key; None if none does, as nearly always, after some microseconds."""
        text = body.lower()
        parts = self._find_plain(np.frombuffer(text, _BYTE))
        escapes = b"\\" in text and (parts is not None or self._escapable or b"\\u00" in text)
        if not escapes and b"%" not in text:
            return parts
        # Also where the key stands unescaped: a backslash before it must not be left alone.
        plain, ends = _unescape(text)
        unescaped = self._find_plain(plain)
        if unescaped is None:
            return parts
        masked = np.zeros(len(text), np.bool_)
        masked[: ends[-1]] = np.repeat(unescaped, np.diff(ends, prepend=0))
        for start in np.flatnonzero(np.diff(masked.view(np.int8), prepend=0) == 1):
            pairs = _BACKSLASHES.match(text, int(start)).end()  # type: ignore[union-attr]  # it may be empty
            masked[start:pairs] = False  # two in a row are a backslash of the text before
        return masked | parts if self._escapable and parts is not None else masked

    def _find_plain(self, text: Bytes) -> Flags | None:
        grams = _grams(text)
        places = self._hashes.take(self._hash(grams)).nonzero()[0]
        # By chance some bytes in a text have the hash of a gram: a set finds that out sooner than arrays do.
        if len(places) <= _FEW and self._known.isdisjoint(grams[places].tolist()):
            return None
        index = np.minimum(np.searchsorted(self._grams, grams[places]), len(self._grams) - 1)
        real = self._grams[index] == grams[places]
        places, runs = places[real], self._runs[index[real]]
        lengths = np.diff(np.flatnonzero(np.diff(places, prepend=-2) != 1), append=len(places))
        places = places[runs <= np.repeat(lengths, lengths)]
        if not len(places):
            return None
        begins = np.zeros(len(grams), np.bool_)
        begins[places] = True
        masked = np.zeros(len(text), np.bool_)
        for offset in range(SHORTEST_PART):
            masked[offset : offset + len(begins)] |= begins
        return masked

    def _hash(self, grams: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        return ((grams * _MULTIPLIER) >> self._shift).view(np.int64)


def _grams(text: bytes | Bytes) -> npt.NDArray[np.uint64]:
    """Each eight bytes in a row, as a number."""
    return np.ndarray((max(len(text) - SHORTEST_PART + 1, 0),), "<u8", text, strides=(1,))


def _unescape(text: bytes) -> tuple[Bytes, npt.NDArray[np.int64]]:
    r"""A folded text without escapes (``\/``, ``\u002b``, ``%2b``), and where each of its bytes ends in `text`."""
    padded = np.frombuffer(text + bytes(_LONGEST_ESCAPE), _BYTE)
    plain, digits = padded[: len(text)].copy(), _DIGITS[padded]
    stays = plain != ord("\\")
    widths = np.ones(len(text), np.int64)
    for begin in (b"%", b"\\u00"):
        places = np.flatnonzero(plain == begin[0])
        for offset, byte in enumerate(begin):
            places = places[padded[places + offset] == byte]
        high, low = digits[places + len(begin)], digits[places + len(begin) + 1]
        valid = (high < 16) & (low < 16)
        places = places[valid]
        plain[places] = _FOLDED[high[valid] * 16 + low[valid]]
        stays[places], widths[places] = True, len(begin) + 2
        for offset in range(1, len(begin) + 2):
            stays[places + offset] = False
    left = np.flatnonzero(stays)
    return plain[left], left + widths[left]


def _replace(body: bytes, masked: Flags) -> bytes:
    """The bytes with a mask in place of each run of those that are masked."""
    changed, stays = np.frombuffer(body, _BYTE).copy(), ~masked
    starts = np.flatnonzero(np.diff(masked.view(np.int8), prepend=0) == 1)
    for offset, byte in enumerate(_MASK_BYTES):
        changed[starts + offset] = byte
        stays[starts + offset] = True
    return changed[stays].tobytes()


def _encodings(secret: bytes) -> list[bytes]:
    """Base64 of the secret at each place in a group of three bytes, without what its neighbours decide."""
    texts = []
    for before in range(3):
        inner = base64.b64encode(bytes(before) + secret)[-(-before * 8 // 6) :]
        inner = inner[: (before + len(secret)) * 8 // 6 - -(-before * 8 // 6)]
        texts += [inner, inner.translate(bytes.maketrans(b"+/", b"-_"))]
    return list(dict.fromkeys(texts))
