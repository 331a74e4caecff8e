"""Orders to a run that goes on, left beside its cube by whoever reaches it, and the run's answers.

An order is a record that did not exist before: the first number that is free is its own, so that orders have a
sequence wherever they come from, and none is obeyed twice. They lie under a name made of the lease's token, which no
other run has: what was ordered of an earlier run is read by no later one.

Whoever can write the cube can leave an order, and it may lower what the run spends. One that raises it has to come
from the run's own user, who shows that by a code of the order (HMAC) with a key that lies in this user's own folder,
see `own_key`. The code covers the run, the number, the words and the sender's time: it fits no other order.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalcube.flows.plan.own_files import make_own_folder, state_folder
from evalcube.flows.plan.records import read_record
from evalcube.storage.cube.space import Space, When
from evalcube.storage.errors import CubeDamagedError, guarded

FOLDER = "control"
"""Where orders lie among a cube's records."""
COMMANDS = ("pause", "resume", "stop", "limits", "drop-model", "retry-errors")
FRESH_SECONDS = 600.0
"""How old a signed order may be, and how far the clocks of its sender and of the run may be apart."""

_MOST_BYTES = 20_000
_MOST_WORDS, _MOST_CHARACTERS = 64, 1000
_KEY_BYTES = 32
_DIGITS = 6


@dataclass(frozen=True)
class Order:
    """What somebody wants of a run."""

    command: str
    """One of `COMMANDS`."""
    words: tuple[str, ...] = ()
    """What belongs to it, as on the command line."""
    by: str = ""
    """Who says to have sent it, for people; anybody can say anything here."""
    at: float = 0.0
    """When, seconds since the epoch by the sender's clock."""
    code: str = ""
    """Proof of the run's own user; empty if the sender is somebody else."""
    number: int = 0
    """Its place among the orders to the run, from 1."""


@dataclass(frozen=True)
class Answer:
    """What became of an order."""

    obeyed: bool
    message: str


def own_key(*, make: bool = False) -> bytes | None:
    """The key of this user; None if there is none that only this user could have read and written.

    Parameters
    ----------
    make
        Whether one is made where there is none. A run does so; a command only uses it.
    """
    path = state_folder() / "control.key"
    if make and not path.exists():
        with suppress(OSError):  # without a writable home directory, nobody can raise what the run spends
            make_own_folder(path.parent)
            temporary = path.with_name(f"control.key.{secrets.token_hex(4)}")
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
            # Linked, not renamed: of two runs that begin together, one makes the key and both use it.
            with suppress(FileExistsError):
                os.link(temporary, path)
            temporary.unlink()
    return _read_key(path)


def _read_key(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if state.st_uid != os.geteuid() or state.st_mode & 0o077:
                return None
            key = file.read(_KEY_BYTES + 1)
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None


def post(records: Space, token: str, order: Order, key: bytes | None) -> int:
    """Leave an order for the run that holds a cube's lease; returns its number.

    Parameters
    ----------
    records
        Those of the cube.
    token
        Of the lease.
    order
        What is wanted; its number and its code are added.
    key
        The user's key, see `own_key`; None leaves the order without a code.

    Raises
    ------
    StorageError
        If the cube cannot be written.
    """
    with guarded(f"{records.address}/{FOLDER}", "leave an order for the run"):
        taken, number = _numbers(records, token), 1
        while True:
            # The first that is free: the run reads one after another, and a gap that somebody leaves would stop it.
            while number in taken:
                number += 1
            own = replace(order, number=number)
            if key is not None:
                own = replace(own, code=code_of(own, token, key))
            document = {
                "command": own.command,
                "words": list(own.words),
                "by": own.by,
                "at": own.at,
                "code": own.code,
            }
            if records.put(_key(token, number), json.dumps(document).encode(), when=When.ABSENT) is not None:
                return number
            number += 1


def read_order(records: Space, token: str, number: int) -> Order | None:
    """An order; None if there is none of that number yet. One that is not understood has no command.

    Neither has what lies in its place and can never be read: a folder, a pipe, a link that leads out of the cube, a
    file of somebody else. To look at it again and again would keep all later orders from being read.

    Raises
    ------
    OSError, StorageError
        If it cannot be looked up.
    """
    try:
        found = records.get(_key(token, number), _MOST_BYTES)
    except IsADirectoryError:
        return Order("", number=number)
    except (CubeDamagedError, PermissionError):
        # Where the folder of all orders is the reason, every number would seem to be taken, and there is no last one.
        if number not in _numbers(records, token):
            raise
        return Order("", number=number)
    if found is None:
        return None
    with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
        fields = json.loads(found.data)
        order = Order(
            _text(fields["command"]),
            tuple(map(_text, list(fields["words"])[:_MOST_WORDS])),
            _text(fields["by"]),
            float(fields["at"]),
            _text(fields["code"]),
            number,
        )
        if order.command in COMMANDS:
            return order
    return Order("", number=number)


def is_own(order: Order, token: str, key: bytes | None) -> bool:
    """Whether the run's own user sent an order, and not long ago."""
    if key is None or not order.code.isascii():
        return False
    fresh = abs(time.time() - order.at) <= FRESH_SECONDS
    return fresh and hmac.compare_digest(order.code, code_of(order, token, key))


def code_of(order: Order, token: str, key: bytes) -> str:
    """What proves that the owner of a key sent this order, as this number, to this run."""
    said = ["evalcube order 1", token, order.number, order.command, list(order.words), order.by, order.at]
    return hmac.new(key, json.dumps(said).encode(), hashlib.sha256).hexdigest()


def reply(records: Space, token: str, number: int, answer: Answer) -> None:
    """Say what became of an order, for its sender.

    Raises
    ------
    StorageError
        If the cube cannot be written.
    """
    document = {"obeyed": answer.obeyed, "message": answer.message}
    with guarded(f"{records.address}/{FOLDER}", "answer an order"):
        records.put(_key(token, number, "answer"), json.dumps(document).encode(), durable=False)


def read_answer(records: Space, token: str, number: int) -> Answer | None:
    """What became of an order; None as long as nothing is known of it."""
    document = read_record(records, _key(token, number, "answer"), _MOST_BYTES)
    if not isinstance(document, dict) or not isinstance(document.get("message"), str):
        return None
    return Answer(document.get("obeyed") is True, document["message"][:_MOST_CHARACTERS])


def forget_orders(records: Space, token: str | None = None) -> None:
    """Remove orders and answers, which are nobody's before a run begins and after it has ended.

    Parameters
    ----------
    records
        Those of the cube.
    token
        Of the lease of a run whose orders are kept; None keeps none.
    """
    if token is None:
        records.clear(f"{FOLDER}/")
        return
    places = {key.split("/")[1] for key in records.list(f"{FOLDER}/")}
    for place in sorted(places - {_place(token)}):
        records.clear(f"{FOLDER}/{place}/")


def _numbers(records: Space, token: str) -> set[int]:
    names = (key.rsplit("/", 1)[-1] for key in records.list(f"{FOLDER}/{_place(token)}/"))
    texts = (name.removesuffix(".json") for name in names)
    return {int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) <= _DIGITS}


def _key(token: str, number: int, kind: str = "") -> str:
    name = f"{number:0{_DIGITS}d}.{kind}.json" if kind else f"{number:0{_DIGITS}d}.json"
    return f"{FOLDER}/{_place(token)}/{name}"


def _place(token: str) -> str:
    # A digest: a stranger's cube may have any text for a token, also one that leads elsewhere as a path.
    return hashlib.sha256(token.encode()).hexdigest()[:24]


def _text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if not isinstance(value, str):
        raise TypeError
    # What is shown to people, and written into logs, does nothing to a terminal.
    return "".join(c if c.isprintable() else "?" for c in value[:_MOST_CHARACTERS])


def clean(words: Sequence[str]) -> tuple[str, ...]:
    """Words of an order as the run will read them."""
    return tuple(map(_text, words[:_MOST_WORDS]))
