"""Independent solvers of brackets, objects, sequence and sort: the prompt text in, the answer out."""

from __future__ import annotations

import re
from collections.abc import Callable

from evalcube.stages.generate.tasks.objects import GROUPS  # the vocabulary, no code

PRIME = 2**61 - 1
"""Equations are solved modulo this prime; all terms are far smaller."""


def solve_brackets(prompt: str) -> str:
    """Deletes closed pairs until none is left, then mirrors the rest."""
    (rest,) = [line for line in prompt.splitlines() if re.fullmatch(r"[][(){}<>]+", line)]
    before = ""
    while rest != before:
        before = rest
        rest = re.sub(r"\(\)|\[\]|\{\}|<>", "", rest)
    assert re.fullmatch(r"[(\[{<]+", rest), rest
    return rest[::-1].translate(str.maketrans("([{<", ")]}>"))


def number_of(word: str) -> int | None:
    """The number that an English word from "a" to "ninety-nine" means."""
    small = (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        " sixteen seventeen eighteen nineteen"
    ).split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    if word in {"a", "an"}:
        return 1
    if word in small:
        return small.index(word)
    ten, _, unit = word.partition("-")
    if ten not in tens:
        return None
    return 20 + 10 * tens.index(ten) + (number_of(unit) or 0 if unit else 0)


def solve_objects(prompt: str) -> str:
    """Reads the story word by word: a number counts for the next thing of the vocabulary."""
    story, question = prompt.split("\n\n")
    asked = re.match(r"(?:How many|Count the|What is the total number of) ([a-z, ]+?)(?: are|[.?])", question)
    assert asked is not None, question
    names = re.split(r", | and ", asked[1])
    wanted = {noun for name in names for thing in GROUPS[name] for noun in thing}
    singular = {one for things in GROUPS.values() for one, _ in things}
    known = singular | {several for things in GROUPS.values() for _, several in things}
    total, pending = 0, None
    for word in re.findall(r"[a-z-]+", story):
        count = number_of(word)
        if count is not None:
            pending = count
        elif word in known:
            assert pending is not None, word
            assert (pending == 1) == (word in singular), word
            total += pending * (word in wanted)
            pending = None
    return str(total)


def solve_sort(prompt: str) -> str:
    """Takes the first word of the rest, again and again."""
    words = re.findall("[A-Za-z]+", prompt.split("\n\n")[1])
    ordered = []
    while words:
        lowest = min(words, key=lambda word: word.casefold())
        words.remove(lowest)
        ordered.append(lowest)
    return ", ".join(ordered)


def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


KINDS: dict[str, list[Callable[[int], int]]] = {
    "every step adds the same number": [lambda _: 1, lambda n: n],
    "the steps themselves grow by the same number each time": [lambda _: 1, lambda n: n, lambda n: n * n],
    "each term is twice the term before plus a fixed number": [lambda _: 1, lambda n: 2**n],
    "each term is the sum of the two terms before it": [fibonacci, lambda n: fibonacci(n + 1)],
}
"""Each main rule as the prompt words it -> sequences whose multiples it adds up."""


def every(period: int) -> Callable[[int], int]:
    return lambda n: int(n % period == 0)


def weights_of(basis: list[Callable[[int], int]], terms: list[int]) -> list[int] | None:
    """Multiples of the basis that give the terms, modulo the prime; None if there are none."""
    rows = [[f(n) for f in basis] + [term] for n, term in enumerate(terms, 1)]
    for column in range(len(basis)):
        pivot = next(i for i in range(column, len(rows)) if rows[i][column] % PRIME)  # else not unique
        rows[column], rows[pivot] = rows[pivot], rows[column]
        inverse = pow(rows[column][column], -1, PRIME)
        rows[column] = [value * inverse % PRIME for value in rows[column]]
        for i, row in enumerate(rows):
            if i != column and row[column]:
                factor = row[column]
                rows[i] = [(a - factor * b) % PRIME for a, b in zip(row, rows[column], strict=True)]
    if any(row[-1] % PRIME for row in rows[len(basis) :]):
        return None
    return [row[-1] for row in rows[: len(basis)]]


def solve_sequence(prompt: str) -> str:
    """Fits each of the main rules named, with the additions named; all that fit must go on alike."""
    shown, told = prompt.split("\n\n")[1:]
    terms = [int(term) for term in shown.removesuffix(", ...").split(", ")]
    asked = re.search(r"Which (?:(\d+) terms come|term comes) next\?", told)
    assert asked is not None, told
    periods = [int(period) for period in re.findall(r"every (\d)\w\w term", told)]
    found = set()
    for kind, basis in KINDS.items():
        assert kind in told
        functions = basis + [every(period) for period in periods]
        weights = weights_of(functions, terms)
        if weights is None:
            continue
        places = range(len(terms) + 1, len(terms) + 1 + int(asked[1] or 1))
        values = [sum(w * f(n) for w, f in zip(weights, functions, strict=True)) % PRIME for n in places]
        found.add(tuple(value - PRIME if value > PRIME // 2 else value for value in values))
    (answer,) = found
    return ", ".join(map(str, answer))


LIST_SOLVERS: dict[str, Callable[[str], str]] = {
    "brackets": solve_brackets,
    "objects": solve_objects,
    "sequence": solve_sequence,
    "sort": solve_sort,
}
