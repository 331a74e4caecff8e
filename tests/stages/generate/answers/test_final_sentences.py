"""Values in the sentences of an answer line: which is the answer, and where there are two or none."""

from __future__ import annotations

from evalcube.stages.generate.answers.choices import read_choice
from evalcube.stages.generate.answers.numbers import read_number
from evalcube.stages.generate.answers.texts import same_text
from evalcube.stages.generate.dataset.kinds import read_declared
from evalcube.stages.generate.dataset.params import Comparison
from tests.cases import with_cases

OPTIONS = ["iron", "tin", "zinc", "lead"]


@with_cases(
    "text",
    (
        "Alice gets 5, Bob gets 7|5 (Alice) and 7 (Bob)|$20.50 per person, $82 in total|chapter 3, verse 16|"
        "5 for Ann but 9 for Ben|20 for Alice; 30 for Bob|20 when x = 3 and 30 when x = 4|"
        "width 12, height 15|x₁ = 2, x₂ = 3|A: 12, B: 15|Ann 8 / Ben 9|"
        "The first takes 3 hours, the second 5 hours.|The 4 friends each pay $13.50.|"
        "She pays 5 now and 7 later|8 with 3 left over|甲8个，乙9个|60 mph for 2 hours, or 120 miles|"
        "12 before tax and 15 after tax|between $12 and $15|"
        "5 (unordered) or 7 (ordered)|36 / 48"
    ).split("|"),
)
def test_read_number__of_two_numbers_side_by_side_is_none(text: str) -> None:
    assert read_number(f"Answer: {text}") is None


@with_cases(
    ("text", "number"),
    [
        ("In 2 hours it goes 120 miles.", "120"),
        ("The train covers 150 km in 2.5 hours.", "150"),
        ("She needs to pay $64 for 16 glasses.", "64"),
        ("After giving away 6 of her 60 apples, she has 54 left.", "54"),
        ("She started with 60 and gave away 6, so 54 remain.", None),
        ("4 boxes with 12 apples each and 6 more apples make 54 apples.", "54"),
        ("First we compute 3 × 4 = 12, then add 5 to get 17.", "17"),
        ("60, the product of 5 and 12", None),
        ("36 for x = 3", "36"),
        ("x = 5 (y = 3)", "5"),
        ("3/8 or 0.375", "0.375"),
        ("0.375 (or 37.5%)", "0.375"),
        ("37.5% or 0.375", "37.5"),
        ("37.5% = 0.375", "0.375"),
        ("0.375 or 38%", None),
        ("There are 11 primes between 10 and 50.", "11"),
        ("54 apples, which is 6 more than last year", "54"),
        ("It would take 6 hours", "6"),
        ("She will have saved $520 in 13 weeks.", "520"),
        ("They will meet after 3.5 hours.", None),
        ("There are 120 ways to arrange the 5 books.", "120"),
        ("The price rose from $50 to $60, an increase of 20%.", None),
        ("The perimeter is 2(5 + 7) = 24 cm.", "24"),
        ("120 miles / 2.5 hours = 48 mph", "48"),
        ("He has 15 marbles, 5 of which are red.", None),
        ("7 ½", "7.5"),
    ],
)
def test_read_number__takes_no_circumstance_or_step_for_the_answer(text: str, number: str) -> None:
    assert read_number(f"Answer: {text}") == number


@with_cases(
    "text",
    (
        "March 5|5 May|8 Mai|&lt;42|<42|≤ 42|over 42|42 and above|greater than or equal to 42|"
        "Dec 12|12 noon|everything but 42|log₂ 8|12 + x|12 and a third|a placeholder is 42, but 42 is a guess|"
        "see equation (42)|undefined (x = 42 is a pole)|ISO 42|ticket 42 has been opened|a division by 42|42 π|"
        "4.2 cm or 4.4 cm|the sum of the two angles"
    ).split("|"),
)
def test_read_number__of_bounds_dates_and_operands_is_none(text: str) -> None:
    assert read_number(f"Answer: {text}") is None


def test_read_number__an_absolute_value_is_no_negative_number() -> None:
    assert read_number("Answer: |−5|") is None
    assert read_number("Answer: −5") == "-5"


@with_cases(
    ("text", "number"),
    [
        ("Antwort: Es sind 27 Äpfel.", "27"),
        ("Réponse : Il reste 27 pommes.", "27"),
        ("答案：小明还剩27个苹果。", "27"),
        ("回答：一共有27个。", "27"),
        ("Antwort: mindestens 27", None),
        ("Réponse : au plus 27", None),
        ("答案：大于27", None),
        ("答案：27以上", None),
        ("Ответ: не 27", None),
        ("Die Antwort ist vielleicht 27", None),
    ],
)
def test_read_number__takes_an_answer_line_of_other_languages_like_an_english_one(
    text: str, number: str | None
) -> None:
    assert read_number(text) == number


@with_cases(
    ("text", "label"),
    [
        ("Answer: B (A is also acceptable)", None),
        ("Answer: B; C would be equally valid", None),
        ("Answer: B. A works too.", None),
        ("Answer: B. A is also a metal, but a soft one.", "B"),
        ("Answer: B — tin (no rust here)", "B"),
        ("**B. tin** is the correct choice.", "B"),
        ("Answer: B; A, C and D are wrong.", "B"),
        ("Answer: B; A would need rust.", "B"),
        ("I would choose option B, because it fits best.", "B"),
        ("I'm confident the answer is B.", "B"),
        ("Elijo la opción B.", "B"),
        ("Choose the correct option: A, B, C or D.\n\nTin does not rust. So it is B.", "B"),
        ("To find the correct option, we go through them. A is soft.\n\n**B**", "B"),
        ("✅ Answer: **B**\n❌ A\n❌ C", "B"),
        ("Answer: B\n\n❌", None),
        ("[x] A\n[ ] B", None),
        ("答え:CまたはD", None),
        ("Правильный вариант — B.", "B"),
        ("正确选项是 B。", "B"),
    ],
)
def test_read_choice__of_options_that_share_the_answer_is_none(text: str, label: str | None) -> None:
    assert read_choice(text, "ABCD", OPTIONS) == label


@with_cases(
    ("answer", "reference", "right"),
    [
        ("Paris, I think", "Paris", True),
        ("Paris instead of Lyon", "Paris", True),
        ("Lyon rather than Paris", "Paris", False),
        ("Paris, it may be Rome", "Paris", False),
        ("the year 1999", "1999", True),
        ("in 1999", "1999", True),
        ("before 1999", "1999", False),
        ("Yes, it is.", "yes", True),
        ("No, it is not correct", "no", True),
        ("Yes, but only in part", "yes", False),
        ("Yes. No, wait: no.", "yes", False),
        ("No, yes would be wrong", "yes", False),
        ("是，因为它大", "是", True),
        ("鲁迅(原名周树人)", "鲁迅", True),
    ],
)
def test_same_text__passes_over_asides_alone(answer: str, reference: str, right: bool) -> None:
    assert same_text(answer, reference, frozenset()) is right


@with_cases(
    ("reply", "answer"),
    [
        ("No. The two are unrelated.", "No"),
        ("Yes, that's correct.", "Yes"),
        ("Yes — because 7 is prime.", "Yes"),
        ("No idea.", None),
        ("Yes and no.", "Yes and no"),
        ("The person was **Marie Curie**.", "Marie Curie"),
    ],
)
def test_read_declared__takes_the_word_that_answers_a_question(reply: str, answer: str | None) -> None:
    assert read_declared(reply, "auto", "", ["No"], Comparison()) == answer


@with_cases(
    ("reply", "number"),
    [
        ("3 + 4 = 7 apples.\nTherefore, she earned $45.", "45"),
        ("Por lo tanto, el precio es de 45 euros.", "45"),
        ("Il totale è 45.", "45"),
        ("合計は45円です。", "45"),
        ("So the total comes to $58.40. Hope this helps!", "58.4"),
        ("So she spent 13 dollars. That leaves her 7 of 20.", None),  # what it ends up with is another number
        ("So he needs 5 buses for 45 students.", None),
        ("She needs 45 more minutes.", None),  # concludes nothing
        ("It takes 12 workers **4 days** to finish.", "4"),
        ("We get 42.\n\n**42**\n\nThat can't be right.", None),
        ("I'm sorry, it cannot be solved. The distance is 240 km.", None),
        ("The first has 12, the second 18. Now we add 12 + 18 +", None),
        ("We get 20 for the first part.\n\nFor the second part we need", None),
        ("Tom will have to pay $1,350.00 in total.", "1350"),
        ("| Mon | 12 |\n| Tue | 18 |", None),
        ("| Milk | $6 |\n| **Total** | **$19** |", "19"),
        ("Plan:\n1. Compute both areas.\n2. Add them.", None),
        ("```python\nprice = 2\nprint(price * 9)\n```", None),
        ("The discriminant is 25. Next, we need its root.", None),
        ("The total is 366. Let me know if you would like more!", "366"),
    ],
)
def test_read_number__at_the_end_takes_the_only_number_of_a_conclusion(
    reply: str, number: str | None
) -> None:
    assert read_number(reply) == number


@with_cases(
    ("text", "number"),
    [
        (r"\boxed{x = -\frac{7}{4}}", "-1.75"),
        (r"$3\,\tfrac{1}{8}$ m", "3.125"),
        ("d = v·t = 12 m/s × 8 s = 96 m", "96"),
        ("12 + the number of guests", None),
        ("half a dozen, i.e. 6", "6"),
        ("3、5", None),
        ("2x = 14", None),
        ("Ben = Lucy + 4", None),
        ("45 ×", None),
        ("12 (low estimate) / 19 (high estimate)", None),
        ("20 if it rains; otherwise nothing", None),
        ("Apollo 11", None),
        ("CHF 1'250'000", "1250000"),
        ("none of the 5 values fits", None),
        ("3.1 hours? It could also be 3.5.", None),
    ],
)
def test_read_number__reads_signs_and_expressions_whole(text: str, number: str | None) -> None:
    assert read_number(f"Answer: {text}") == number


@with_cases(
    ("reply", "number"),
    [
        ("**Final Answer**\n\nThe final answer is $\\boxed{-16}$. I hope it is correct.", "-16"),
        ("The total is 490.\n\nAnswer: \\boxed{5", None),
        ("\\boxed{12} if n is even, and \\boxed{15} if n is odd", None),
        ("\\boxed{12}\n\nNow with the discount:\n\n\\boxed{15}", "15"),
        ("Answer: 45\n\nThe discount applies before tax, so this is wrong.", None),
        ("Answer: 12\nOops, that is the number of legs.", None),
        ("Answer: 12\n\nActually, no. That is the number of legs.", None),
        ("Answer: 30\nAnswer: 32\n\nBoth agree with the data; I cannot choose.", None),
        ("Answer: 19\n\nПроверка: 19 + 6 = 25.", "19"),
        ("If he keeps the goats, Answer: 15. If he sells them, Answer: 9.", None),
    ],
)
def test_read_number__takes_one_box_that_is_closed_and_stands(reply: str, number: str | None) -> None:
    assert read_number(reply) == number


@with_cases(
    ("reply", "label"),
    [
        ("Answer: B (tin)", "B"),
        ("Answer: B (zinc)", None),
        ("I would choose B, the tin.", "B"),
        ("A. iron\nB. tin\nC. zinc\nD. lead", None),
        ("We have to think about:\n\nA) what melts\nB) what bends", None),
        ("A) iron ✗\nB) tin ✓", "B"),
        ("**Iron** rusts.\n**Zinc** protects.\n**Tin** melts early.", None),
        ("**Iron** rusts.\n**Zinc** protects.\n\n**Tin** it is.", "B"),
        ("Not A, not B, not D. So C.", "C"),
        ("After elimination, only B remains.", "B"),
        ("A, B and D can all be ruled out, which leaves C as the right option.", "C"),
        ("Answer: A + B", None),
        ("Answer: C + O2 → CO2", None),
        ("Answer: D-block elements", None),
        ("Answer: None of the options A to D is correct.", None),
        ("Answer: (A) if it is hot, (C) if it is cold", None),
        ("Answer: A (50%), C (50%)", None),
        ("Answer: B\n\nHold on, maybe it's D.", None),
        ("Answer: B\n\nThat can't be right, as tin melts early. So B is out.", None),
        ("Answer: lead oxide", None),
        ("Answer: lead is the one", "D"),
        ("**C** is right. **A** is wrong (hard), **D** is wrong (soft).", "C"),
        ("可能是B,也可能是D,我无法确定。", None),
        ('Your friend chose "Answer: C". That is a wrong choice. Try again!', None),
        ("الإجابة الصحيحة هي: A", "A"),
    ],
)
def test_read_choice__takes_no_label_of_a_list_a_formula_or_another_text(
    reply: str, label: str | None
) -> None:
    assert read_choice(reply, "ABCD", OPTIONS) == label


@with_cases(
    ("answer", "reference", "right"),
    [
        ("3, 5 and 7", "3, 5, 7", True),
        ("3, 5, and 7", "3, 5 & 7", True),
        ("red and green", "red, green", False),  # may be one thing
        ("3, 5, 7, ...", "3, 5, 7", False),
        ("Paris...", "Paris", True),
    ],
)
def test_same_text__compares_lists(answer: str, reference: str, right: bool) -> None:
    assert same_text(answer, reference, frozenset()) is right


@with_cases(
    ("line", "reference", "answer"),
    [
        ("The capital of Kenya is Nairobi.", "Nairobi", "Nairobi"),
        ("Life is beautiful.", "Life is beautiful", "Life is beautiful"),
        ("The capital is not Nairobi.", "Nairobi", "The capital is not Nairobi"),
        ("答案不是鲁迅", "鲁迅", "答案不是鲁迅"),
        ("It could be that the capital is Nairobi.", "Nairobi", "It could be that the capital is Nairobi"),
    ],
)
def test_read_declared__takes_from_a_sentence_what_is_accepted(
    line: str, reference: str, answer: str
) -> None:
    assert read_declared(f"Answer: {line}", "auto", "", [reference], Comparison()) == answer


def test_read_text__reads_all_items_of_a_list() -> None:
    assert read_declared("Answer:\n* 10\n* 20\n* 30", "auto", "", [], Comparison()) == "10, 20, 30"
