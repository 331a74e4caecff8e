"""Where a value may stand, and what it is where two places give different ones."""

from evalcube.stages.generate.answers.numbers import last_integer
from evalcube.stages.generate.answers.values import first_line
from tests.cases import with_cases


@with_cases(
    ("text", "value"),
    [
        ("We get \\boxed{5}.\nAnswer: 7", "7"),
        ("So \\boxed{5}. Wait, that is wrong.\nAnswer: 7", "7"),
        ("Answer: 7\nSo \\boxed{7}", "7"),
        ("Answer: 7\nSo \\boxed{5}", None),
        ("Answer: 7\nWait, that is wrong: \\boxed{5}", None),
        ("\\boxed{5} or \\boxed{7}", None),
        ("Answer: 5\nAnswer: 7", "7"),
        ("Answer: 5\nAnswer: 6\nAnswer: 7", None),  # a list of what may be answered
        ("Answer: 5\nAnswer: 7\nAnswer: 7", "7"),
        ("Answer: 5\n\nAnswer: 6\n\nAnswer: 7", "7"),
        ('<tool_call>\n{"name": "add", "arguments": {"a": 5, "b": 7}}\n</tool_call>', None),
        ('{"value": 7, "unit": "m"}', "7"),
        ("It is 7. (I checked 5 rows.)", "7"),
        ("Answer: x = 7, because x = 5 must be rejected.", "7"),
        ("Endgültige Antwort: 7", "7"),
        ("Antwort: 5 ist zu klein.\n\nEndgültige Antwort: 7", "7"),
        ("Example: 2 + 3 = 5.\nAnswer: 5\n\nNow for your question.", None),
        ("Example: 2 + 3 = 5.\nAnswer: 5\n\nNow 3 + 4 is **7**.", "7"),
        ("Example: 3 + 4 = 7.\nAnswer: 7\n\nI hope this helps!", "7"),
        ("Example: 2 + 3 = 5.\nAnswer: 5\n\nNow the question: 3 + 4\nAnswer: 7", "7"),
        ("The reply should look like this:\n\nAnswer: 5\n\nI haven't any numbers.", None),
        ("The last line should look like this:\n\nAnswer: 7", "7"),
    ],
)
def test_read_value__an_answer_line_replaces_what_stands_before_it_and_is_contradicted_by_what_follows(
    text, value
):
    assert last_integer(text) == value


@with_cases(
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
