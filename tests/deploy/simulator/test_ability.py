import hashlib
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalcube.deploy.simulator.profile import RANGES, Profile
from evalcube.deploy.simulator.reply import (
    CONTEXT,
    completion_tokens,
    delay,
    draws,
    probability,
    request_digest,
    speak,
)
from evalcube.deploy.simulator.truth import Truth

difficulties = st.floats(2.0**-30, 2.0**30)
abilities = st.floats(*RANGES["ability"])
slopes = st.floats(*RANGES["slope"])
guesses = st.floats(0, 1)
N = 4000


def digests(text: str) -> list[bytes]:
    return [request_digest(f"{text} {i}".encode()) for i in range(N)]


@given(abilities, slopes, difficulties, difficulties, guesses)
def test_probability__falls_with_difficulty_and_stays_above_guessing(ability, slope, one, other, guess):
    profile = Profile(ability=ability, slope=slope)
    easy, hard = (probability(profile, d, guess) for d in sorted((one, other)))

    assert guess - 1e-12 <= hard <= easy <= 1 + 1e-12


@given(abilities, slopes, difficulties, guesses)
def test_probability__is_the_three_parameter_logistic_curve(ability, slope, difficulty, guess):
    lead = slope * (ability - math.log2(difficulty))
    reference = guess + (1 - guess) * float(stats.logistic.cdf(lead))

    assert probability(Profile(ability=ability, slope=slope), difficulty, guess) == pytest.approx(reference)


@pytest.mark.parametrize("guess", [0.0, 0.25])
@pytest.mark.parametrize("difficulty", [1, 4, 8, 16, 64])
def test_speak__is_right_as_often_as_the_curve_says(difficulty, guess):
    profile = Profile(ability=3, slope=1)
    truth = Truth("41", (), float(difficulty), guess)
    expected = probability(profile, difficulty, guess)

    right = sum(
        speak(profile, truth, draws(digest), None).content.endswith("Answer: 41")
        for digest in digests("curve")
    )

    assert stats.binomtest(right, N, expected).pvalue > 1e-4


def test_draws__are_uniform_and_independent():
    columns = list(zip(*(draws(digest) for digest in digests("uniform")), strict=True))

    for i, column in enumerate(columns):
        assert stats.kstest(column, "uniform").pvalue > 1e-4
        for other in columns[:i]:
            assert abs(statistics.correlation(column, other)) < 5 / math.sqrt(N)


@given(st.binary(min_size=32, max_size=32))
def test_draws__lie_strictly_between_0_and_1(digest):
    assert all(0 < draw < 1 for draw in draws(digest))


def test_draws__of_extreme_digests_are_usable():
    for digest in (bytes(32), b"\xff" * 32):
        assert all(0 < draw < 1 for draw in draws(digest))
        assert 1 <= completion_tokens(Profile(spread=3), 2.0**30, draws(digest).length) <= CONTEXT


def test_completion_tokens__are_lognormal_about_the_median():
    profile = Profile(tokens=1000, growth=0.5, spread=0.4)
    logs = [math.log(completion_tokens(profile, 4.0, draws(d).length) / 2000) / 0.4 for d in digests("len")]

    assert stats.kstest(logs, "norm").pvalue > 1e-4


@given(st.floats(0.001, 0.999), difficulties, difficulties)
def test_completion_tokens__grow_with_difficulty(draw, one, other):
    easy, hard = (completion_tokens(Profile(), d, draw) for d in sorted((one, other)))

    assert 1 <= easy <= hard <= CONTEXT


def test_delay__is_latency_and_writing_time():
    assert delay(Profile(latency=0.5), 100) == 0.5
    assert delay(Profile(latency=0.5, speed=50), 100) == 2.5


def test_request_digest__depends_on_body_and_repeat_only():
    assert request_digest(b"a") == hashlib.sha256(b"a\x000").digest()
    assert len({request_digest(body, repeat) for body in (b"a", b"b") for repeat in (0, 1, 10)}) == 6
