from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalcube.stages.generate.answers.brackets import closing_brackets
from tests.cases import with_cases
from tests.strategies import hostile_text

BRACKETS: list[tuple[str, str | None]] = [
    ("Answer: ])}>", "])}>"),
    ("Answer: ] ) } >", "])}>"),
    ("Answer: ], ), }", "])}"),
    ("Answer: `])}`", "])}"),
    ("**Answer:** **>>**", ">>"),
    ("Answer: >", ">"),
    ("Answer: <])>", "])"),
    ("Answer: <])}>.", "])}"),
    ("Answer:\n```\n])}\n```", "])}"),
    ("Answer:\n```text\n])}\n```", "])}"),
    ("The answer is ])}.", "])}"),
    ("The answer is the sequence `])}`.", "])}"),
    ("Answer: ]) (in this order)", "])"),
    ("$\\boxed{])}$", "])"),
    ("$\\boxed{)]}}$", ")]}"),
    ("\\boxed{)\\}]}", ")}]"),
    ("$\\boxed{\\text{)]}}$", ")]"),
    ("\\(\\boxed{)]}\\)", ")]"),
    ("Answer: &gt;)", ">)"),
    ('Answer: "])"', "])"),
    ("Answer: )\nNo.\nAnswer: ]", "]"),
    ("Answer: ])\nAnswer: <closing brackets>", "])"),
    ("])}", "])}"),
    ("The rest must be\n\n])}", "])}"),
    ("So what is missing is: ])}", "])}"),
    ("Answer: ([{}])", None),
    ("Answer: (((", None),
    ("Answer: none (really)", None),
    ("1) foo (bar)", None),
    ("", None),
]


@with_cases(("text", "expected"), BRACKETS)
def test_closing_brackets__reads(text: str, expected: str | None) -> None:
    assert closing_brackets(text) == expected


@settings(deadline=None)
@given(text=hostile_text(), answer=st.text(")]}>", min_size=1, max_size=20))
def test_closing_brackets__explicit_last_line_wins(text: str, answer: str) -> None:
    assume("boxed" not in text)  # two final forms that differ are no answer
    assert closing_brackets(f"{text}\nAnswer: {answer}") == answer
    assert closing_brackets(f"{text}\nAnswer: **{' '.join(answer)}**") == answer
    if "answer" not in text.lower():  # the asked form beats a box
        assert closing_brackets(f"{text}\n$\\boxed{{{answer}}}$") == answer
