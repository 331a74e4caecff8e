from __future__ import annotations

from evalcube.stages.generate import TASKS
from evalcube.stages.generate.answers.choices import ChoiceReader, read_choice, truth_value
from tests.cases import with_cases

OPTIONS = ChoiceReader(["drum", "drum kit", "lamp", "hat"])

TRUTHS: list[tuple[str, str | None]] = [
    ("Answer: True", "true"),
    ("Answer: off", "false"),
    ("off is the answer", "false"),
    ("True is not the answer", None),
    ("True, or maybe False", None),
    ("Answer: 1", "true"),
    ("answer: 0.", "false"),
    ("Answer: T", "true"),
    ("Answer: F", "false"),
    ("**Answer: no**", "false"),
    ("Answer: True or False", None),
    ("Answer: on/off", None),
    ("Answer: <on or off>", None),
    ("Answer: not True", None),
    ("Answer: yes, because a", "true"),
    ("Answer: no idea", None),
    ("Answer: on reflection I cannot tell", None),
    ("Answer: True and False = False", "false"),
    ("Answer: True (since 1 = 1)", "true"),
    ("The answer is the value on.", "true"),
    ("So it evaluates to False.", "false"),
    ("no", "false"),
    ("hello\non", "true"),
    ("1", "true"),
    ("10", None),
    ("Answer: 10", None),
    ("1.5", None),
    ("Answer: 1.5", None),
    ("\\boxed{\\text{on}}", "true"),
    ("I don't know what's going on", None),
    ("**off**", "false"),
    ("The expression is on because of x", None),
    ("Answer: `yes`", "true"),
    ("Answer: 0 (false)", "false"),
    ('Answer: "off"', "false"),
    ("**Final answer:** on", "true"),
    ("True", "true"),
    ("Is it True or False?", None),
    ("Answer: on\n\nThat's because on or off is on or xor", "true"),
    ("Answer: 1 and 0 = 0", "false"),
    ("The answer is: **False**", "false"),
    ("Answer: $1$", "true"),
    ("Answer: 1 or 0", None),
    ("Answer: isn't true", None),
    ("therefore, the final answer is no.", "false"),
    ("Answer: <1>", "true"),
    ("Answer: true.", "true"),
    ("Answer: on.", "true"),
    ("Answer: on off", None),
    ("Answer: false, not true", "false"),
    ("The answer is not true.", None),
    ("Answer: f", "false"),
    ("The answer is no longer clear", None),
]

CHOICES: list[tuple[str, str | None]] = [
    ("Answer: lamp, not the drum", "lamp"),
    ("Answer: not the drum but the lamp", "lamp"),
    ("Answer: lamp or drum", None),
    ("Answer: the lamp (Bob took the drum)", "lamp"),
    ("drum then lamp", None),
    ("drum-kits that", None),
    ("lampshade", None),
    ("what", None),
    ("**Drum**\nlamp", "lamp"),
    ("**Drum**\nGood luck with the lamp!", "drum"),
    ("He has the lamp, not the drum.", "lamp"),
    ("Answer: <item>\nhat", "hat"),
    ("Answer: Alice does not have the lamp", None),
    ("Answer: Alice holds the lamp.", "lamp"),
    ("Answer: lamp, drum, hat", None),
    ("\\boxed{\\text{drum kit}}", "drum kit"),
    ("Answer: the lamp and the hat", None),
    ("Answer: **drum\tkit**", "drum kit"),
    ("Answer: lamp/drum", None),
    ("It isn't the drum, it's the hat", "hat"),
]


@with_cases(("text", "expected"), TRUTHS)
def test_truth_value__reads(text: str, expected: str | None) -> None:
    assert truth_value(text) == expected


@with_cases(("text", "expected"), CHOICES)
def test_choice_reader__reads(text: str, expected: str | None) -> None:
    assert OPTIONS.read_option(text) == expected


@with_cases(
    ("text", "label"),
    [
        ("Option B is incorrect. Option A is correct.", "A"),
        ("Option A is correct. Option B is incorrect.", "A"),
        ("A is wrong, C is wrong, D is wrong, so B.", "B"),
        ("Between A and B, B is better.", "B"),
        ("The answer must be C. Actually no, B.", None),
        ("Answer: C++", None),
        ("Question 1: B\nQuestion 2: C", None),
        ("1) A\n2) B", None),
        ("1. B", "B"),
        ("B) tin", "B"),
        ("Answer: statement (A)", "A"),
        ("The magnetic field is B.", None),
        ("The most likely metal is B.", "B"),
        ("Answer:\n- A\n- B", None),
        ("答案：A\n\n等等，应该是B。", None),
        ("综上，故选 B。", "B"),
        ("我们不能选 B。", None),
        ("Answer: Ⓑ", "B"),
        ('End with a line such as "Answer: B", where B is a letter.', None),
        ("答え：A\n\nいや、正しくはBです。", None),
        ("Answer: A+", None),
        ("The answer is A. Iron is not a soft metal, unlike B.", "A"),
        ("Answer: A. iron is not a soft metal", "A"),
        ("The closest option is (C).", "C"),
        ("The heat is 3850 \\mathrm{~J} \\mathrm{~D", None),
        ("so the work is W = F d and D = 3 m", None),
        ("The answer is (B).\n\nQuestion: What else?\nA. this\nB. that\nAnswer: A", "B"),
        ("The answer is (B).\n\nA. this\nB. that\nC. those\nThe answer is (C).", "B"),
        ("Answer: A/B", None),
        ("A. iron\nB. tin\nC. zinc\nD. lead\nAnswer: C", "C"),
        ("A ❌ too soft\nB ✅ bends\nC ❌\nD ❌", "B"),
        ("A ❌\nB ✅ no, ❌\nC ❌\nD ❌", None),
        ("A ✅\nB ✅\nC ❌\nD ❌", None),
        ("A ❌\nB ✅\nC ❌\nD ❌\n\nI am not sure, though.", None),
        ("**A. iron** is hard.\n**B. tin**: soft.\n**C. zinc**: hard.\n**D. lead**: soft.\n\nMore?", None),
        ("A. hard\nB. soft\nC. hard\nD. hard\n\n**B**", "B"),
        ("Answer: the third option", "C"),
        ('Her sheet reads:\n\n"Answer: B"\n\nIs that right? You tell her.', None),
        ('So it bends.\n\n"Answer: B"', "B"),
    ],
)
def test_read_choice__takes_a_letter_where_it_is_stated(text: str, label: str | None) -> None:
    assert read_choice(text, "ABCD", ["iron", "tin", "zinc", "lead"]) == label


CARS, MOVIES = TASKS["cars"], TASKS["movies"]


def test_choice_reader__survives_letters_that_only_look_alike() -> None:
    assert ChoiceReader(["scarf"]).read_option("Answer: \u017fcarf") is None
    assert CARS.parse("Answer: \u017filver") is None
    assert MOVIES.parse("Answer: \u017filver Po\u017ftman") is None
