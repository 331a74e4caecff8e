"""What a report says of its sweep."""

from evalcube.flows.read.report import _MOST_ANSWERED, _answered_by
from tests.cases import with_cases

ONE, OTHER = (
    {"model": name, "answered_by": system, "warning": warning}
    for name, system, warning in (("a", "vllm 1", ""), ("b", "vllm 2", "b: two systems."))
)
UNNAMED = {**ONE, "model": "c", "answered_by": ""}


@with_cases(
    ("models", "facts"),
    [
        ([UNNAMED], {}),
        ([ONE, {**ONE, "model": "d"}], {"answered by": "vllm 1"}),
        ([ONE, UNNAMED], {"answered by": "a: vllm 1"}),
        ([ONE, OTHER], {"answered by": "a: vllm 1; b: vllm 2", "caution": "b: two systems."}),
        (
            [ONE, *[OTHER] * (_MOST_ANSWERED + 1)],
            {
                "answered by": "; ".join(["a: vllm 1", *["b: vllm 2"] * (_MOST_ANSWERED - 1), "and 2 more"]),
                "caution": " ".join(["b: two systems."] * (_MOST_ANSWERED + 1)),
            },
        ),
    ],
)
def test_answered_by__names_one_system_of_all_or_that_of_each_model(models, facts):
    assert _answered_by(models) == facts
