"""What the product weighs is counted as a reader would count it."""

from tests.weight import Room, above, floor_lines, rooms, unmirrored, weigh


def test_weigh__counts_neither_docstrings_nor_comments_nor_blanks(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        '"""One\nsentence."""\n\n# a reason\nimport sys\n\n_HIDDEN, SEEN = 1, """a\ntext"""\nOTHER: int = 2\n\n\n'
        'class Shape:\n    """A shape."""\n\n    def area(self):\n        """Its area."""\n        return 1  # always\n'
    )

    weighed = weigh(file)

    assert weighed == Room(lines=7, files=1, names=2)


def test_rooms__are_the_folders_below_the_four(tmp_path):
    for name in ("flows/__init__.py", "flows/run/driver.py", "flows/run/deep/one.py", "tests/other.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("VALUE = 1\n")

    found = rooms(tmp_path)

    assert found == {"flows": Room(1, 1, 1), "flows/run": Room(2, 2, 2)}


def test_floor_lines__are_the_sums_of_their_rooms():
    lines = floor_lines(
        {"flows": Room(1, 1, 1), "flows/run": Room(20, 2, 2), "deploy/clusters": Room(300, 1, 1)}
    )

    assert lines == {"flows": 21, "stages": 0, "storage": 0, "deploy": 300}


def test_above__names_what_is_heavier_and_what_has_no_ceiling():
    raised = above({"flows/run": 10, "flows/cli": 5}, {"flows/run": 10, "flows/cli": 6, "flows/new": 1})

    assert raised == ["flows/cli: 6 is above its ceiling of 5", "flows/new: 1 is above its ceiling of 0"]


def test_unmirrored__are_large_files_without_tests_of_their_name(tmp_path):
    for name in (
        "flows/run/driver.py",
        "flows/run/session.py",
        "flows/run/small.py",
        "tests/flows/run/test_driver_kills.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("VALUE = 1\n" * (1 if "small" in name else 100))

    assert [str(file) for file in unmirrored(tmp_path)] == ["flows/run/session.py"]
