"""Where a ledger's lines end."""

from evalcube.storage.cube.directory.records import _WINDOW, _end_of_lines
from tests.cases import with_cases


@with_cases(
    ("lines", "torn"),
    [
        *(
            (lines, torn)
            for lines in (b"\n", b"a\nb\n")
            for torn in (0, 1, _WINDOW - 1, _WINDOW, 3 * _WINDOW - 1)
        ),
        (b"", 0),
        (b"", 2 * _WINDOW),
    ],
)
def test_end_of_lines__is_behind_the_last_line_break_however_long_the_torn_tail_is(tmp_path, lines, torn):
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(lines + b"x" * torn)

    with path.open("rb") as file:
        assert _end_of_lines(file.fileno(), path.stat().st_size) == len(lines)
