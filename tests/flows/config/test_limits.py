"""Rates and bounds on spending: what a config may say, and what is refused."""

import pytest

from evalcube.flows.config.limits import BatchSetting, ConnectionSearch, Limits, Precision, Spend
from evalcube.flows.config.load import parse_config
from tests.cases import with_cases
from tests.flows.config.sources import problems, takes, text

PRICED = '- {name: a, endpoint: "sim:", prices: {prompt: 0, completion: 2.0}}'

NO_PRICES = (
    "c.yaml:8: spend.usd: no model has prices, so that this bound would never be reached, got 5. "
    "Give the models prices (USD per million tokens), or bound tokens"
)


def test_limits__rates_are_read():
    limits = parse_config(
        text(
            models='- {name: a, endpoint: "sim:", limits: {requests_per_minute: 600, tokens_per_minute: 2e5}}'
        ),
        "c.yaml",
    )

    (model,) = limits.models
    assert (model.limits.requests_per_minute, model.limits.tokens_per_minute) == (600, 200_000)


@pytest.mark.parametrize(
    ("spend", "expected"), [("{tokens: 2000000}", (2e6, None)), ("{usd: 20, tokens: 5}", (5, 20))]
)
def test_spend__is_read(spend, expected):
    config = parse_config(text(models=PRICED, spend=spend), "c.yaml")

    assert (config.spend.tokens, config.spend.usd) == expected


@pytest.mark.parametrize(
    ("prices", "batch", "expected"),
    [
        ("{prompt: 4, completion: 8}", "true", (4, 8, 0)),
        ("{prompt: 4, completion: 8, cached: 1}", "false", (4, 8, -3)),
        ("{prompt: 4, completion: 8, cached: 1, batch: 0.5}", "false", (4, 8, -3)),
        ("{prompt: 4, completion: 8, cached: 1, batch: 0.5}", "true", (2, 4, -1.5)),
    ],
)
def test_paid__is_by_the_way_in_which_a_model_is_asked(prices, batch, expected):
    model = f'- {{name: a, endpoint: "https://h/v1", prices: {prices}, batch: {batch}}}'

    assert parse_config(text(models=model), "c.yaml").models[0].paid == expected


@with_cases(
    ("sections", "expected"),
    [
        (
            {"models": '- {name: a, endpoint: "sim:", limits: {requests_per_minute: 0}}'},
            "c.yaml:2: models[0].limits.requests_per_minute: must be at least 0.1, got 0",
        ),
        (
            {"models": '- {name: a, endpoint: "sim:", limits: {tokens_per_minute: many}}'},
            "c.yaml:2: models[0].limits.tokens_per_minute: must be a number, got 'many'",
        ),
        (
            {"models": '- {name: a, endpoint: "sim:", prices: {prompt: 1}}'},
            "c.yaml:2: models[0].prices: lacks completion. Add completion: 0 if they are free",
        ),
        (
            {"models": '- {name: a, endpoint: "sim:", prices: {prompt: 1, completion: 2, cached: 5}}'},
            "c.yaml:2: models[0].prices.cached: must be at most what other prompt tokens cost, 1, got 5. Remove it",
        ),
        (
            {"spend": "{}"},
            "c.yaml:7: spend: must bound tokens or usd, got a mapping. Write {tokens: 2000000} or {usd: 20}",
        ),
        (
            {"spend": "{token: 5}"},
            "c.yaml:8: spend.token: unknown field 'token'. Did you mean 'tokens'?",
        ),
        (
            {"models": PRICED, "spend": "{usd: 0}"},
            "c.yaml:8: spend.usd: must be more than 0, got 0",
        ),
        (
            {"spend": "{usd: 5}"},
            NO_PRICES,
        ),
    ],
)
def test_problems__of_rates_and_bounds(sections, expected):
    assert problems(text(**sections)) == [expected]


@with_cases(
    ("section", "field", "fine", "wrong"),
    [
        (Limits, "connections", [1, 4096, "auto", {"most": 1}], [0, 4097, True, 1.5, "all"]),
        (Limits, "requests_per_minute", [0.1, 1e7], [0.09, 1.1e7]),
        (Limits, "tokens_per_minute", [1, 1e12], [0.9, 1.1e12]),
        (Limits, "timeout", [0.001, 86_400], [0, 86_401]),
        (Limits, "retries", [0, 100], [-1, 101, 1.5]),
        (Limits, "patience", [0, 86_400], [-1, 86_401]),
        (BatchSetting, "requests", [1, 1_000_000], [0, 1_000_001]),
        (ConnectionSearch, "start", [1, 256], [0, 257]),
        (Spend, "tokens", [1, 1e15], [0.5, 2e15]),
        (Spend, "usd", [0.001, 1e9], [0, 2e9]),
    ],
)
def test_bounds__are_those_of_the_documentation(section, field, fine, wrong):
    assert [value for value in fine if not takes(section, **{field: value})] == []
    assert [value for value in wrong if takes(section, **{field: value})] == []


@with_cases(
    ("connections", "first", "most", "declared"),
    [
        ("auto", 16, 256, None),
        (7, None, 7, 7),
        ({"most": 8}, 4, 8, None),
        ({"most": 1}, 1, 1, None),
        ({"most": 100}, 16, 100, None),
        ({"start": 8, "most": 8}, 8, 8, None),
        ({"start": 100}, 100, 256, None),
    ],
)
def test_connections__are_looked_for_from_half_of_the_most(connections, first, most, declared):
    limits = Limits(connections=connections)

    assert (limits.most, limits.declared) == (most, declared)
    assert (limits.endpoint["connections"], limits.endpoint["start"]) == (most, first)


def test_limits__have_room_and_something_to_bound():
    assert not takes(ConnectionSearch, start=9, most=8)
    assert not takes(Spend)
    assert takes(Precision, base=8, target=0.499, max=8)
    for wrong in ({"base": 9}, {"target": 0.5}, {"target": 0}, {"base": 0, "max": 1}, {"max": 10**7 + 1}):
        assert not takes(Precision, **{"base": 8, "target": 0.1, "max": 8, **wrong})
