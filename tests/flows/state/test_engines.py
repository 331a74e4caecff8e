"""What is said of evaluations whose replies come from several systems."""

from types import SimpleNamespace

from evalcube.flows.state.engines import origins_of
from evalcube.storage.cube.regions import Region


def test_origins_of__name_several_systems_with_their_shares_of_trials():
    fingerprints = ({"a": 20, "b": 10}, {"a": 10}, {"c": 3})
    receipts = [
        SimpleNamespace(region=Region(model, trial, 0), fingerprints=counts)
        for (model, trial), counts in zip([(0, 0), (0, 1), (1, 0)], fingerprints, strict=True)
    ]

    first, second = origins_of([("m", "1"), ("n", "2")], {}, receipts)

    assert first.warning.startswith("m: ")
    assert "a 75%, b 25%" in first.warning
    assert second.warning == ""
