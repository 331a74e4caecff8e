"""Orders to a run: each has a number of its own, fits one run only, and proves whom it comes from."""

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from evalcube.flows.plan import control
from evalcube.flows.plan.control import (
    FRESH_SECONDS,
    Answer,
    Order,
    code_of,
    forget_orders,
    is_own,
    own_key,
    post,
    read_answer,
    read_order,
    reply,
)
from evalcube.flows.plan.own_files import STATE_VARIABLE
from evalcube.storage.cube.directory import Directory
from evalcube.storage.errors import CubeDamagedError
from tests.storage.support.memory_space import MemorySpace

KEY = b"k" * 32


@pytest.fixture(params=["directory", "bucket"])
def records(request, tmp_path):
    if request.param == "bucket":
        return MemorySpace("memory").at("_evalcube")
    (tmp_path / "cube" / "_evalcube").mkdir(parents=True)
    return Directory(tmp_path / "cube").at("_evalcube")


def sent(**changes):
    return Order(**{"command": "stop", "by": "ada@laptop", "at": time.time(), **changes})


def test_post__of_many_at_once_each_has_its_own_number(records):
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda _: post(records, "token", sent(), None), range(12)))

    assert sorted(numbers) == list(range(1, 13))
    assert all(read_order(records, "token", number).command == "stop" for number in numbers)


def test_post__takes_the_first_number_that_is_free_whatever_others_took(records):
    for number in (999_999, 2):
        records.put(control._key("token", number), b"{}")

    assert [post(records, "token", sent(), None) for _ in range(2)] == [1, 3]


ODD = {
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a loop": lambda path: path.symlink_to(path.name),
    "a number beyond all": lambda path: path.write_text(
        f'{{"command": "stop", "words": [], "by": "", "at": 1{"0" * 400}, "code": ""}}'
    ),
}


@pytest.mark.parametrize("put", ODD.values(), ids=ODD)
def test_read_order__passes_over_what_is_no_order_and_reads_the_next_one(tmp_path, put):
    records = Directory(tmp_path).at("_evalcube")
    path = tmp_path / "_evalcube" / control._key("token", 1)
    path.parent.mkdir(parents=True)
    put(path)

    assert post(records, "token", sent(), None) == 2
    assert read_order(records, "token", 1) == Order("", number=1)
    assert read_order(records, "token", 2).command == "stop"
    assert read_order(records, "token", 3) is None


def test_read_order__of_a_folder_that_leads_elsewhere_finds_no_orders_without_end(tmp_path):
    records = Directory(tmp_path / "cube").at("_evalcube")
    place = (tmp_path / "cube" / "_evalcube" / control._key("token", 1)).parent
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path)

    with pytest.raises(CubeDamagedError):
        read_order(records, "token", 1)


def test_read_order__knows_nothing_of_another_runs_orders(records):
    post(records, "earlier", sent(), KEY)

    assert read_order(records, "later", 1) is None
    assert post(records, "later", sent(), KEY) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[" * 30_000,
        b'{"command": "stop"}',
        b'{"command": "launch", "words": [], "by": "", "at": 1, "code": ""}',
        b'{"command": "stop", "words": [1], "by": "", "at": 1, "code": ""}',
        b'{"command": "stop", "words": {}, "by": "", "at": "soon", "code": ""}',
    ],
)
def test_read_order__what_is_not_understood_is_an_order_without_a_command(records, data):
    number = post(records, "token", sent(), None)
    records.put(control._key("token", number), data)

    assert read_order(records, "token", number) == Order("", number=number)


def test_read_order__what_a_stranger_writes_does_nothing_to_a_terminal(records):
    number = post(records, "token", sent(by="\x1b[2Jada", words=("a\nb",)), None)

    order = read_order(records, "token", number)

    assert (order.by, order.words) == ("?[2Jada", ("a?b",))


def test_post__a_strangers_token_leads_nowhere_else(tmp_path):
    (tmp_path / "cube" / "_evalcube").mkdir(parents=True)
    post(Directory(tmp_path / "cube").at("_evalcube"), "../../../elsewhere", sent(), None)

    assert {path.parent.parent for path in tmp_path.rglob("*.json")} == {
        tmp_path / "cube" / "_evalcube" / "control"
    }


def test_is_own__an_order_of_the_user_is_and_nothing_else(records):
    number = post(records, "token", sent(command="limits", words=("connections=64",)), KEY)
    order = read_order(records, "token", number)

    assert is_own(order, "token", KEY)
    changed = [
        {"command": "retry-errors"},
        {"words": ("connections=65",)},
        {"number": number + 1},
        {"by": "bob@laptop"},
        {"at": order.at + 1},
        {"code": ""},
        {"code": "ä"},
    ]
    for change in changed:
        assert not is_own(replace(order, **change), "token", KEY), change
    assert not is_own(order, "another run", KEY)
    assert not is_own(order, "token", b"x" * 32)
    assert not is_own(order, "token", None)


@pytest.mark.parametrize("seconds", [-2 * FRESH_SECONDS, 2 * FRESH_SECONDS])
def test_is_own__one_that_somebody_kept_back_is_not(seconds):
    order = sent(at=time.time() + seconds, number=1)

    assert not is_own(replace(order, code=code_of(order, "token", KEY)), "token", KEY)


def test_own_key__is_made_once_and_for_the_user_only(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    assert own_key() is None

    made = own_key(make=True)

    assert len(made) == 32
    assert own_key(make=True) == own_key() == made
    (path,) = (tmp_path / "state" / "evalcube").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_own_key__that_others_may_read_proves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    own_key(make=True)
    (tmp_path / "evalcube" / "control.key").chmod(0o640)

    assert own_key(make=True) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_own_key__without_a_writable_home_is_none(tmp_path, monkeypatch):
    tmp_path.chmod(0o500)
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))

    assert own_key(make=True) is None


def test_read_answer__is_none_until_there_is_one(records):
    number = post(records, "token", sent(), None)
    assert read_answer(records, "token", number) is None

    reply(records, "token", number, Answer(False, "no"))

    assert read_answer(records, "token", number) == Answer(False, "no")
    assert post(records, "token", sent(), None) == number + 1


def test_forget_orders__those_of_the_run_that_begins_are_kept(records):
    post(records, "mine", sent(), None)
    post(records, "earlier", sent(), None)

    forget_orders(records, "mine")
    assert (read_order(records, "mine", 1) is not None, read_order(records, "earlier", 1)) == (True, None)

    forget_orders(records)
    assert read_order(records, "mine", 1) is None
