"""The request's canonical form and its digest, which is the cache key for years."""

import hashlib
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.apis import build_request, repeat_seed

MESSAGES = [{"role": "user", "content": "2 + 2 = ? Grüße 😀"}]
SAMPLER = {"temperature": 0.7, "max_tokens": 256, "seed": 42}

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
samplers = st.dictionaries(st.text(min_size=1).filter(lambda key: key != "seed"), scalars, max_size=6)


def test_build_request__golden():
    """A change here makes every cache worthless: never adjust the digests to the code."""
    request = build_request("m", MESSAGES, SAMPLER)

    assert request.body == (
        b'{"max_tokens":256,"messages":[{"content":"2 + 2 = ? Gr\\u00fc\\u00dfe \\ud83d\\ude00","role":"user"}],'
        b'"model":"m","seed":42,"temperature":0.7}'
    )
    assert request.digest == "02c5ae7c94f5bec2f9f85d4c13c6faf2c339289ef7d43284674475501d9ad9b6"
    assert (
        build_request("m", MESSAGES, SAMPLER, 1).digest
        == "ce3468c6b2f43145255c571bd079f5a62341c7de101554d215bff384303b2157"
    )
    assert (
        build_request("m", MESSAGES, {}, 7).digest
        == "8b82d2b5f0f32b72c0139fb29540747379618e0e09b60852410b3b87f74aa263"
    )


def test_build_request__a_revision_enters_the_digest_alone():
    """Of a declared one, too, the digests are for years."""
    plain = build_request("m", MESSAGES, SAMPLER, 1)
    request = build_request("m", MESSAGES, SAMPLER, 1, revision='Q4 "K_M"')
    document = {"request": json.loads(request.body), "repeat": 1, "revision": 'Q4 "K_M"'}
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    assert request.body == plain.body
    assert request.digest == hashlib.sha256(canonical).hexdigest() != plain.digest


@given(samplers, st.text(), st.randoms(use_true_random=False))
def test_build_request__does_not_depend_on_the_order_of_keys(sampler, text, rng):
    shuffled = list(sampler.items())
    rng.shuffle(shuffled)
    turned = [{"content": text, "role": "user"}]

    request = build_request("m", [{"role": "user", "content": text}], sampler)

    assert build_request("m", turned, dict(shuffled)) == request


@given(samplers, st.text(), st.integers(0, 10**6))
def test_build_request__digest_is_that_of_the_canonical_document(sampler, text, repeat):
    request = build_request("m", [{"role": "user", "content": text}], sampler, repeat)
    document = {"request": json.loads(request.body), "repeat": repeat}
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    assert request.digest == hashlib.sha256(canonical).hexdigest()
    assert request.body.isascii()
    assert json.loads(request.body)["messages"][0]["content"] == text


def test_build_request__every_part_changes_the_digest():
    variants = [
        build_request("m", MESSAGES, SAMPLER),
        build_request("n", MESSAGES, SAMPLER),
        build_request("m", [{"role": "user", "content": "2 + 3 = ?"}], SAMPLER),
        build_request("m", [{"role": "system", "content": MESSAGES[0]["content"]}], SAMPLER),
        build_request("m", MESSAGES * 2, SAMPLER),
        build_request("m", MESSAGES, {**SAMPLER, "temperature": 0.8}),
        build_request("m", MESSAGES, {**SAMPLER, "top_p": 1}),
        *(build_request("m", MESSAGES, SAMPLER, repeat) for repeat in range(1, 40)),
    ]

    assert len({request.digest for request in variants}) == len(variants)


def test_build_request__repeats_without_a_seed_differ_in_the_digest_only():
    first, second = (build_request("m", MESSAGES, {"temperature": 1}, repeat) for repeat in range(2))

    assert first.body == second.body
    assert first.digest != second.digest


def test_build_request__repeats_have_seeds_of_their_own():
    seeds = [json.loads(build_request("m", MESSAGES, SAMPLER, repeat).body)["seed"] for repeat in range(100)]

    assert seeds[0] == 42
    assert len(set(seeds)) == 100
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seeds[1] == repeat_seed(42, 1) == 388429665


@pytest.mark.parametrize("seed", [True, None, "a", 1.5])
def test_build_request__leaves_a_seed_alone_that_is_no_number(seed):
    assert json.loads(build_request("m", MESSAGES, {"seed": seed}, 3).body)["seed"] == seed


def test_build_request__does_not_change_its_arguments():
    sampler = dict(SAMPLER)

    build_request("m", MESSAGES, sampler, 5)

    assert sampler == SAMPLER


def test_build_request__a_sampler_cannot_replace_model_or_messages():
    body = json.loads(build_request("m", MESSAGES, {"model": "x", "messages": []}).body)

    assert (body["model"], body["messages"]) == ("m", MESSAGES)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_build_request__refuses_numbers_that_json_has_not(value):
    with pytest.raises(ValueError, match="JSON"):
        build_request("m", MESSAGES, {"temperature": value})


@given(st.integers(), st.integers(1, 10**9))
def test_repeat_seed__is_a_31_bit_number_and_repeatable(seed, repeat):
    assert 0 <= repeat_seed(seed, repeat) < 2**31
    assert repeat_seed(seed, repeat) == repeat_seed(seed, repeat)
    assert repeat_seed(seed, 0) == seed


def test_repeat_seed__of_neighbours_have_nothing_in_common():
    rng = random.Random(1)
    pairs = [(rng.randrange(1000), rng.randrange(1, 1000)) for _ in range(2000)]

    assert len({repeat_seed(*pair) for pair in set(pairs)}) == len(set(pairs))
