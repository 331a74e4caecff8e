"""Independent solvers: the prompt text in, the answer out; they share no code with the generators."""

from __future__ import annotations

import re
from collections.abc import Callable

TRUTH_WORDS = {"True": "False", "T": "F", "on": "off", "1": "0", "yes": "no"}


STRENGTH = {"+": 1, "-": 1, "*": 2, "neg": 3}


def apply(operator: str, numbers: list[int]) -> None:
    """Replace the operands on top of the stack by the operator's result."""
    right = numbers.pop()
    if operator == "neg":
        numbers.append(-right)
        return
    left = numbers.pop()
    numbers.append({"+": left + right, "-": left - right, "*": left * right}[operator])


def solve_arithmetic(prompt: str) -> str:
    """Shunting-yard on the one line that is an expression."""
    (line,) = [line for line in prompt.splitlines() if re.fullmatch(r"[-+*() 0-9]+", line)]
    numbers: list[int] = []
    pending: list[str] = []
    previous = "("
    for token in re.findall(r"\d+|[-+*()]", f"({line})"):
        if token.isdigit():
            numbers.append(int(token))
        elif token == "(":
            pending.append(token)
        elif token == ")":
            while (operator := pending.pop()) != "(":
                apply(operator, numbers)
        elif previous in "(+-*":
            assert token == "-", line
            pending.append("neg")
        else:
            while STRENGTH.get(pending[-1], 0) >= STRENGTH[token]:
                apply(pending.pop(), numbers)
            pending.append(token)
        previous = token
    (value,) = numbers
    return str(value)


def solve_boolean(prompt: str) -> str:
    """Recursive descent, one function per strength; the two words are read from the prompt."""
    expression = prompt.split("\n\n")[1]
    true, false = re.search(r"Answer: <(\w+) or (\w+)>", prompt).groups()  # type: ignore[union-attr]
    assert TRUTH_WORDS[true] == false
    tokens = re.findall(r"\w+|[()]", expression)
    assert re.sub(r"\s", "", expression) == "".join(tokens)

    def either() -> bool:
        value = odd()
        while tokens and tokens[0] == "or":
            tokens.pop(0)
            value |= odd()
        return value

    def odd() -> bool:
        value = both()
        while tokens and tokens[0] == "xor":
            tokens.pop(0)
            value ^= both()
        return value

    def both() -> bool:
        value = unary()
        while tokens and tokens[0] == "and":
            tokens.pop(0)
            value &= unary()
        return value

    def unary() -> bool:
        token = tokens.pop(0)
        if token == "not":
            return not unary()
        if token == "(":
            value = either()
            assert tokens.pop(0) == ")"
            return value
        assert token in {true, false}, token
        return token == true

    value = either()
    assert not tokens
    return str(value).lower()


def solve_letters(prompt: str) -> str:
    question, words = prompt.split("\n\n")[:2]
    letters = set(re.findall(r'"([a-z])"', question))
    assert letters
    return str(len(re.findall(f"[{''.join(letters)}]", words)))


def solve_shuffle(prompt: str) -> str:
    """Plays the story: only sentences that say so change who holds what."""
    first, *rest = prompt.splitlines()
    holding = dict(re.findall(r"([A-Z]\w+) has an? (\w+)", first))
    asked = None
    for line in rest:
        swap = re.search(
            r"(?:^| )([A-Z]\w+) (?:and|swaps with|exchanges items with) ([A-Z]\w+)(?: swap| trade|\.)", line
        )
        if swap:
            a, b = swap.groups()
            holding[a], holding[b] = holding[b], holding[a]
        question = re.search(r"(?:does|is) ([A-Z]\w+) (?:hold|have|holding)\b[^?]*\?", line)
        if question:
            asked = question[1]
    assert asked is not None
    return str(holding[asked])


def solve_haystack(prompt: str) -> str:
    _, text, question = prompt.split("\n\n")
    adjective, item, owner = re.findall(r"the (\w+) (\w+) of (\w+)", question)[0]
    (box,) = re.findall(rf"The {adjective} {item} of {owner} is kept in box (\d+)\.", text)
    return str(box)


SOLVERS: dict[str, Callable[[str], str]] = {
    "arithmetic": solve_arithmetic,
    "boolean": solve_boolean,
    "haystack": solve_haystack,
    "letters": solve_letters,
    "shuffle": solve_shuffle,
}
