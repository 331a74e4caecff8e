"""Notes of batches among the records of a cube."""

import os

import pytest

from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.directory import Directory
from evalcube.storage.errors import StorageError


def test_batch_notes__come_back_until_they_are_removed(tmp_path):
    notes = BatchNotes(Directory(tmp_path))
    assert (list(notes.tokens()), notes.read("aaaaaaaa")) == ([], None)

    notes.write("aaaaaaaa", b"one")
    notes.write("bbbbbbbb", b"two")
    notes.write("aaaaaaaa", b"more")

    again = BatchNotes(Directory(tmp_path))
    assert sorted(again.tokens()) == ["aaaaaaaa", "bbbbbbbb"]
    assert again.read("aaaaaaaa") == b"more"
    again.remove("aaaaaaaa")
    again.remove("aaaaaaaa")
    assert (list(notes.tokens()), notes.read("aaaaaaaa")) == (["bbbbbbbb"], None)


def test_batch_notes__what_a_killed_writer_left_is_no_note(tmp_path):
    folder = tmp_path / "batches"
    folder.mkdir()
    (folder / ".aaaaaaaa.json.123.partial").write_bytes(b"half")
    (folder / "README").write_text("mine")
    assert list(BatchNotes(Directory(tmp_path)).tokens()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_batch_notes__a_folder_that_cannot_be_written_is_told(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageError):
            BatchNotes(Directory(tmp_path)).write("aaaaaaaa", b"one")
    finally:
        tmp_path.chmod(0o700)


def test_batch_notes__a_file_in_the_folders_place_is_told(tmp_path):
    (tmp_path / "batches").write_text("mine")
    with pytest.raises(StorageError):
        BatchNotes(Directory(tmp_path)).write("aaaaaaaa", b"one")
