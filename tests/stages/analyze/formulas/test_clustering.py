import numpy as np

from evalcube.stages.analyze.formulas.clustering import cluster_effect, cluster_moments
from evalcube.stages.analyze.formulas.stratified import exact_estimate
from evalcube.stages.reply.status import COUNTERS, Status


def outcomes(alike, seed=0, questions=32, repeats=4, rate=0.5):
    """Shape (6 points, question, repeat); with chance `alike` the answers to a question are the same."""
    rng = np.random.default_rng(seed)
    same = rng.random((6, questions, 1)) < alike
    right = np.where(same, rng.random((6, questions, 1)), rng.random((6, questions, repeats))) < rate
    return right.astype(np.uint8)


def test_cluster_effect__from_one_to_the_number_of_repeats():
    effects = [float(cluster_effect(cluster_moments(outcomes(alike)))) for alike in (0.0, 0.5, 1.0)]

    assert 1.0 <= effects[0] < 1.3
    assert 2.0 < effects[1] < 3.2
    assert effects[2] == 4.0


def test_cluster_moments__add_over_parts_of_the_questions_and_leave_out_what_was_not_answered():
    status = outcomes(0.5)
    status[:, 5] = Status.MISSING
    status[:, 6, 1:] = Status.TRANSPORT
    status[0, 7] = Status.TRUNCATED

    parts = cluster_moments(status[:, :10]) + cluster_moments(status[:, 10:])

    assert (parts == cluster_moments(status)).all()
    assert (parts[:, 2] == 31).all()
    assert (parts[:, 1] == 31 * 4 - 3).all()


def test_exact_estimate__by_question_covers_where_by_answer_does_not():
    held = []
    for seed in range(200):
        status = outcomes(1.0, seed)
        cells = np.zeros(len(COUNTERS))
        for name, value in (("trials", status.size), ("completed", status.size), ("correct", status.sum())):
            cells[COUNTERS.index(name)] = value
        effect = float(cluster_effect(cluster_moments(status)))
        bounds = [exact_estimate(cells, effect=worth)[1:] for worth in (1.0, effect)]
        held.append([lower <= 0.5 <= upper for lower, upper in bounds])

    by_answer, by_question = np.mean(held, axis=0)

    assert by_question >= 0.92
    assert by_answer < 0.8
