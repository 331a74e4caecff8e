import hashlib

from tests.simulator.counts import Counts, Ticket


def digest(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def test_arrive__counts_the_attempts_of_each_request():
    counts = Counts()

    assert [counts.arrive(digest(i), "m") for i in (1, 2, 1, 1)] == [1, 1, 2, 3]
    assert counts.summary()["most_attempts"] == 3


def test_arrive__remembers_a_bounded_number_of_requests():
    counts = Counts(remembered=2)

    assert [counts.arrive(digest(i), "m") for i in (1, 2, 3, 3, 2)] == [1, 1, 1, 1, 2]
    assert (counts.summary()["requests"], counts.summary()["distinct"]) == (5, 2)


def test_leave__finishes_only_good_replies_that_were_delivered():
    counts = Counts()
    for good, delivered in ((True, True), (True, False), (False, True), (False, False)):
        counts.arrive(digest(1), "m")
        counts.leave(Ticket(digest(1), "m", good), delivered=delivered)

    summary = counts.summary()
    assert (summary["finished"], summary["abandoned"], summary["in_flight"]) == (1, 2, 0)


def test_reset__keeps_what_is_in_flight():
    counts = Counts()
    for _ in range(2):
        counts.arrive(digest(1), "m")
    counts.leave(Ticket(digest(1), "m", good=True), delivered=True)
    counts.reset()

    summary = counts.summary()
    assert (summary["in_flight"], summary["most_in_flight"], summary["requests"]) == (1, 1, 0)
    assert counts.arrive(digest(1), "m") == 1
