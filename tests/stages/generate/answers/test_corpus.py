"""A grade is a function of the reply and of the reader: it is the same on every Python."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import evalcube
from tests.cases import with_cases
from tests.stages.generate.answers.corpus import GRADES, grades

SOURCES = [
    path
    for folder in Path(evalcube.__file__).parent.iterdir()
    if folder.is_dir()
    for path in folder.rglob("*.py")
]
POSSESSIVE = re.compile(r"(?<!\\)[*+?}]\+")
CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")


def literals(source: str) -> list[str]:
    """What the strings of a module say, without classes of characters; nothing if it does not import `re`."""
    if "import re" not in source:
        return []
    nodes = list(ast.walk(ast.parse(source)))
    if not any(isinstance(node, ast.Import) and any(a.name == "re" for a in node.names) for node in nodes):
        return []
    texts = (node.value for node in nodes if isinstance(node, ast.Constant))
    return [CLASS.sub("[]", text) for text in texts if isinstance(text, str)]


def test_readers__grade_a_corpus_as_ever() -> None:
    expected = json.loads(GRADES.read_text())

    found = grades()

    assert sum(len(marks) for marks, _ in expected.values()) > 10_000
    assert found == expected


def test_patterns__have_no_possessive_quantifier() -> None:
    """Python 3.11 before 3.11.5 takes them wrongly (gh-106052); an atomic group, ``(?>...)``, says the same."""
    found = [
        f"{path}: {text}"
        for path in SOURCES
        for text in literals(path.read_text())
        if POSSESSIVE.search(text)
    ]

    assert len(SOURCES) > 300
    assert found == []


@with_cases(
    ("pattern", "possessive"),
    [("r'a*+'", True), ("rf'{x}++'", True), ("rf'{x}{{0,2}}+'", True), ("r'(?:a)?+b'", True), ("r'[*+]\\++'", False),
     ("r'[a*+]'", False), ("r'\\*+'", False), ("r'(?>a*)'", False)],
)  # fmt: skip
def test_literals__shows_possessive_quantifiers(pattern: str, possessive: bool) -> None:
    texts = literals(f"import re\nx = 'a'\nre.compile({pattern})")

    assert any(POSSESSIVE.search(text) for text in texts) == possessive
