"""A page that is not true is found out."""

from __future__ import annotations

import pytest

from tests.docs.pages import blocks, indented
from tests.docs.typed import Reader


@pytest.fixture
def typed(tmp_path):
    """A function that types a page of this text."""

    def type_page(text):
        page = tmp_path / "page.md"
        page.write_text(text)
        reader = Reader(tmp_path / "here")
        for block in blocks(page):
            reader.type(block)
        reader.close()

    return type_page


def fenced(language, text, mark=""):
    return f"# Page\n\n{mark}\n```{language}\n{text}\n```\n"


SAMPLE = "evalcube sample arithmetic --params length=4,max_depth=1 --n 1"


def test_reader__accepts_what_is_printed(typed):
    typed(fenced("sh", SAMPLE) + fenced("text", "--- trial 0\n...\nReference answer: -10"))
    typed(fenced("python", "print(6 * 7)") + fenced("text", "42"))
    typed(fenced("python", ">>> 6 * 7\n42"))


@pytest.mark.parametrize(
    "text",
    [
        fenced("sh", SAMPLE) + fenced("text", "--- trial 0\n...\nReference answer: 7"),
        fenced("sh", "evalcube sample arithmetic --params lenght=4"),
        fenced("sh", "evalcube plan missing.yaml > plan.txt"),
        fenced("python", "print(6 * 7)") + fenced("text", "43"),
        fenced("python", ">>> 6 * 7\n43"),
    ],
    ids=["output", "option", "file", "print", "doctest"],
)
def test_reader__finds_what_is_not_true(typed, text):
    with pytest.raises(AssertionError, match=r"page\.md:4|page\.md:10"):
        typed(text)


def test_reader__passes_over_what_does_not_run_here(typed):
    mark = "<!-- not run here: the file is yours -->"

    typed(fenced("sh", "evalcube plan missing.yaml", mark) + fenced("text", "anything"))


def test_reader__expects_the_exit_code_that_a_page_names(typed):
    typed(fenced("sh", "evalcube plan missing.yaml || test $? = 2"))

    with pytest.raises(AssertionError, match="missing"):
        typed(fenced("sh", "evalcube plan missing.yaml || test $? = 1"))


def test_reader__writes_files_and_output(typed, tmp_path):
    typed(fenced("yaml", "# a/b.yaml\nname: x") + fenced("sh", "evalcube tasks --json > tasks.json"))

    assert (tmp_path / "here" / "a" / "b.yaml").read_text() == "# a/b.yaml\nname: x\n"
    assert (tmp_path / "here" / "tasks.json").read_text().startswith("{")


def test_reader__writes_files_that_commands_begin_with(typed, tmp_path):
    text = (
        """cat > a.txt <<'END'\nx\n\nEND\ncat > b.txt <<'END'\ny\nEND\nevalcube tasks --json > tasks.json"""
    )

    typed(fenced("sh", text))

    assert [(tmp_path / "here" / name).read_text() for name in ("a.txt", "b.txt")] == ["x\n\n", "y\n"]
    assert (tmp_path / "here" / "tasks.json").read_text().startswith("{")


def test_indented__finds_blocks_and_no_lists(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Text:\n\n    evalcube run\n\n- one\n\n  goes on\n\n      evalcube run\n\n```sh\n\n    x\n```\n"
    )

    assert indented(page) == [3, 9]
