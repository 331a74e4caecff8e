"""Where a value may stand, and what it is where two places give different ones."""

import pytest

from evalcube.stages.generate.answers.numbers import last_integer
from evalcube.stages.generate.answers.values import first_line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\\boxed{5}\nAnswer: 7", None),
        ("So \\boxed{5}\nAnswer: 7", None),
        ("We get \\boxed{5}.\nAnswer: 7", "7"),  # a step, as more words than a mark's lead to it
        ("So \\boxed{7}\nAnswer: 7", "7"),
        ("So \\boxed{5}. Wait, that is wrong.\nAnswer: 7", "7"),
        ("Answer: 7\nSo \\boxed{5}", None),
        ("Answer: 7\nWait, that is wrong: \\boxed{5}", "5"),
    ],
)
def test_read_value__of_two_places_is_refused_unless_one_is_a_step_or_corrected(text, value):
    assert last_integer(text) == value


@pytest.mark.parametrize(
    ("tail", "longest", "line"),
    [
        ("  **a b**\nc", 60, "a b**"),
        ("\n- a\n- b", 60, "a and b"),
        ("abc def ghi", 6, "abc def"),
        ("abc def ghi", 7, "abc def"),
        ("abc def ghi", 8, "abc def ghi"),
        ("abc def  ", 7, "abc def"),
        ("abc def\t\n\nghi", 7, "abc def"),
        ("", 60, ""),
    ],
)
def test_first_line__says_something_and_cuts_no_word(tail, longest, line):
    assert first_line(tail, longest) == line
