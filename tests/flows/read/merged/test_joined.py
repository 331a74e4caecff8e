"""What several cubes say of one evaluation."""

from types import SimpleNamespace
from typing import Any

from evalcube.flows.read.merged.joined import Joined
from tests.cases import with_cases


@with_cases(
    ("times", "prices", "taken", "notes"),
    [
        (((1, 5), (2, 3)), (1, 2), 1, 1),
        (((1, 3), (2, 5)), (1, 2), 2, 1),
        (((1, 3), None), (1, 2), 1, 1),
        ((None, None), (2, 1), 2, 1),
        (((1, 3), (2, 5)), (2, 2), 2, 0),
    ],
)
def test_newest__is_of_the_cube_that_was_written_last(
    times: Any, prices: Any, taken: int, notes: int
) -> None:
    joined: Any = SimpleNamespace(
        inputs=[SimpleNamespace(times=time) for time in times],
        union=SimpleNamespace(
            places=[SimpleNamespace(models=[0])] * 2, spec={"evaluations": [{"model": "alpha"}]}
        ),
        notes=[],
    )

    assert Joined._newest(joined, "prices", [[price] for price in prices]) == [taken]
    assert len(joined.notes) == notes
