"""Writes into pages what the program itself says: keys of a config, params of tasks, commands, suites, public names.

``python docs/reference.py`` writes it between the marks of each page, and a test compares it with what stands there. A
key, param, option or command without a description has no place there, and ends it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import evalcube
from evalcube.flows.cli.app import OWN_CODES, app
from evalcube.flows.cli.output import EXIT_CODES
from evalcube.flows.config.cluster import seconds
from evalcube.flows.config.field_types import forms, sections_below
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.recipes import recipe_names, suite_names, suite_section
from evalcube.flows.config.section import Section
from evalcube.flows.config.suites import load_suite
from evalcube.flows.plan.build import build_plan
from evalcube.stages.generate import TASKS
from evalcube.stages.generate.foreign import gym

_PLAIN = {int: "integer", float: "number", bool: "boolean", str: "text"}
Links = Mapping[type[BaseModel], str]
"""Sections, and how a list names them."""

_POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_BOUNDS = {"ge": "from {}", "gt": "above {}", "le": "to {}", "lt": "below {}"}


class UndescribedError(Exception):
    """Something that users can write has no description."""


# Keys of a config


def config_keys() -> str:
    """Every section of a config, each with a list of its keys."""
    headings = {section: _heading(section, paths) for section, paths in _sections(Sweep).items()}
    links = {section: f"[section](#{_anchor(heading)})" for section, heading in headings.items()}
    return "\n".join(
        f"## {heading}\n\n{_first(section)}\n\n{_fields(section, links)}\n"
        for section, heading in headings.items()
    )


def _anchor(heading: str) -> str:
    """Where a link to a heading leads: lower case and without marks, as on GitHub."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _heading(section: type[Section], paths: list[str]) -> str:
    """Where a section stands, and which of several forms it is if one of its keys has a single value."""
    kinds = [
        f" with `{key}: {get_args(field.annotation)[0]}`"
        for key, field in section.model_fields.items()
        if get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
    ]
    return ", ".join(f"`{path}`" for path in paths) + "".join(kinds) if paths[0] else "The file"


def _sections(root: type[Section]) -> dict[type[Section], list[str]]:
    """The root and all sections below it, with the paths at which each may stand; each after the one that holds it."""
    found: dict[type[Section], list[str]] = {}

    def visit(section: type[Section], path: str) -> None:
        known = section in found
        found.setdefault(section, []).append(path)
        if known:
            return
        for key, field in section.model_fields.items():
            for below, step in sections_below(field.rebuild_annotation(), f"{path}.{key}".lstrip(".")):
                visit(below, step)

    visit(root, "")
    return found


# Params of tasks

_PAGES = {"dataset": "Its params: [questions from a file](datasets.md), and `evalcube tasks dataset`."}
"""Where the params of a task are explained if not in a list."""


def task_params() -> str:
    """Every bundled task with what it asks and a list of its params, unless they have a page of their own."""
    return "\n".join(
        f"## `{name}`\n\n{_sentence(task.summary)} Guess chance: {_cell(task.guess_rule)}.\n\n"
        f"{_PAGES.get(name) or _fields(task.Params)}\n"
        for name, task in sorted(TASKS.items())
    )


def _sentence(text: str) -> str:
    return f"{_cell(text[0].upper() + text[1:])}."


# The fields of any model


def _fields(model: type[BaseModel], links: Links | None = None) -> str:
    """A line for each field: what it may be, its default, and what it means."""
    lines = []
    for key, field in model.model_fields.items():
        if not field.description:
            raise UndescribedError(
                f"{model.__name__}.{key} has no description: give its Field one, with what it means and its unit"
            )
        kind = "mapping" if _is_mapping(field) else _kind(field.rebuild_annotation(), links or {})
        bounds = _range(field)
        limits = (
            bounds if bounds and kind in ("integer", "number") else ", ".join(filter(None, (kind, bounds))),
            "required" if field.is_required() else _default(field),
        )
        lines.append(f"- `{key}` ({'; '.join(filter(None, limits))}): {_line(field.description)}")
    return "\n".join(lines)


def _is_mapping(field: FieldInfo) -> bool:
    """Whether a config has a mapping where the program has something else, such as pairs."""
    return any(getattr(rule, "json_schema", None) == {"type": "object"} for rule in field.metadata)


def _kind(annotation: Any, links: Links) -> str:
    """What a value may be, in words, with links to sections."""
    if seconds in {getattr(rule, "func", None) for form in get_args(annotation) for rule in get_args(form)}:
        return "time"  # with its unit, where the program has seconds
    words = [_form(form, links) for form in forms(annotation) if form is not NoneType]
    return " or ".join(dict.fromkeys(words))


def _form(form: Any, links: Links) -> str:
    if get_origin(form) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(form))
    if get_origin(form) is dict:
        values = _kind(get_args(form)[1], links)
        return f"mapping of names to {values}" if values != "any value" else "mapping"
    if get_origin(form) in (tuple, list):
        return f"list of {_kind(get_args(form)[0], links)}"
    if isinstance(form, type) and issubclass(form, BaseModel):
        return links.get(form, "section")
    return _PLAIN.get(form, "any value")


def _range(field: FieldInfo) -> str:
    """The bounds of a number."""
    bounds: dict[str, float] = {}
    for rule in _rules(field.rebuild_annotation()):
        bounds |= {name: getattr(rule, name) for name in _BOUNDS if getattr(rule, name, None) is not None}
    text = " ".join(_BOUNDS[name].format(_number(bounds[name])) for name in _BOUNDS if name in bounds)
    return text.removeprefix("from ") if " to " in text else text


def _rules(annotation: Any) -> Iterator[object]:
    """What `Annotated` adds to a type, and the types of a union that are numbers."""
    if get_origin(annotation) is Annotated:
        kind, *rules = get_args(annotation)
        yield from _rules(kind)
        for rule in rules:
            yield rule
            yield from getattr(rule, "metadata", ())


def _number(value: float) -> str:
    if abs(value) >= 10**7:
        digits, power = f"{value:.1e}".split("e+")
        digits = "" if digits == "1.0" else f"{digits} · "
        return f"{digits}10{power.lstrip('0').translate(_POWERS)}"
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _default(field: FieldInfo) -> str:
    """The default, with its name; empty if there is none, or the description says it."""
    value = field.default
    if (
        field.default_factory is not None
        or isinstance(value, BaseModel)
        or "default: " in str(field.description)
    ):
        return ""
    if value in (PydanticUndefined, None, "", (), [], {}):
        return ""
    if isinstance(value, bool):
        shown = str(value).lower()
    elif isinstance(value, float):
        shown = f"{value:g}"
    else:
        shown = _line(str(list(value) if isinstance(value, tuple) else value))
    return f"default `{shown}`"


def _first(item: object) -> str:
    return _cell(str(item.__doc__).strip().split("\n\n")[0].replace("\n", " "))


def _cell(text: str) -> str:
    """Text for a table, which shows it as it is."""
    return _line(text).replace("|", "\\|")


def _line(text: str) -> str:
    """Text for a line of a list, which shows it as it is."""
    line = " ".join(text.split())
    # Within backticks, everything is shown as it is.
    return "`".join(
        part if code % 2 else part.replace("<", "&lt;") for code, part in enumerate(line.split("`"))
    )


# Commands


def commands() -> str:
    """Every command by the heading under which ``--help`` has it, with its arguments and options."""
    root = typer.main.get_command(app)
    panels: dict[str, list[str]] = {}
    for name, command in root.commands.items():  # type: ignore[attr-defined] # a group
        panel = str(getattr(command, "rich_help_panel", "")) or "Commands"
        panels.setdefault(panel, []).extend(_command(f"evalcube {name}", command))
    codes = "\n".join(f"| {int(code)} | {_cell(text)} |" for code, text in EXIT_CODES.items())
    meanings: dict[str, list[str]] = {}
    for name, texts in OWN_CODES.items():
        meanings.setdefault("; ".join(f"{code}: {text}" for code, text in texts.items()), []).append(
            f"`{name}`"
        )
    own = "\n".join(f"- {', '.join(names)}: {text}" for text, names in meanings.items())
    lines = [line for texts in panels.values() for line in "\n".join(texts).splitlines() if _is_option(line)]
    count = Counter(map(_without_default, lines))
    shared: dict[str, str] = {}
    for line in sorted(lines, key=lambda line: -count[_without_default(line)]):
        if count[_without_default(line)] > 1:
            shared.setdefault(_label(line), line)
    written = "\n\n".join(
        f"## {panel}\n\n" + "\n\n".join(_without_shared(text, shared) for text in texts)
        for panel, texts in panels.items()
    )
    common = "\n".join(["## Options of several commands", "", *sorted(shared.values())])
    written = f"{common}\n\n{written}"
    return f"{written}\n\n## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}\n\nOf single commands:\n\n{own}\n"


def _is_option(line: str) -> bool:
    """Whether a line explains an argument or an option."""
    return line.startswith("- `")


def _label(line: str) -> str:
    """The argument or option that a line explains, with its value."""
    return line.removeprefix("- ").partition(": ")[0]


def _without_default(line: str) -> str:
    return line.partition(" (default: `")[0]


def _without_shared(text: str, shared: Mapping[str, str]) -> str:
    """A command's text in which options of several commands are only named; its usage names arguments."""
    names, own = [], []
    for line in text.splitlines():
        common = shared.get(_label(line), "")
        if not _is_option(line) or _without_default(line) != _without_default(common):
            own.append(line)
        elif line.startswith("- `-"):
            name = re.sub(r"^(`[\w-]+).*", r"\1`", _label(line))
            clear = sum(label.startswith((name, name[:-1] + " ")) for label in shared) == 1
            names.append(
                (name if clear else _label(line)) + line[len(_without_default(line)) :] * (line != common)
            )
    return "\n".join(own).rstrip() + (f"\n\nAlso: {', '.join(names)}." if names else "")


def _command(path: str, command: Any) -> Iterator[str]:
    """A command, or all those of a group."""
    if not command.help:
        raise UndescribedError(f"{path} has no description: give its function a docstring")
    below = getattr(command, "commands", {})
    for name, inner in below.items():
        yield from _command(f"{path} {name}", inner)
    if below:
        return
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join([path, *map(_argument, arguments)])
    rows = "\n".join(_option(path, parameter) for parameter in (*arguments, *options))
    words = "\n\n".join(" ".join(part.split()) for part in command.help.replace("\b", "").split("\n\n"))
    yield f"### {path}\n\n{words}\n\n`{usage}`\n\n{rows}"


def _argument(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name).upper() + ("..." if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _value(parameter: Any) -> str:
    """What stands for the value of an option."""
    numbers = {int, float}.intersection(forms(parameter.type_descriptor.annotation))
    return "NUMBER" if numbers else "VALUE"


def _option(path: str, parameter: Any) -> str:
    """A line that explains an argument or an option."""
    if parameter.param_type_name == "argument":
        shown = f"`{_argument(parameter)}`"
    else:
        value = "" if parameter.is_flag else f" {parameter.metavar or _value(parameter)}"
        shown = ", ".join(f"`{name}{value}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if not getattr(parameter, "help", None):
        raise UndescribedError(f"{path}: {shown} has no help text")
    default = parameter.default
    plain = isinstance(default, (str, int, float)) and not isinstance(default, bool) and default != ""
    return f"- {_line(shown)}: {_line(parameter.help)}{f' (default: `{default}`)' if plain else ''}"


# Suites


def suite_sizes() -> str:
    """How many points each suite has, and how many its corners have."""
    rows = [
        (
            "| suite | tasks | [points](glossary.md#point) | points per task and [tier](glossary.md#tier) "
            "| points with `density: corner` |"
        ),
        "|---|---|---|---|---|",
    ]
    for name in sorted(set(suite_names()) - set(recipe_names()), reverse=True):
        config = load_suite(name, ["sim:"])
        plan = build_plan(config)
        corners = build_plan(config.model_copy(update={"density": "corner"}))
        sizes = sorted({sum(row) for tier in plan.in_tier.tolist() for row in tier})
        each = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
        rows.append(f"| `{name}` | {len(plan.tasks)} | {plan.cells} | {each} | {corners.cells} |")
    return "\n".join(rows)


def floors() -> str:
    """What no work gains at the points of gym30."""
    rows = ["| generator | easy | medium | hard | questions |", "|---|---|---|---|---|"]
    for name, points in sorted(gym.catalogue()["floors"].items()):
        questions = min(point["questions"] for point in points.values())
        if questions < 900 or max(point["floor"] for point in points.values()) >= 0.01:
            shares = " | ".join(f"{100 * point['floor']:.1f}" for point in points.values())
            rows.append(f"| `{name}` | {shares} | {questions} |")
    return "\n".join(rows)


def recipes() -> str:
    """Where the known suites are from, and how far to trust them."""
    rows = [
        "| suite | rows | answers | licence | revision of the data | verified | follows, departs from |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in recipe_names():
        (task,) = suite_section(name)["tasks"].values()
        recipe, params = task["recipe"], task["params"]
        how = "choice" if "options" in params else params.get("match", "text")
        cells = (
            f"`{name}`",
            f"{recipe['rows']:,}",
            how,
            recipe.get("licence") or "as the hub says",
            recipe.get("revision") or "newest at your first fetch",
            "yes" if recipe["verified"] else "no",
            _cell("; ".join(recipe["sources"])),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


# Names


NAMES = re.compile(r"^\| (`[\w.]+`(?:, `[\w.]+`)*) \|", re.MULTILINE)
"""The first cell of a row of public names."""


def described(table: str) -> str:
    """The table of public names that a page lists, each with the first sentence of its docstring.

    Aliases, and the interval of a metric, share its row; a section of a config is a link to its keys.
    """
    rows: dict[int, list[str]] = {}
    for name in names(table):
        rows.setdefault(id(attrgetter(name.removesuffix("_ci"))(evalcube)), []).append(name)
    body = (f"| {', '.join(f'`{name}`' for name in row)} | {_meaning(row[0])} |" for row in rows.values())
    return "\n".join(["| name | what it is |", "|---|---|", *body])


def names(text: str) -> list[str]:
    """The public names that a page lists."""
    return [name for cell in NAMES.findall(text) for name in re.findall(r"[\w.]+", cell)]


def _meaning(name: str) -> str:
    item = attrgetter(name)(evalcube)
    if name.startswith("config.") and item in (sections := _sections(Sweep)):
        heading = _heading(item, sections[item])
        return f"[{heading.split(', ')[0]}](config.md#{_anchor(heading)})"
    return _first(item).replace("``", "`")


# Pages

WRITTEN: Mapping[str, Callable[[], str]] = {
    "keys": config_keys,
    "params": task_params,
    "commands": commands,
    "suites": suite_sizes,
    "floors": floors,
    "recipes": recipes,
}
"""What may stand between marks; `names` describes those that stand there."""

_MARKED = re.compile(r"(<!-- docs/reference.py writes (\w+) -->\n)(.*?)(<!-- to here -->)", re.DOTALL)


def filled(text: str) -> str:
    """A page with what the program says now between its marks."""

    def written(mark: re.Match[str]) -> str:
        now = described(mark[3]) if mark[2] == "names" else WRITTEN[mark[2]]()
        return f"{mark[1]}\n{now.rstrip()}\n\n{mark[4]}"

    return _MARKED.sub(written, text)


if __name__ == "__main__":
    for page in sorted(Path(__file__).parent.glob("*.md")):
        before = page.read_text("utf-8")
        if (after := filled(before)) != before:
            page.write_text(after, "utf-8")
