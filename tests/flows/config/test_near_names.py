"""Which known name somebody meant, and what is said where none is near."""

import pytest

from evalcube.flows.config.near_names import checked_option, close_name, did_you_mean, listed, suggestion
from evalcube.flows.errors import SweepError, WrongTypeError
from tests.cases import with_cases

KNOWN = ["endpoint", "key_env", "samplers", "Model", "tiers"]


@with_cases(
    ("name", "meant"),
    [
        ("endpiont", "endpoint"),
        ("ENDPOINT", "endpoint"),
        ("modle", "Model"),
        ("base_url", "endpoint"),
        ("API_KEY", "key_env"),
        ("sampling", "samplers"),
        ("tasks", None),
        ("zzz", None),
        ("", None),
        ("endpoint" * 1000, None),
    ],
)
def test_close_name__is_a_near_one_or_what_it_is_called_elsewhere(name, meant):
    assert close_name(name, KNOWN) == meant


def test_close_name__takes_the_first_of_those_that_differ_in_case_and_no_synonym_that_is_unknown():
    assert close_name("tiers", ["Tiers", "tiers"]) == "Tiers"
    assert close_name("url", ["curl"]) == "curl"


def test_did_you_mean__names_it_or_lists_what_there_is():
    assert did_you_mean("modle", KNOWN, "Fields") == "Did you mean 'Model'?"
    assert did_you_mean("zzz", ["a", "b"], "Fields") == "Fields: a, b"
    assert suggestion(None, [], "Fields") == "Fields: none"


@pytest.mark.parametrize(("count", "end"), [(2, "1"), (3, "2"), (4, "2, ...")])
def test_listed__shows_the_first(count, end):
    assert listed([str(number) for number in range(count)], 3).endswith(end)


def test_checked_option__takes_what_is_known():
    checked_option("mode", "a", ["a", "b"])
    with pytest.raises(SweepError, match="`mode`: there is no 'bb'"):
        checked_option("mode", "bb", ["a", "b"])
    with pytest.raises(WrongTypeError, match="`mode`: 5 is no text"):
        checked_option("mode", 5, ["a", "b"])
