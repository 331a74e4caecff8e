"""Rows of the hub: fetched once, checked, pinned, and read without a network from then on."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
from typing import Any

import pytest

from evalcube.stages.generate import Cell, TaskError
from evalcube.stages.generate.dataset import Dataset, DatasetParams
from evalcube.stages.generate.dataset.hub import fetch, shelf
from evalcube.stages.generate.dataset.hub.address import Address
from tests.hub import GSM, Hub, cut_network, jsonl, parquet

TOKEN = "hf_not_a_real_token"


def resolved(file: str, **more: Any) -> DatasetParams:
    """The params of a point of word problems, as a plan has them."""
    given = {"prompt": "question", "kind": "number", "answer_after": "####"} | more
    return DatasetParams.of(Dataset().resolve(DatasetParams.model_validate({"file": file, **given})))


def questions(params: DatasetParams) -> set[str]:
    """All that a point asks."""
    cell = Cell(Dataset(), params, 1)
    return {cell.trial(i).prompt.partition("\n")[0] for i in range(params.rows)}


def asked_of(rows: list[dict[str, Any]]) -> set[str]:
    return {row["question"] for row in rows}


@pytest.fixture
def sums(hub: Hub) -> Hub:
    """A hub with word problems in Parquet, by config and split."""
    files = {
        "README.md": b"",
        "main/train-0.parquet": parquet(GSM[:20]),
        "main/test-0.parquet": parquet(GSM[20:]),
    }
    hub.add("acme/sums", files)
    return hub


def test_resolve__pins_the_newest_commit_and_needs_no_network_again(
    sums: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = resolved("hf://acme/sums?split=test")
    sums.repos["acme/sums"].files["main/test-0.parquet"] = parquet(GSM[:5])
    cut_network(monkeypatch)
    again = resolved("hf://acme/sums?split=test")

    assert first == again == resolved(first.file)
    assert Address.parse(first.file).is_pinned
    assert questions(first) == asked_of(GSM[20:])
    assert first.sha256 == hashlib.sha256(parquet(GSM[20:])).hexdigest()


def test_resolve__takes_the_commit_that_is_named(sums: Hub) -> None:
    old = sums.commit("acme/sums")
    sums.repos["acme/sums"].branches["old"] = dict(sums.repos["acme/sums"].files)
    sums.repos["acme/sums"].files["main/test-0.parquet"] = parquet(GSM[:5])

    assert resolved(f"hf://acme/sums@{old}?split=test").rows == 20
    assert resolved("hf://acme/sums?split=test").rows == 5


@pytest.mark.parametrize(
    "files",
    [
        {"test.jsonl": jsonl(GSM)},
        {"data/test.jsonl.gz": gzip.compress(jsonl(GSM))},
        {"test.json": json.dumps(GSM).encode()},
        {
            "test.csv": b"question,answer\n"
            + b"".join(f'{r["question"]},"{r["answer"]}"\n'.encode() for r in GSM)
        },
        {"a/test-0-of-2.parquet": parquet(GSM[:9]), "a/test-1-of-2.parquet": parquet(GSM[9:])},
        {"a/test-0.jsonl": jsonl(GSM[:9]), "a/test-1.jsonl": jsonl(GSM[9:])},
    ],
    ids=lambda files: next(iter(files)),
)
def test_resolve__reads_every_form(hub: Hub, files: dict[str, bytes]) -> None:
    hub.add("acme/sums", {**files, "train.jsonl": jsonl(GSM[:1])})

    assert questions(resolved("hf://acme/sums?split=test")) == asked_of(GSM)


def test_resolve__takes_what_the_hub_has_converted_where_a_script_makes_the_rows(hub: Hub) -> None:
    converted = {"main/test/0000.parquet": parquet(GSM)}
    hub.add("acme/sums", {"sums.py": b""}, branches={"refs/convert/parquet": converted})

    found = resolved("hf://acme/sums?config=main&split=test")

    assert questions(found) == asked_of(GSM)
    assert Address.parse(found.file).revision == hub.commit("acme/sums", "refs/convert/parquet")


def test_resolve__waits_for_a_busy_hub_and_resumes_a_broken_download(sums: Hub) -> None:
    sums.fail("/api/", 429, 2, Retry_After="1")
    sums.cut("resolve")

    assert resolved("hf://acme/sums?split=test").rows == 20


@pytest.mark.parametrize(("status", "told"), [(429, "too often"), (500, "HTTP 500"), (403, "refused")])
def test_resolve__gives_up_with_one_error(sums: Hub, status: int, told: str) -> None:
    sums.fail("/api/", status, 1000)

    with pytest.raises(TaskError, match=told):
        resolved("hf://acme/sums?split=test")

    assert len(sums.asked) < 10


def test_resolve__says_how_to_get_leave_and_keeps_no_token(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("acme/gated", {"test.jsonl": jsonl(GSM)}, gated=True)
    with pytest.raises(TaskError, match=r"HF_TOKEN"):
        resolved("hf://acme/gated")
    monkeypatch.setenv("HF_TOKEN", TOKEN)

    found = resolved("hf://acme/gated")

    assert f"Bearer {TOKEN}" in hub.tokens
    kept = [path.read_bytes() for path in shelf.folder().rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in data for data in [*kept, found.model_dump_json().encode()])


@pytest.mark.usefixtures("sums")
def test_resolve__refuses_other_content_than_the_hub_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tests.hub._sibling",
        lambda name, data: {"rfilename": name, "size": len(data), "blobId": "0" * 40},
    )

    with pytest.raises(TaskError, match="another content"):
        resolved("hf://acme/sums?split=test")

    assert left_over() == []


def left_over() -> list[str]:
    """What lies where rows are kept."""
    return sorted(path.name for path in shelf.folder().rglob("*") if path.is_file())


HTML = b"<!doctype html><title>Log in to the network</title>"


@pytest.mark.parametrize("part", ["/api/datasets", "resolve"])
def test_resolve__takes_a_page_for_a_proxys_and_says_so_at_once(sums: Hub, part: str) -> None:
    sums.answer(part, HTML)

    with pytest.raises(TaskError, match="a proxy"):
        resolved("hf://acme/sums?split=test")

    assert sum(part in asked for asked in sums.asked) <= 2
    assert left_over() == []


def test_resolve__ends_a_file_that_is_larger_than_announced(
    sums: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.hub._sibling", lambda name, _: {"rfilename": name, "size": 9, "blobId": None})

    with pytest.raises(TaskError, match=r"main/test-0\.parquet than the 9 bytes"):
        resolved("hf://acme/sums?split=test")

    assert left_over() == []
    assert len(sums.asked) < 9  # it is not tried again


def test_resolve__keeps_what_came_before_a_broken_connection(hub: Hub) -> None:
    hub.add("acme/parts", {f"test-{i}.jsonl": jsonl(GSM[i : i + 1]) for i in range(2)})
    hub.cut("test-1.jsonl", 1000)

    with pytest.raises(TaskError, match="cannot be reached"):
        resolved("hf://acme/parts?split=test")
    assert "test-0.jsonl" in left_over()
    hub.faults.clear()
    hub.asked.clear()

    assert resolved("hf://acme/parts?split=test").rows == 2
    assert not any(asked.startswith("GET") and "test-0.jsonl" in asked for asked in hub.asked)


@pytest.mark.usefixtures("sums")
@pytest.mark.parametrize(("after", "shown"), [(0.0, True), (60.0, False)])
def test_resolve__shows_progress_once_it_is_slow(
    after: float, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fetch, "_SHOWN_AFTER", after)

    resolved("hf://acme/sums?split=test")

    assert ("main/test-0.parquet" in capsys.readouterr().err) is shown


def test_resolve__follows_a_data_set_that_was_renamed(sums: Hub) -> None:
    sums.add("old/name", {}, renamed="acme/sums")

    assert Address.parse(resolved("hf://old/name?split=test").file).repo == "acme/sums"


@pytest.mark.usefixtures("sums")
def test_resolve__bounds_what_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "MOST_BYTES", 1000)
    with pytest.raises(TaskError, match="at most"):
        resolved("hf://acme/sums?split=test")


def test_resolve__bounds_what_all_parts_unpack_to_before_the_last_is_written(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = jsonl(GSM[:2] * 50)
    hub.add("acme/packed", {f"test-{i}.jsonl.gz": gzip.compress(part) for i in range(4)})
    monkeypatch.setattr(fetch, "MOST_BYTES", len(part) * 5 // 2)

    with pytest.raises(TaskError, match="makes more than"):
        resolved("hf://acme/packed?split=test")
    assert left_over() == []


def test_resolve__bounds_how_many_parts_there_are(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("acme/parts", {f"test-{i}.jsonl": jsonl(GSM[i : i + 1]) for i in range(3)})
    monkeypatch.setattr(fetch, "MOST_PARTS", 2)

    with pytest.raises(TaskError, match=r"3 files; .* 2"):
        resolved("hf://acme/parts?split=test")


@pytest.mark.usefixtures("sums")
@pytest.mark.parametrize(
    ("at", "code"),
    [("_file", errno.ENOSPC), ("_file", errno.EDQUOT), ("_file", errno.EACCES), ("keep", errno.EROFS)],
)
def test_resolve__tells_at_once_of_a_disk_that_takes_nothing(
    at: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def full(*_: object) -> None:
        tried.append(at)
        raise OSError(code, "no")

    monkeypatch.setattr(fetch._Hub if at == "_file" else shelf, at, full)
    with pytest.raises(TaskError, match="XDG_CACHE_HOME"):
        resolved("hf://acme/sums?split=test")

    assert tried == [at]


@pytest.mark.usefixtures("hub")
def test_resolve__names_the_remedy_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_network(monkeypatch)

    with pytest.raises(TaskError, match="data fetch 'hf://acme/sums'"):
        resolved("hf://acme/sums")


"""Files of the commits that recipes pin, as the hub and those who mirror it list them, and what is to be chosen."""


@pytest.mark.usefixtures("sums")
@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("hf://acme/sums", "may mean several files"),
        ("hf://acme/sums?split=dev", "none of its files"),
        ("hf://acme/sums?path=other.csv", "names no file"),
        ("hf://acme/nothing", "is not at"),
        ("hf://acme/sums@v2?split=test", "no such revision"),
        ("hf://acme", "no address"),
        ("hf://acme/sums?splt=test", "'splt'"),
        ("hf://acme/sums?path=../test.csv", "a path"),
        ("hf://acme/sums@..?split=test", "a revision"),
        ("hf://acme/sums?split=\x1b[2J", "no address"),
    ],
)
def test_resolve__tells_what_is_wrong_with_an_address(file: str, told: str) -> None:
    with pytest.raises(TaskError, match=told) as caught:
        resolved(file)

    assert str(caught.value).isprintable()
