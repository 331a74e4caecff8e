"""The package that `evalcube init --plugin` writes."""

from __future__ import annotations

import ast
import tomllib

import pytest

from evalcube.flows.config.plugin import plugin_files
from evalcube.flows.errors import SweepError
from tests.cases import with_cases
from tests.flows.support import evalcube, refused


def test_plugin_files__are_named_after_the_package():
    files = plugin_files("word-games")

    project = tomllib.loads(files["pyproject.toml"].decode())
    classes = [node.name for node in ast.parse(files["word_games.py"]).body if isinstance(node, ast.ClassDef)]

    assert project["project"]["name"] == "word-games"
    assert project["project"]["entry-points"]["evalcube.tasks"] == {"word_games": "word_games:WordGames"}
    assert classes == ["WordGamesParams", "WordGames"]
    assert [name for name, text in files.items() if b"plugin_name" in text.lower().replace(b"-", b"_")] == []


def test_plugin_files__has_about_thirty_lines_of_code():
    lines = plugin_files("word-games")["word_games.py"].decode().splitlines()

    assert len([line for line in lines if line.strip()]) < 36


@with_cases("name", ["sort", "json", "evalcube", "class", "Word", "1a", "a b", "../x", "x-", ""])
def test_plugin_files__refuses_names_that_would_not_work(name):
    with pytest.raises(SweepError, match=f"'{name}' is "):
        plugin_files(name)


def test_init__writes_a_package_and_never_over_one(tmp_path):
    code, output, _ = evalcube("init", "--plugin", "word-games", cwd=tmp_path)

    assert code == 0
    assert "next: pip install --editable 'word-games[test]'" in output
    assert {path.name for path in (tmp_path / "word-games").iterdir()} == set(plugin_files("word-games"))
    refused(evalcube("init", "--plugin", "word-games", cwd=tmp_path), "exists", "--force")
    refused(
        evalcube("init", "--plugin", "sort", cwd=tmp_path), "--plugin: 'sort' is a task of evalcube already"
    )
    refused(evalcube("init", "--plugin", "a2", "--from", "quick", cwd=tmp_path), "--plugin and --from")
    assert evalcube("init", "--plugin", "word-games", "--force", cwd=tmp_path)[0] == 0
