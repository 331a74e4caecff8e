from __future__ import annotations

import re

from hypothesis import given

from evalcube.stages.process.judging import TEXT_LIMIT, judge_messages, judge_prompt_digest
from tests.strategies import hostile_text


def test_judge_prompt_digest__is_frozen() -> None:
    """Scores of different prompts do not compare: a change here belongs into the changelog."""
    assert judge_prompt_digest() == "32f3daeceba6"
    assert judge_prompt_digest(length_debias=False) == "38c335ae57ac"


@given(hostile_text(), hostile_text())
def test_judge_messages__texts_cannot_close_their_markers(prompt: str, output: str) -> None:
    system, user = judge_messages("be {right}", prompt, output)
    (mark,) = set(re.findall(r'^<output id="([0-9a-f]{16})">$', user["content"], re.MULTILINE))

    assert (system["role"], user["role"]) == ("system", "user")
    assert f'<task id="{mark}">\n{prompt}\n</task id="{mark}">' in user["content"]
    assert f'<output id="{mark}">\n{output}\n</output id="{mark}">' in user["content"]
    assert user["content"].count(mark) == 5
    assert judge_messages("be {right}", prompt, output) == [system, user]


def test_judge_messages__mark_depends_on_every_text() -> None:
    texts = [("r", "p", "o"), ("q", "p", "o"), ("r", "q", "o"), ("r", "p", "q")]
    marks = {re.findall(r'<output id="(\w+)">', judge_messages(*one)[1]["content"])[0] for one in texts}

    assert len(marks) == 4


def test_judge_messages__ask_for_the_object_that_is_read() -> None:
    content = judge_messages("r", "p", "o")[1]["content"]

    assert '{"reasoning": "' in content
    assert '"score": <1 to 5>, "reason": "' in content


def test_judge_messages__length_advice_can_be_left_out() -> None:
    assert "Length is no sign" in judge_messages("r", "p", "o")[1]["content"]
    assert "Length is no sign" not in judge_messages("r", "p", "o", length_debias=False)[1]["content"]


def test_judge_messages__cut_is_marked() -> None:
    content = judge_messages("r", "p", "x" * (TEXT_LIMIT + 7))[1]["content"]

    assert "[cut here: 7 more characters]" in content
    assert len(content) < TEXT_LIMIT + 3_000
