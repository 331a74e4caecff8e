from evalcube.flows.explore.trials import _LONGEST_CELL, _brief, answer_place
from tests.cases import with_cases


@with_cases(
    ("reply", "parsed", "marked"),
    [
        ("A cat. Answer: A", "A", "A"),
        ("Answer: B. A is wrong, as a cat is no dog, and b is late.", "B", "B"),
        ("Surely not Paris.\nAnswer: The Hague.", "the hague", "The Hague"),
        ("the hague or The\n Hague", "the hague", "The\n Hague"),
        ("\\boxed{7} of 17 and 71, that is 7", "7", "7"),
        ("It was 12, 1.5 and 15.\nAnswer: 1,234", "1234", "1,234"),
        ("😀 Answer: −5", "-5", "−5"),
        ("Answer: 4.5", "4", None),
        ("Answer: category", "cat", None),
        ("Answer: March 4", "2020-03-04", None),
        ("nothing", None, None),
        ("", "x", None),
        ("Answer: (", "(", "("),
        ("half \ud800. Answer: x", "X", "x"),
    ],
)
def test_answer_place__is_where_the_answer_was_read(reply, parsed, marked):
    place = answer_place(reply, parsed)

    if marked is None:
        assert place is None
    else:
        units = reply.encode("utf-16-le", "surrogatepass")
        assert units[2 * place[0] : 2 * place[1]].decode("utf-16-le") == marked


def test_answer_place__is_the_one_of_the_answers_own_line():
    first = "Answer: B. A is wrong, and b comes late."

    assert answer_place(first, "b") == (8, 9)
    assert answer_place("It is 7, not 8; 7 is odd", "7") == (16, 17)
    assert answer_place("Answer: 7\nwhich 7 is", "7") == (8, 9)


def test_answer_place__of_hostile_texts_is_soon_found():
    assert answer_place("a " * 200_000 + " " * 200_000, "a b") is None
    assert answer_place("Answer: " * 50_000, "a " * 5000) is None
    assert answer_place("Answer: " + "a " * 500_000, "a " * 499 + "b") is None


@with_cases(
    ("value", "shown"),
    [
        ("a" * _LONGEST_CELL, "a" * _LONGEST_CELL),
        ("a" * (_LONGEST_CELL + 1), "a" * (_LONGEST_CELL - 1) + "…"),
        ([{"content": "Hi"}, {"role": "tool"}, "x"], "Hi; {'role': 'tool'}; x"),
        ([0.5] * 30, "; ".join(["0.5"] * 20)),
        (None, None),
        (7, 7),
    ],
)
def test_brief__cuts_only_what_is_too_long_for_a_cell(value, shown):
    assert _brief(value) == shown
