"""All cases are tried, and those that fail are named."""

import pytest

from tests.cases import with_cases


def test_with_cases__tries_all_and_names_those_that_fail():
    tried = []

    @with_cases(("number", "root"), [(4, 2), (9, 4), (16, 4), (25, 6)])
    @with_cases("sign", [1, -1])
    def check(number, root, sign):
        tried.append((number, sign))
        assert (sign * root) ** 2 == number

    with pytest.raises(BaseExceptionGroup) as failed:
        check()

    assert tried == [(number, sign) for number in (4, 9, 16, 25) for sign in (1, -1)]
    assert [error.__notes__ for error in failed.value.exceptions] == [
        ["in case of {'number': 9, 'root': 4}"],
        ["in case of {'number': 25, 'root': 6}"],
    ]


def test_with_cases__raises_the_error_of_the_only_one_that_fails():
    @with_cases("text", ["1", "x"])
    def check(text):
        with pytest.raises(ValueError, match="invalid"):
            int(text)

    with pytest.raises(pytest.fail.Exception) as failed:
        check()

    assert failed.value.__notes__ == ["in case of {'text': '1'}"]


@with_cases("word", ["a", "b"])
def test_with_cases__leaves_fixtures_to_the_test(word, tmp_path):
    (tmp_path / word).touch(exist_ok=False)

    assert (tmp_path / "a").exists()
