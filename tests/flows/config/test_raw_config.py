"""A config before it is one: what cannot be read, is no mapping, or names files and code."""

import pytest

from evalcube.flows.config import raw_config
from evalcube.flows.config.models import Model
from evalcube.flows.config.raw_config import beside, named, parsed, plain, text_of, written_config
from evalcube.flows.config.text import DEEPEST
from evalcube.flows.errors import ConfigError


def problem(check, *arguments):
    with pytest.raises(ConfigError) as caught:
        check(*arguments)
    (only,) = caught.value.problems
    return only


@pytest.mark.parametrize(
    ("data", "rule", "line"),
    [
        (b"a: 1\n\xff", "byte 0xff at position 5", 2),
        (b"\xff", "byte 0xff at position 0", 1),
    ],
)
def test_text_of__what_is_no_utf_8_is_told_with_its_line(tmp_path, data, rule, line):
    path = tmp_path / "a.yaml"
    path.write_bytes(data)

    found = problem(text_of, path)

    assert rule in found.rule
    assert (found.line, found.source) == (line, str(path))


def test_text_of__reads_a_file_up_to_its_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_config, "LARGEST_FILE", 4)
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfa")
    assert text_of(path) == ("a", str(path))
    path.write_bytes(b"a: 12")

    assert "larger than 4 bytes" in problem(text_of, path).rule
    assert problem(text_of, tmp_path / "none.yaml", "Start").remedy == "Start"
    assert "cannot be read" in problem(text_of, tmp_path).rule
    assert "cannot be read" in problem(text_of, "a\0b").rule
    assert problem(text_of, "a\x1bb").source == r"'a\x1bb'"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "is empty"),
        ("# nothing", "is empty"),
        ("- a", "must be a mapping"),
        ("5", "must be a mapping, got 5"),
    ],
)
def test_parsed__needs_a_mapping(text, rule):
    assert rule in problem(parsed, text, "s", "Start").rule


def test_named__is_called_as_its_file_unless_it_says_so():
    assert named("a: 1", "x/my sweep.yaml")[0] == {"name": "my sweep", "a": 1}
    assert named("name: b", "x/a.yaml")[0] == {"name": "b"}
    assert named("a: 1", " ")[0]["name"] == "sweep"
    assert len(named("a: 1", "x" * 200)[0]["name"]) == 128


def test_written_config__checks_nothing_but_that_it_is_yaml(tmp_path):
    (tmp_path / "a.yaml").write_text("odd: [1]")

    assert written_config(tmp_path / "a.yaml") == {"odd": [1]}


def test_beside__leads_to_files_that_are_there(tmp_path):
    (tmp_path / "rows.jsonl").touch()
    (tmp_path / "link").symlink_to("nowhere")
    given = {
        "tasks": {
            "a": {"file": "rows.jsonl", "other": "rows.jsonl"},
            "b": {"file": ["rows.jsonl", "gone.csv", 5]},
        }
    }

    found = beside(given | {"ca_file": "link", "include_path": "gone"}, tmp_path)

    there = str(tmp_path / "rows.jsonl")
    assert found["tasks"] == {
        "a": {"file": there, "other": "rows.jsonl"},
        "b": {"file": [there, "gone.csv", 5]},
    }
    assert (found["ca_file"], found["include_path"]) == (str(tmp_path / "link"), "gone")


def nested(levels):
    value = 0
    for _ in range(levels):
        value = [value]
    return value


def test_plain__is_as_it_would_be_written():
    model = Model(name="m", endpoint="sim:")

    assert plain({1: (2, {3: None}), "m": model}) == {
        "1": [2, {"3": None}],
        "m": {"name": "m", "endpoint": "sim:"},
    }
    assert plain({"a": nested(DEEPEST - 2)})
    assert "nested deeper" in problem(plain, {"a": nested(DEEPEST - 1)}).rule
