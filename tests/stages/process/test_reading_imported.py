"""What another tool said of a reply stands, and no endpoint can say it in a reply of its own."""

import json
import math

from evalcube.stages.process.grading import imported_outcome
from evalcube.stages.process.reading import ImportedGrade, read_reply
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import Status
from tests.cases import with_cases


def body(grade, **fields):
    message = {"role": "assistant", "content": "42", **fields}
    return json.dumps(
        {"choices": [{"message": message, "finish_reason": "stop"}], "imported": grade}
    ).encode()


GRADE = {"status": "correct", "score": 0.75, "answer": "42", "prompt": "6 x 7?"}


def test_read_reply__believes_no_endpoint_that_grades_itself():
    assert read_reply(Record(200, 0.5, body(GRADE))).imported is None


def test_read_reply__reads_what_was_imported():
    data = Record(200, math.nan, body(GRADE), imported=True).encode()

    reading = read_reply(Record.decode(data))

    assert reading.imported == ImportedGrade(Status.CORRECT, 0.75, "42", "6 x 7?", True)
    assert reading.answer == "42"


@with_cases(
    "grade",
    [
        None,
        3,
        [],
        {},
        {"status": 1},
        {"status": "missing", "score": 2},
        {"status": "transport", "score": True},
    ],
)
def test_read_reply__takes_what_is_no_grade_for_no_answer(grade):
    found = read_reply(Record(200, 0.5, body(grade), imported=True)).imported

    assert found == ImportedGrade(Status.INVALID, None, None)


def test_imported_outcome__has_the_score_as_the_layer_of_facts():
    reading = read_reply(Record(200, 0.5, body(GRADE, reasoning_content="think"), imported=True))

    outcome = imported_outcome(reading, 0.25)

    assert (outcome.status, outcome.fact, outcome.parsed) == (Status.CORRECT, 4.0, "42")
    assert (outcome.guess_chance, outcome.reasoning_bytes, outcome.latency) == (0.25, 5, 0.5)


def test_imported_outcome__knows_no_sizes_where_there_is_no_text():
    reading = read_reply(Record(200, 0.5, body({**GRADE, "score": None, "text": False}), imported=True))

    outcome = imported_outcome(reading, 0.0)

    assert (outcome.reasoning_bytes, outcome.compressed_bytes, outcome.tokens) == (-1, -1, -1)
    assert math.isnan(outcome.fact)


def test_imported_outcome__of_a_reply_that_nobody_graded_is_invalid():
    assert imported_outcome(read_reply(Record(200, 0.5, body(GRADE))), 0.0).status == Status.INVALID


def test_record__of_our_own_is_as_it_was():
    assert b"imported" not in Record(200, 0.5, b"{}").encode()
    assert Record.decode(Record(200, 0.5, b"{}", imported=True).encode()).imported
