"""What was used last stays, as far as its weight allows."""

import pytest

from evalcube.stages.generate.recent import Recent


def test_recent__forgets_what_was_used_longest_ago():
    recent = Recent(2)
    assert (recent.put("a", 1), recent.put("b", 2)) == (1, 2)
    assert recent.get("a") == 1
    recent.put("c", 3)

    assert [recent.get(key) for key in "abc"] == [1, None, 3]
    assert len(recent) == 2


def test_recent__keeps_as_much_as_weighs_no_more_and_one_that_does():
    recent = Recent(10, len)
    for key, size in (("a", 4), ("b", 6)):
        recent.put(key, "x" * size)
    assert len(recent) == 2
    recent.put("a", "x" * 3)  # in place of the other one, and newer than b
    recent.put("c", "x")
    assert len(recent) == 3
    recent.put("d", "x")  # 11 in all: what was used longest ago goes

    assert [recent.get(key) is None for key in "bacd"] == [True, False, False, False]
    recent.put("e", "x" * 99)
    assert ([recent.get(key) is None for key in "acde"], len(recent)) == ([True, True, True, False], 1)
    recent.put("f", "x")
    assert recent.get("e") is None
    assert recent.get("f") == "x"


def test_obtain__makes_once_what_is_not_there_and_keeps_no_failure():
    recent, made = Recent(2), []

    def make():
        made.append(1)
        return "value"

    def fail():
        raise ValueError("no")

    assert [recent.obtain("a", make) for _ in range(2)] == ["value"] * 2
    assert len(made) == 1
    with pytest.raises(ValueError, match="no"):
        recent.obtain("b", fail)
    assert recent.get("b") is None
