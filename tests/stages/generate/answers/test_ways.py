"""How an answer was read is told by its place and what that gave."""

from __future__ import annotations

from evalcube.stages.generate.answers.choices import read_choice
from evalcube.stages.generate.answers.documents import read_json
from evalcube.stages.generate.answers.numbers import read_number
from evalcube.stages.generate.answers.texts import read_text
from evalcube.stages.generate.answers.ways import GIVEN, PLACES, collect_codes, way_of
from tests.cases import with_cases


@with_cases(
    ("read", "reply", "way"),
    [
        (read_number, "Answer: 42", "answer line → number"),
        (read_number, "\\boxed{42}", "box, tag or field → number"),
        (read_number, "The answer is 42.", "statement → number"),
        (read_number, "So it is 42.", "reply's end → number"),
        (read_number, "Answer: 41\n\nWait, it is 42.", "correction → no single value"),
        (read_number, "Answer: √2", "answer line → no single value"),
        (read_number, "Answer: 5 or 6", "answer line → no single value"),
        (read_number, "I cannot tell.", "no place → nothing"),
        (read_text, "Answer: Paris", "answer line → text"),
        (read_json, "Answer: [1]", "answer line → JSON"),
        (lambda reply: read_choice(reply, "AB", ["x", "y"]), "Answer: A", "answer line → choice"),
    ],
)
def test_noted__is_the_place_and_what_it_gave(read, reply, way):
    with collect_codes() as codes:
        read(reply)

    assert way_of(codes[0]) == way


def test_way_of__has_a_byte_for_every_way():
    codes = [code for code in range(300) if way_of(code)]

    assert len(codes) == len(PLACES) * len(GIVEN)
    assert max(codes) < 256
