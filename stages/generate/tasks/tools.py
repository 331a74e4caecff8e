"""Task `tools`: the calls of tools that a request takes, with their arguments, among tools that are almost right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field

from evalcube.stages.generate.answers.calls import canonical_calls, keeps_schema, read_calls
from evalcube.stages.generate.base import Task, TaskParams, Trial, param, second_paragraph
from evalcube.stages.generate.material import wordings, words
from evalcube.stages.generate.stream import Stream

Key = tuple[str, str, str]
"""Verb, place and thing of a tool, which are its name."""
Function = dict[str, Any]
"""Name, description and parameters, a JSON schema, as OpenAI's API has them."""

_WORDS = tuple(words.TOOLS[kind].split() for kind in ("verbs", "places", "things"))

_TOP, _DEEPER = 3, 2
"""Arguments of a tool itself, and of each object within."""
_OBJECTS = {"details": "Further details.", "options": "What is chosen.", "terms": "Terms.", "notes": "Notes."}


class _Argument(NamedTuple):
    name: str
    kind: Literal["string", "integer", "number", "boolean", "enum", "strings", "integers"]
    about: str
    said: str
    """How a request states it."""
    values: Sequence[Any]

    def schema(self) -> dict[str, Any]:
        about = {"description": self.about}
        if self.kind == "enum":
            return {"type": "string", "enum": list(self.values), **about}
        if self.kind in ("strings", "integers"):
            return {"type": "array", "items": {"type": self.kind.removesuffix("s")}, **about}
        return {"type": self.kind, **about}

    def draw(self, stream: Stream) -> object:
        if self.kind in ("strings", "integers"):
            return stream.sample(self.values, stream.between(2, 3))
        return stream.choice(self.values)

    def say(self, value: object) -> str:
        if isinstance(value, list):
            *first, last = map(str, value)
            return self.said.format(f"{', '.join(first)} and {last}")
        return self.said.format({True: "", False: "not "}[value] if isinstance(value, bool) else value)


_VALUES: dict[str, Sequence[Any]] = {
    "contact": words.NAMES,
    "minutes": range(5, 241),
    "budget": [n + 0.5 for n in range(10, 400)],
    "copies": range(2, 60),
    "colour": "black blue green orange red white".split(),
    "urgency": "low normal high critical".split(),
    "insured": (True, False),
    "notify": (True, False),
    "weekday": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "keywords": words.ITEMS,
    "rooms": range(1, 100),
    "reference": [f"{a}{b}-{n}" for a in "ABCDEFGH" for b in "KLMNPRST" for n in range(20, 30)],
    "temperature": range(-20, 41),
    "language": "Danish Dutch English French German Greek Polish".split(),
    "start": [f"{hour:02}:{minute:02}" for hour in range(6, 22) for minute in range(0, 60, 5)],
}
_ARGUMENTS = tuple(
    _Argument._make((name, *words.TOOLS["arguments"][name], values)) for name, values in _VALUES.items()
)

_SAY = wordings("tools")


class ToolsParams(TaskParams):
    """Params of `Tools`."""

    tools: int = param(4, 1, 16, "Tools whose names have no word in common; more to choose from.")
    distractors: int = param(0, 0, 32, "Additional tools, each named like a needed one except for one word.")
    nesting: int = param(0, 0, 3, "Levels of objects within the arguments; more to place.")
    calls: int = param(1, 1, 6, "Calls that the request needs, in any order; more to keep in mind.")
    call: Literal["text", "api"] = Field(
        "text",
        description="text: tools in the prompt and calls in the reply, as JSON; api: the API's own fields, which the "
        "model's server must support.",
    )

    def drawn_by(self) -> dict[str, object]:
        """All but how it is called: the same is asked in both ways."""
        return {name: value for name, value in self.canonical().items() if name != "call"}


class Tools(Task[ToolsParams]):
    """Calls of tools with typed, enumerated, listed and nested arguments, all of which the request states.

    A call is right if tool and arguments are, as JSON values; the calls may come in any order. Distractors take the
    same arguments as the tool that they resemble.
    """

    name = "tools"
    version = 1
    summary = "the tool calls that a request needs, with their arguments"
    guess_rule = "0"
    Params = ToolsParams

    def generate(self, params: ToolsParams, stream: Stream) -> Trial:
        """Draw tools, then calls of some with what states them, then tools that resemble those."""
        keys: list[Key] = list(zip(*(stream.sample(words, params.tools) for words in _WORDS), strict=True))
        schemas = {key: _schema(stream, params.nesting) for key in keys}
        needed = [stream.choice(keys) for _ in range(params.calls)]
        calls: list[dict[str, Any]] = []
        lines: list[str] = []
        for key in needed:
            call, line = _call(stream, key, schemas[key])
            while call in calls:
                call, line = _call(stream, key, schemas[key])
            calls.append(call)
            lines.append(line)
        while len(schemas) < params.tools + params.distractors:
            like, at = stream.choice(needed), stream.below(3)
            near = (*like[:at], stream.choice(_WORDS[at]), *like[at + 1 :])
            schemas.setdefault(near, schemas[like])
        functions = [_function(key, schema) for key, schema in schemas.items()]
        stream.shuffle(functions)
        offered = ["\n".join(map(json.dumps, functions))] if params.call == "text" else []
        parts = [
            stream.choice(_SAY.openings[params.call]),
            *offered,
            "\n".join(lines),
            stream.choice(_SAY.closings[params.call]),
        ]
        # In a text they are in the prompt: many trials are kept, and a tool takes much more as an object.
        tools = [{"type": "function", "function": function} for function in functions]
        extras = {"tools": tools} if params.call == "api" else {}
        return Trial("\n\n".join(parts), canonical_calls(calls), extras=extras)

    parse = staticmethod(read_calls)
    """Read the last calls in a text, in JSON, as one array in a fixed order."""

    def parse_reply(self, text: str, params: ToolsParams, trial: Trial) -> str | None:  # noqa: ARG002
        """Read calls in the text, or those that the API has: they are the last line of what is read then."""
        return self.parse(text.rstrip("\n").rpartition("\n")[2] if params.call == "api" else text)

    def fault(self, answer: str | None, params: ToolsParams, trial: Trial) -> str:  # noqa: ARG002
        """Tell the worst: no call, wrong tool (or one too few or too many), broken schema, or wrong arguments."""
        if answer is None:
            return "no call"
        calls, right = json.loads(answer), json.loads(trial.answer)
        if sorted(call["name"] for call in calls) != sorted(call["name"] for call in right):
            return "wrong tool"
        # The tools stand beside the prompt or in it.
        functions: Any = [tool["function"] for tool in trial.tools] or map(
            json.loads, second_paragraph(trial).splitlines()
        )
        schemas = {function["name"]: function["parameters"] for function in functions}
        if not all(keeps_schema(call["arguments"], schemas[call["name"]]) for call in calls):
            return "broken schema"
        return "" if answer == trial.answer else "wrong arguments"

    def problem(self, trial: Trial) -> str:
        """What is to be called, however it is told."""
        return trial.answer

    def difficulty(self, params: ToolsParams) -> float:
        """For each call the arguments to place, more where they are nested, and the tools to look through."""
        placed = (_TOP + _DEEPER * params.nesting) * (1 + 0.5 * params.nesting)
        return params.calls * (2 * placed + 0.25 * params.tools + 0.5 * params.distractors)


class _Schema(NamedTuple):
    """Arguments of a tool: where each of them stands, and which one of the outermost may be left out."""

    levels: list[tuple[str, list[_Argument]]]
    """Name of the object (empty for the outermost) and its arguments, each within the one before."""
    optional: str


def _schema(stream: Stream, nesting: int) -> _Schema:
    drawn = stream.sample(_ARGUMENTS, _TOP + _DEEPER * nesting)
    names = stream.sample(list(_OBJECTS), nesting)
    begins = range(_TOP, len(drawn), _DEEPER)
    inner = [(name, drawn[at : at + _DEEPER]) for name, at in zip(names, begins, strict=True)]
    return _Schema([("", drawn[:_TOP]), *inner], stream.choice(drawn[:_TOP]).name)


def _function(key: Key, schema: _Schema) -> Function:
    verb, location, thing = key
    inner: dict[str, Any] = {}
    for name, arguments in reversed(schema.levels):
        fields = {argument.name: argument.schema() for argument in arguments} | inner
        whole: dict[str, Any] = {
            "type": "object",
            "properties": fields,
            "required": [field for field in fields if name or field != schema.optional],
            "additionalProperties": False,
        }
        inner = {name: {"description": _OBJECTS[name], **whole}} if name else whole
    about = f"{verb.capitalize()} the {thing} of the {location}."
    return {"name": "_".join(key), "description": about, "parameters": inner}


def _call(stream: Stream, key: Key, schema: _Schema) -> tuple[dict[str, Any], str]:
    """A call and the line that asks for it."""
    arguments: dict[str, Any] = {}
    clauses: list[str] = []
    left_out = schema.optional if stream.chance(0.5) else ""
    inner = arguments
    for name, fields in schema.levels:
        if name:
            inner[name] = inner = {}
        for argument in fields:
            if argument.name != left_out:
                inner[argument.name] = value = argument.draw(stream)
                clauses.append(argument.say(value))
    stream.shuffle(clauses)
    verb, location, thing = key
    line = f"- {verb.capitalize()} the {location} {thing}: {'; '.join(clauses)}."
    return {"name": "_".join(key), "arguments": arguments}, line
