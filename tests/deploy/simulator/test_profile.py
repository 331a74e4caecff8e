import math
from dataclasses import asdict, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.deploy.errors import DeployError, SimulatorError
from evalcube.deploy.simulator.profile import RANGES, REASONING, Profile, parse
from tests.cases import with_cases

numbers = {name: st.floats(*limits) for name, limits in RANGES.items()}
profiles = st.builds(Profile, reasoning=st.sampled_from(REASONING), **numbers)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(names, profiles)
def test_parse__reads_back_what_model_name_wrote(name, profile):
    assert parse(profile.model_name(name)) == (name, profile)


@given(names, profiles)
def test_model_name__is_printable_ascii_with_sorted_keys(name, profile):
    text = profile.model_name(name)

    assert text.isascii()
    assert text.isprintable()
    keys = [setting.partition("=")[0] for setting in text.partition("?")[2].split("&")]
    assert keys == sorted(field.name for field in fields(Profile))


def test_model_name__is_the_same_for_equal_profiles():
    assert Profile(ability=-0.0).model_name("a") == Profile(ability=0).model_name("a")


def test_parse__fills_in_defaults():
    assert parse("sim/a") == ("a", Profile())
    assert parse("sim/a?tokens=7") == ("a", Profile(tokens=7))


def test_ranges__cover_every_number_and_its_default():
    defaults = asdict(Profile())

    assert {name for name, value in defaults.items() if isinstance(value, float)} == set(RANGES)
    for name, (low, high) in RANGES.items():
        assert low <= defaults[name] <= high


@with_cases("name", RANGES)
@with_cases("kind", ["low", "high", "nan", "bool", "text"])
def test_profile__names_field_value_and_range(name, kind):
    low, high = RANGES[name]
    values = {"low": low - 1, "high": high * 2 + 1, "nan": math.nan, "bool": True, "text": "1"}
    value = values[kind]

    with pytest.raises(SimulatorError) as caught:
        Profile(**{name: value})

    assert (caught.value.field, caught.value.value) == (name, value)
    for part in (name, repr(value), f"{low:g}", f"{high:g}"):
        assert part in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, DeployError)


@with_cases(
    ("text", "field"),
    [
        ("gpt-5", "model"),
        ("sim/", "model"),
        ("sim/?ability=1", "model"),
        ("sim/a?abilty=1", "abilty"),
        ("sim/a?ability=1&ability=2", "ability"),
        ("sim/a?ability=much", "ability"),
        ("sim/a?ability=nan", "ability"),
        ("sim/a?reasoning=loud", "reasoning"),
    ],
)
def test_parse__refuses(text, field):
    with pytest.raises(SimulatorError) as caught:
        parse(text)

    assert caught.value.field == field


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_model_name__refuses_a_name_that_cannot_be_sent(name):
    with pytest.raises(SimulatorError, match="name"):
        Profile().model_name(name)
