"""Independent solvers of tables, jsonpath and shapes: the prompt text in, the answer out."""

from __future__ import annotations

import cmath
import csv
import json
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

# ---- tables


def read_table(text: str) -> list[dict[str, str]]:
    """The rows of a Markdown, CSV or JSON table, all values as text."""
    if text.startswith("["):
        return [{key: str(value) for key, value in row.items()} for row in json.loads(text)]
    if text.startswith("|"):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
        return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]
    return list(csv.DictReader(text.splitlines()))


def meets(row: dict[str, str], condition: str) -> bool:
    found = re.fullmatch(r"(\w+) is (at least|at most|less than|more than|not)? ?(\w+)", condition)
    assert found is not None, condition
    name, word, value = found.groups()
    if word in (None, "not"):
        return (row[name] == value) == (word is None)
    difference = int(row[name]) - int(value)
    return {
        "at least": difference >= 0,
        "at most": difference <= 0,
        "less than": difference < 0,
        "more than": difference > 0,
    }[word]


def plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def solve_tables(prompt: str) -> str:
    """Reads the table with a parser of its format, filters and aggregates row by row."""
    _, text, question = prompt.split("\n\n")
    rows = read_table(text)
    looked_up = re.search(r"the value of (\w+) in the row with id (\w+)", question)
    if looked_up:
        (row,) = [row for row in rows if row["id"] == looked_up[2]]
        return row[looked_up[1]]
    if "all rows" not in question:
        where = re.search(r"the rows where (.*?)[.?]", question)
        assert where is not None, question
        rows = [row for row in rows if all(meets(row, part) for part in where[1].split(" and "))]
    if re.match(r"Count|What is the number", question):
        return str(len(rows))
    asked = re.search(
        r"(sum of|up|mean of|smallest value of|minimum of|largest value of|maximum of) (\w+)", question
    )
    assert asked is not None, question
    numbers = [int(row[asked[2]]) for row in rows]
    if re.match("Which id|Find the id", question):
        return next(row["id"] for row in rows if int(row[asked[2]]) == max(numbers))
    if asked[1] in ("sum of", "up"):
        return str(sum(numbers))
    if asked[1] == "mean of":
        mean = Fraction(sum(numbers), len(numbers))
        # 40 digits tell any tie from its neighbours
        exact = Decimal(mean.numerator * 10**40 // mean.denominator).scaleb(-40)
        return plain(exact.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))
    return str(sorted(numbers)[0 if asked[1] in ("smallest value of", "minimum of") else -1])


# ---- jsonpath


def matched(values: list[Any], member: str, sign: str, limit: int) -> list[Any]:
    """The values that are, or hold under that name, a number on the right side of the limit."""
    kept = []
    for value in values:
        number = value
        if member:
            number = value.get(member[1:]) if isinstance(value, dict) else None
        if type(number) is int and (number > limit if sign == ">" else number < limit):
            kept.append(value)
    return kept


def walk(value: Any, path: str) -> list[Any]:
    """Follows the path recursively, from the first step on."""
    if not path:
        return [value]
    step = re.match(
        r"\.(?P<name>\w+)|\[(?P<n>\d+)\]|\[\*\]|\[\?@(?P<member>\.\w+)? (?P<sign>[<>]) (?P<limit>\d+)\]", path
    )
    assert step is not None, path
    rest = path[step.end() :]
    members = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if step["name"]:
        members = [value[step["name"]]] if isinstance(value, dict) and step["name"] in value else []
    elif step["n"]:
        members = members[int(step["n"]) :][:1] if isinstance(value, list) else []
    elif step["sign"]:
        members = matched(members, step["member"] or "", step["sign"], int(step["limit"]))
    return [found for member in members for found in walk(member, rest)]


def solve_jsonpath(prompt: str) -> str:
    """Follows the path through the document; several steps give an array."""
    _, text, rules, question = prompt.split("\n\n")
    asked = re.search(r"the path \$(.*?)(?: \?| on this document\.| give\?)", question)
    assert asked is not None, question
    found = walk(json.loads(text), asked[1])
    if "The result is a JSON array" in rules:
        assert found
        return json.dumps(found)
    (value,) = found
    return json.dumps(value)


# ---- shapes


def corners_of(path: str) -> list[complex]:
    """The points that a path goes to, without the one that closes it."""
    points = [complex(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", path)]
    return points[:-1] if points[0] == points[-1] else points


def degrees_between(a: complex, b: complex) -> float:
    """The turn from one direction to another, from -180 to 180."""
    return math.degrees(cmath.phase(b / a))


def slant(a: complex, b: complex) -> float:
    """The angle between two lines, from 0 to 90; never in between of parallel and not."""
    angle = abs(degrees_between(a, b))
    angle = min(angle, 180 - angle)
    assert not 8 < angle < 20, angle
    return angle


def solve_shapes(prompt: str) -> str:
    """Tells arcs by their radii and polygons by their corners and parallel sides, with clear margins."""
    _, path, _ = prompt.split("\n\n")
    points = corners_of(path)
    arcs = re.findall(r"A ([\d.]+) ([\d.]+) ", path)
    if arcs and "L" in path:
        return "sector"
    if arcs:
        short, long = sorted(map(float, arcs[0]))
        assert not 1.1 < long / short < 1.3
        return "circle" if long / short < 1.2 else "ellipse"
    if len(points) == 2:
        return "line"
    sides = [points[(i + 1) % len(points)] - point for i, point in enumerate(points)]
    turns = [degrees_between(side, sides[(i + 1) % len(sides)]) for i, side in enumerate(sides)]
    assert abs(abs(sum(turns)) - 360) < 0.01
    assert min(map(abs, turns)) > 15
    if len(points) != 4:
        return {3: "triangle", 5: "pentagon", 6: "hexagon", 7: "heptagon", 8: "octagon"}[len(points)]
    parallel = sum(slant(sides[i], sides[i + 2]) < 12 for i in (0, 1))
    return ("kite", "trapezoid", "rectangle")[parallel]


# ---- tools

SAID = {
    "contact": "the person to ask for is (.+)",
    "minutes": "(.+) minutes are allowed",
    "budget": "(.+) euros may be spent",
    "copies": "(.+) of them are needed",
    "colour": "its label is (.+)",
    "urgency": "its urgency is (.+)",
    "insured": "insurance is (.*)wanted",
    "notify": "the owner is (.*)to be told",
    "weekday": "the day is (.+)",
    "keywords": "it is filed under (.+)",
    "rooms": "the rooms are (.+)",
    "reference": "the reference code is (.+)",
    "temperature": "it is kept at (.+) degrees",
    "language": "its papers are in (.+)",
    "start": "it begins at (.+)",
}


def stated(schema: dict[str, Any], told: dict[str, str]) -> Any:
    """The value of a schema that the words of a request give, by the names of its members."""
    found = {}
    for name, field in schema["properties"].items():
        if field["type"] == "object":
            found[name] = stated(field, told)
        elif name in told:
            found[name] = converted(field, told[name])
    assert set(schema["required"]) <= set(found)
    return found


def converted(field: dict[str, Any], words: str) -> Any:
    if field["type"] == "array":
        return [converted(field["items"], word) for word in re.split(", | and ", words)]
    if field["type"] == "boolean":
        return words != "not "
    assert words in field.get("enum", [words])
    return words if field["type"] == "string" else json.loads(words)


def solve_calls(lines: list[str], functions: list[dict[str, Any]]) -> str:
    """Finds the tool of each line by its description, and reads what the line states."""
    calls = []
    for line in lines:
        found = re.fullmatch(r"- (\w+) the (\w+) (\w+): (.*)\.", line)
        assert found is not None, line
        verb, place, thing, states = found.groups()
        about = f"{verb} the {thing} of the {place}."
        (tool,) = [one for one in functions if one["description"] == about]
        told = {}
        for name, pattern in SAID.items():
            heard = [match for part in states.split("; ") if (match := re.fullmatch(pattern, part))]
            if heard:
                told[name] = heard[0][1]
        assert len(told) == states.count("; ") + 1
        calls.append({"name": tool["name"], "arguments": stated(tool["parameters"], told)})
    return f"[{', '.join(sorted(json.dumps(call, sort_keys=True) for call in calls))}]"


def solve_tools(prompt: str) -> str:
    _, tools, request, _ = prompt.split("\n\n")
    return solve_calls(request.splitlines(), [json.loads(line) for line in tools.splitlines()])


DOCUMENT_SOLVERS: dict[str, Callable[[str], str]] = {
    "jsonpath": solve_jsonpath,
    "shapes": solve_shapes,
    "tables": solve_tables,
    "tools": solve_tools,
}
