"""Reads YAML text to plain values (dict, list, str, int, float, bool, None), and finds the line of any of them.

Works on YAML 1.2 nodes, so that every line is known, ``on`` stays a word, and no tag runs code. Keys are
always text. Duplicate keys, unknown tags, and aliases that contain themselves or multiply are refused.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.representer import SafeRepresenter

from evalcube.flows.config.secrecy import mask, show

Path = tuple[str | int, ...]

LONGEST_TEXT = 10_000_000
"""Characters."""
MOST_VALUES = 1_000_000
"""Values after aliases are replaced by what they stand for."""
DEEPEST = 50
"""Levels of nesting."""
_MOST_LINES = 100_000
"""Values of which the line is kept: aliases make more of them than a text has lines, up to half a kilobyte each."""

_CORE = "tag:yaml.org,2002:"
_WORDS: dict[str, object] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*")
_SPECIAL_FLOAT = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class YamlProblem(Exception):  # noqa: N818 - becomes a ConfigError
    """A text that is not usable YAML.

    Parameters
    ----------
    rule, remedy
        What is wrong and what to do.
    line
        From 1.
    """

    def __init__(self, rule: str, line: int, remedy: str = "") -> None:
        super().__init__(rule, line, remedy)
        self.rule = rule
        self.line = line
        self.remedy = remedy


class YamlText:
    """A parsed text: its value, and the line of each part.

    Raises
    ------
    YamlProblem
        If the text is no YAML, or uses what is refused.
    """

    def __init__(self, text: str) -> None:
        root, self._left = _compose(text), MOST_VALUES
        self._lines: dict[Path, tuple[int, int]] = {
            (): (1, 1) if root is None else (_line(root), _line(root))
        }
        """Of each value, the line that is told for it, and that of its key."""
        self.value: object = None if root is None else self._build(root, ())

    def line(self, path: Path, *, key: bool = False) -> int:
        """Find the line, from 1, of the value at `path`, or of its nearest parent whose line is known.

        A list or mapping is where its key is. With `key`, a scalar is where its key is, too.
        """
        while path not in self._lines:
            path = path[:-1]
        return self._lines[path][key]

    def _note(self, path: Path, told: Node, key: Node) -> None:
        if len(self._lines) < _MOST_LINES or path in self._lines:
            self._lines[path] = (_line(told), _line(key))

    def _build(self, node: Node, path: Path, depth: int = 0) -> object:
        """The value of a node, within bounds."""
        self._left -= 1
        if self._left < 0:
            problem = f"stands for more than {MOST_VALUES:,} values"
            raise YamlProblem(problem, _line(node), "Use fewer aliases (*name)")
        if depth > DEEPEST:
            problem = f"nested deeper than {DEEPEST} levels"
            raise YamlProblem(problem, _line(node), "An alias must not contain itself")
        _check_tag(node)
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode):
            for index, item in enumerate(node.value):
                self._note((*path, index), item, item)
            return [self._build(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
        return _scalar(node) if isinstance(node, ScalarNode) else None

    def _mapping(self, node: MappingNode, path: Path, depth: int) -> dict[str, object]:
        values: dict[str, object] = {}
        lines: dict[str, int] = {}
        merges = [value for key, value in node.value if key.tag == f"{_CORE}merge"]
        parts = [
            merged for each in merges for merged in (each.value if isinstance(each, SequenceNode) else [each])
        ]
        for part in reversed(parts):
            value = self._build(part, path, depth + 1)
            if not isinstance(value, dict):
                raise YamlProblem("<< merges mappings only", _line(part), "Give it an alias of a mapping")
            values |= value
        for key, value in node.value:
            if key.tag == f"{_CORE}merge":
                continue
            name = _key(key)
            if name in lines:
                raise YamlProblem(
                    f"key {show(name)} is given twice, in lines {lines[name]} and {_line(key)}",
                    _line(key),
                    "Keep one of them",
                )
            lines[name] = _line(key)
            self._note((*path, name), value if isinstance(value, ScalarNode) else key, key)
            values[name] = self._build(value, (*path, name), depth + 1)
        return values


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _compose(text: str) -> Node | None:
    if len(text) > LONGEST_TEXT:
        raise YamlProblem(f"longer than {LONGEST_TEXT:,} characters", 1, "Split it into several configs")
    yaml = YAML(typ="safe", pure=True)
    yaml.composer.warn_double_anchors = False  # the warning quotes the text, which may have a secret
    try:
        node: Node | None = yaml.compose(text)
    except MarkedYAMLError as error:
        raise _syntax_problem(error) from None
    except ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        rule = f"wrong YAML: control character {chr(error.character)!a} is not allowed"
        raise YamlProblem(rule, line, "Remove it") from None
    except RecursionError:
        raise YamlProblem("nested too deeply", 1, f"Use at most {DEEPEST} levels") from None
    except (YAMLError, ValueError, KeyError, IndexError, AttributeError, TypeError, AssertionError) as error:
        # ruamel.yaml lets a few plain errors through on broken directives, tags and escapes
        rule = mask(" ".join(str(error).split())[:120])
        raise YamlProblem(f"wrong YAML: {rule}" if rule else "wrong YAML", 1) from None
    return node


def _syntax_problem(error: MarkedYAMLError) -> YamlProblem:
    mark = error.problem_mark or error.context_mark
    problem = mask(" ".join(str(error.problem or error.context).split()))
    context = f" ({mask(' '.join(str(error.context).split()))})" if error.problem and error.context else ""
    line, column = (int(mark.line) + 1, int(mark.column) + 1) if mark is not None else (1, 1)
    return YamlProblem(f"wrong YAML at column {column}: {problem}{context}", line, _remedy(problem))


def _remedy(problem: str) -> str:
    if problem.startswith("mapping values are not allowed"):
        return 'Indent the key like its siblings; put quotes round a text with a colon, such as "sim:"'
    if "'\\t'" in problem:
        return "Indent with spaces, not with tabs"
    if "another document" in problem:
        return "Keep one document in a file"
    if "undefined alias" in problem:
        return "Put quotes round a text that starts with *"
    return "Put quotes round this text" if "cannot start any token" in problem else ""


def _key(node: Node) -> str:
    if not isinstance(node, ScalarNode):
        raise YamlProblem("a key must be a single word or text", _line(node), "Put quotes round it")
    _check_tag(node)
    return str(node.value)


def _check_tag(node: Node) -> None:
    tag = str(node.tag)
    allowed = {
        ScalarNode: ("str", "int", "float", "bool", "null", "timestamp", "value", "merge"),
        SequenceNode: ("seq",),
        MappingNode: ("map",),
    }.get(type(node), ())
    if tag not in {_CORE + name for name in allowed}:
        problem = f"tag {show(tag.removeprefix(_CORE))} is not allowed"
        raise YamlProblem(problem, _line(node), "Remove what starts with !")


def _scalar(node: ScalarNode) -> object:
    """Resolve a plain word by YAML 1.2's core schema; a quoted or tagged text stays what it is."""
    text = str(node.value)
    if node.tag == f"{_CORE}str" or node.style is not None:
        return text
    if text.lower() in _WORDS and text in {text.lower(), text.upper(), text.capitalize()}:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return _integer(text, node)
    if _FLOAT.fullmatch(text):
        return float(text)
    special = _SPECIAL_FLOAT.fullmatch(text)
    if special:
        return float("nan") if special.group(3) else float(f"{special.group(1)}inf")
    return text


def _integer(text: str, node: Node) -> int:
    if len(text) > 1000:
        raise YamlProblem("a number of more than 1,000 digits", _line(node), "Use a smaller one")
    if text.startswith("0o"):
        return int(text[2:], 8)
    return int(text[2:], 16) if text.startswith("0x") else int(text)


class _QuotingRepresenter(SafeRepresenter):
    """Puts quotes round each text that some reader of YAML might take for something else."""


def _text(writer: SafeRepresenter, text: str) -> Node:
    plain = _PLAIN.fullmatch(text) and text.lower() not in {*_WORDS, "yes", "no", "on", "off", "y", "n"}
    return writer.represent_scalar(f"{_CORE}str", text, style=None if plain else '"')


_QuotingRepresenter.add_representer(str, _text)


def yaml_text(value: Mapping[str, object]) -> str:
    """A mapping of plain values as YAML, which `YamlText` reads back as it was."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _QuotingRepresenter
    yaml.default_flow_style = None  # lists and mappings of scalars in one line
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # its annotation is too narrow
    yaml.width = 110
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()
