"""What scripts of the explorer make of numbers, texts and addresses, in a real browser."""

import random

import pytest

from tests.flows.explore.browsing import opened


@pytest.fixture(scope="module")
def at(chromium, address):
    with opened(chromium, address) as page:
        page.go("ranking")
        yield page


def test_fixed__rounds_as_python_prints(at):
    draw = random.Random(1)
    values = [96.25, 96.35, 0.5, 1.5, 2.5, -96.25, -0.5, 0.15, 1.005, 0.0, 99.95, 1e22, 1e-9, 12.125]
    values += [draw.randrange(0, 8000) / 8 for _ in range(300)] + [draw.random() * 100 for _ in range(300)]

    for decimals in (0, 1, 2):
        shown = at.page.evaluate(
            "([values, decimals]) => values.map(one => explorer.format.fixed(one, decimals))",
            [values, decimals],
        )
        for value, text in zip(values, shown, strict=True):
            assert float(text) == float(format(value, f".{decimals}f")), (value, decimals)
    assert at.page.evaluate("explorer.format.percent(0.9625)") == "96.2 %"
    assert at.page.evaluate("explorer.format.number(1.0625)") == format(1.0625, ".4g")
