"""Tokens that prove that processes see the same cube and cache."""

import pytest

from evalcube.storage import reach
from evalcube.storage.reach import leave_tokens


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(reach, "_LAG_SECONDS", 0.0)


@pytest.fixture
def places(tmp_path):
    found = tmp_path / "cube", tmp_path / "cache"
    for place in found:
        place.mkdir()
    return found


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_tokens__are_answered_where_they_are_seen_and_leave_nothing(tmp_path, places):
    tokens = leave_tokens("run", *places)

    assert [token.answer("worker") for token in tokens] == ["", ""]
    assert all(token.has_answer("worker") for token in tokens)
    assert not any(token.has_answer("other") for token in tokens)
    for token in tokens:
        token.remove(["worker"])
    assert files(tmp_path) == []
    folders = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert folders == {
        "cache",
        "cache/tmp",
        "cube",
        "cube/_evalcube",
    }  # no folder of tokens stays in the cube


def test_tokens__that_are_not_there_are_no_reason_to_write(tmp_path, places):
    (cube, cache) = leave_tokens("run", *places)
    (tmp_path / "cache").rename(tmp_path / "elsewhere")

    said = cache.answer("worker")

    assert cube.answer("worker") == ""
    assert said.startswith(
        f"does not see the sweep's cache at {tmp_path / 'cache'}. Mount the same file system"
    )
    assert not (tmp_path / "cache").exists()


def test_tokens__of_another_place_with_the_same_path_do_not_do(places):
    (token, _) = leave_tokens("run", *places)
    (again, _) = leave_tokens("run", *places)

    assert "does not see" in token.answer("worker")
    assert again.answer("worker") == ""
