"""Files and folders that commands write are there whole or not at all."""

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.read.outputs import check_picture, new_file, new_folder


def test_new_folder__appears_when_it_is_filled_in_folders_that_are_made(tmp_path):
    path = tmp_path / "of" / "today" / "pages"

    with new_folder(path, "write") as folder:
        (folder / "page").write_text("whole")
        assert not path.exists()
    assert (path / "page").read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(SweepError, match="is there already"), new_folder(path, "write"):
        pass


def test_new_outputs__of_a_block_that_failed_are_not_there(tmp_path):
    (tmp_path / "kept").write_text("before")
    for new, name in ((new_folder, "folder"), (new_file, "file"), (new_file, "kept")):
        with pytest.raises(ArithmeticError), new(tmp_path / name, "write"):
            raise ArithmeticError

    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept").read_text() == "before"


def test_new_file__is_made_in_folders_that_are_made(tmp_path):
    with new_file(tmp_path / "of" / "today" / "table", "write") as file:
        file.write(b"whole")

    assert (tmp_path / "of" / "today" / "table").read_bytes() == b"whole"


def test_check_picture__takes_svg_alone(tmp_path):
    check_picture(tmp_path / "board.SVG")

    with pytest.raises(SweepError, match=r"board\.svg"):
        check_picture(tmp_path / "board.png")
