import pytest

from stages.rounding import half_away
from tests.stages.process.assertions.golden import VECTORS


@pytest.mark.parametrize("vector", VECTORS["rounding"]["round2"], ids=lambda vector: str(vector["x"]))
def test_half_away__is_the_rounding_of_oh_my_knowledge(vector: dict[str, float]) -> None:
    assert half_away(vector["x"], 2) == vector["y"]
