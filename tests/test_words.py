"""Vague words of the code are counted as a reader would count them."""

import ast

from tests.words import count_words, is_participle, rooms


def test_is_participle__is_one_word_alone():
    assert [
        name for name in ("_kept", "ended", "read", "seed", "as_told", "_is_kept") if is_participle(name)
    ] == [
        "_kept",
        "ended",
        "read",
    ]


def test_count_words__counts_each_vague_local_of_a_function_once():
    tree = ast.parse(
        "def _found(row):\n    found = row\n    found = found[0]\n"
        "    for place, cell in row:\n        found += cell\n    return found\n"
    )

    counts = count_words(tree)

    assert counts == {"vague_locals": 2, "participle_functions": 1, "internal_sections": 0}


def test_count_words__wants_no_sections_but_in_formulas():
    tree = ast.parse(
        'def mean(rows):\n    """Return the mean.\n\n    Parameters\n    ----------\n    rows\n        Some.\n    """\n'
    )

    assert count_words(tree)["internal_sections"] == 1
    assert count_words(tree, formulas=True)["internal_sections"] == 0


def test_rooms__are_those_of_the_four_folders(tmp_path):
    for name in ("flows/run/driver.py", "stages/analyze/formulas/mean.py", "tests/support.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("def told(): ...\n")

    counts = {room: words["participle_functions"] for room, words in rooms(tmp_path).items()}

    assert counts == {"flows/run": 1, "stages/analyze": 1}
