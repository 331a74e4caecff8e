"""Jinja's sandbox with every filter, test, operator and call counted against the budget of the rendering."""
# ruff: noqa: ANN401 - a template's values may be anything

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jinja2
from jinja2 import runtime
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter, safe_range
from markupsafe import Markup, escape

from evalcube.flows.config.jinja import growth
from evalcube.flows.config.jinja.budget import BUDGET, CALL, LARGEST_OUTPUT, SCALAR, SHORTEN, Budget
from evalcube.flows.errors import TemplateError

MOST_BITS = 4096
"""Of a whole number that a template computes."""
OPERATIONS_OF_CALL = 10
"""What a call takes beside the body of what it calls."""
_PARTS_OF_JINJA = (runtime.Macro, runtime.LoopContext, runtime.BlockReference, runtime.Undefined)
_EAGER = frozenset({"groupby", "join", "list", "max", "min", "slice", "sort", "sum"})
"""Filters that read all items at once."""


class Formatter(SandboxedFormatter):
    """`str.format` with each field measured before it is made."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """One field: all numbers in its format are widths."""
        budget = BUDGET.get()
        budget.step()
        digits = "".join(sign if sign.isdecimal() else " " for sign in format_spec).split()
        width = sum(int(run) if len(run) < 10 else 10**10 for run in digits)
        budget.require(4 * width + growth.ESCAPED * budget.size(value))
        text = str(super().format_field(value, format_spec))
        budget.spend(budget.size(text))
        return text

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """A value with !r, !s or !a."""
        budget = BUDGET.get()
        budget.spend(growth.ESCAPED * budget.size(value))
        return super().convert_field(value, conversion)


class Format:
    """The method `format` or `format_map` of a text."""

    def __init__(self, environment: jinja2.Environment, text: str, name: str) -> None:
        self._environment = environment
        self._text = text
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        """The text with its fields filled in."""
        given: tuple[Any, ...] = args
        if self._name == "format_map":
            if len(given) != 1 or kwargs:
                raise TypeError("format_map() takes exactly one argument")
            kwargs, given = given[0], ()
        text = str(self._text)
        if isinstance(self._text, Markup):
            # a safe text escapes what is put into it
            given = tuple(map(_escaped, given))
            kwargs = {name: _escaped(value) for name, value in kwargs.items()}
            return type(self._text)(Formatter(self._environment).vformat(text, given, kwargs))
        return Formatter(self._environment).vformat(text, given, kwargs)


def _escaped(value: Any) -> Any:
    return escape(value) if isinstance(value, str) else value


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with its calls and operators bounded."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """The bounded method, where a template reads `format` of a text."""
        if super().wrap_str_format(value) is None:
            return None
        return Format(self, value.__self__, value.__name__)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """An item; a tuple is measured first, as its hash goes through all that is in it."""
        if isinstance(argument, tuple):
            growth.size(argument)
        return super().getitem(obj, argument)

    def call(self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """What a call returns, if it is of a macro, a loop or one of the methods of `growth.METHODS`."""
        budget = BUDGET.get()
        # every call counts as a step: macros can call themselves
        budget.step()
        budget.run(OPERATIONS_OF_CALL)
        owner = getattr(__obj, "__self__", None)
        if (
            isinstance(__obj, (*_PARTS_OF_JINJA, Format))
            or __obj is safe_range
            or isinstance(owner, runtime.LoopContext)
        ):
            budget.spend(growth.size(*args, **kwargs))
            if isinstance(__obj, runtime.LoopContext) and args:
                args = (budget.counted(args[0]), *args[1:])
        else:
            cost = _method_cost(owner, getattr(__obj, "__name__", ""))
            if cost is None:
                raise TemplateError(
                    "calls a function that templates do not have",
                    "Use the filters and methods of texts that Jinja names",
                )
            args = tuple(_whole(arg) for arg in args)
            _pay(budget, cost(owner, *args, **kwargs), isinstance(owner, Markup))
        return _made(budget, super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002
        """What an operator makes."""
        return binop(operator, left, right)


def binop(operator: str, left: Any, right: Any) -> Any:
    """What an operator makes of two values, within the budget.

    Raises
    ------
    TemplateError
        If it were too large.
    """
    budget = BUDGET.get()
    if operator == "**" and not (abs(left) <= 10**6 and abs(right) <= 64):
        raise TemplateError("a power in the template is too large", "Use a base up to 10^6, exponents to 64")
    if operator == "*":
        _refuse_repetition(budget, left, right)
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        _refuse_large(left, right)
        budget.spend(SCALAR)
    elif operator == "%":
        arguments = right if isinstance(right, tuple) else (right,)
        _pay(budget, growth.format_percent(left, *arguments), isinstance(left, Markup))
    else:
        _pay(budget, growth.size(left, right), isinstance(left, Markup) or isinstance(right, Markup))
    made = Sandbox.default_binop_table[operator](left, right)
    _refuse_large(made)
    return _made(budget, made)


def _refuse_repetition(budget: Budget, left: Any, right: Any) -> None:
    for text, times in ((left, right), (right, left)):
        if isinstance(text, Sequence) and isinstance(times, int):
            if len(text) * times > LARGEST_OUTPUT:
                raise TemplateError("a repetition in the template is too long", SHORTEN)
            budget.require((budget.size(text) - SCALAR) * times)


def _refuse_large(*values: Any) -> None:
    for value in values:
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise TemplateError("a number in the template is too large", "Use smaller numbers")


def _method_cost(owner: object, name: str) -> growth.Cost | None:
    for kind, costs in growth.METHODS.items():
        if isinstance(owner, kind) or (kind is dict and isinstance(owner, Mapping)):
            return costs.get(name)
    return None


def _whole(value: Any) -> Any:
    """A list in place of items that are not made yet, so that they can be measured."""
    return list(value) if isinstance(value, Iterator) else value


def _pay(budget: Budget, cost: float, escapes: bool) -> None:
    # what may be made is only looked at; what is made is paid for when it is there
    budget.require(cost * growth.ESCAPED if escapes else cost)
    budget.spend(cost)


def _made(budget: Budget, value: Any) -> Any:
    """What was made, paid for; items that are made later pay then."""
    if isinstance(value, Iterator):
        return budget.counted(value)
    budget.spend(budget.size(value))
    return value


def _bounded(name: str, function: Callable[..., Any], cost: growth.Cost) -> Callable[..., Any]:
    """A filter or test within the budget. It takes the context, so that Jinja does not run it while compiling."""
    passes = getattr(getattr(function, "jinja_pass_arg", None), "name", "")

    @jinja2.pass_context
    def run(context: Any, *args: Any, **kwargs: Any) -> Any:
        budget = BUDGET.get()
        if name in _EAGER and args:
            args = (_whole(args[0]), *args[1:])
        marked = context.eval_ctx.autoescape or any(isinstance(arg, Markup) for arg in args)
        _pay(budget, CALL + cost(*args, **kwargs), marked)
        first = {
            "context": (context,),
            "eval_context": (context.eval_ctx,),
            "environment": (context.environment,),
        }.get(passes, ())
        return _made(budget, function(*first, *args, **kwargs))

    return run


def _unique(
    environment: Any, value: Any, case_sensitive: bool = False, attribute: Any = None
) -> Iterator[Any]:
    """Jinja's filter; numbers can be chosen so that each is compared with all before it."""
    budget = BUDGET.get()

    def slower() -> Iterator[Any]:
        for seen, item in enumerate(value):
            budget.spend(seen)
            yield item

    return iter(_JINJA.filters["unique"](environment, slower(), case_sensitive, attribute))


@jinja2.pass_context
def counted(_context: Any, items: Any, nodes: int) -> Iterator[Any]:
    """What a loop goes through, each item one step, and the work of as many nodes as its body has."""
    budget = BUDGET.get()
    for item in items:
        budget.step()
        budget.run(nodes)
        yield item


@jinja2.pass_context
def turned(_context: Any, nodes: int) -> None:
    """Pay for the nodes of the body of a macro or block."""
    BUDGET.get().run(nodes)


@jinja2.pass_context
def tested(_context: Any, value: Any, nodes: int) -> Any:
    """Whether a loop takes an item, with the nodes of the test paid for."""
    BUDGET.get().run(nodes)
    return value


@jinja2.pass_context
def shown(context: Any, value: Any) -> Any:
    """A value as a text that is printed, paid for: what macros and blocks print adds up before anyone sees it."""
    budget = BUDGET.get()
    if not isinstance(value, str):
        if not isinstance(value, (int, float, runtime.Undefined)):
            budget.require(growth.ESCAPED * budget.size(value))
        value = str(value)
    budget.spend((growth.ESCAPED if context.eval_ctx.autoescape else 1) * budget.size(value))
    return value


@jinja2.pass_context
def seen(_context: Any, value: Any) -> Any:
    """A value that is compared, hashed or was cut out of another."""
    budget = BUDGET.get()
    budget.spend(budget.size(value))
    return value


@jinja2.pass_context
def concatenated(context: Any, *values: Any) -> Any:
    """What the operator ~ makes."""
    budget = BUDGET.get()
    _pay(budget, growth.ESCAPED * budget.size(values) if _nested(values) else budget.size(values), False)
    if context.eval_ctx.autoescape:
        budget.require(growth.ESCAPED * budget.size(values))
        return _made(budget, runtime.markup_join(values))
    return _made(budget, runtime.str_join(values))


def _nested(values: Sequence[object]) -> bool:
    return not all(isinstance(value, (str, int, float)) for value in values)


def bounded_environment() -> Sandbox:
    """An environment in which every operation is counted."""
    environment = Sandbox(
        undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True, optimized=False
    )
    environment.globals.clear()
    environment.globals["range"] = safe_range
    filters = {**environment.filters, "unique": jinja2.pass_environment(_unique)}
    for name, function in filters.items():
        environment.filters[name] = _bounded(name, function, growth.FILTERS.get(name, growth.rate(2)))
    tests: dict[str, Any] = {
        **environment.tests,
        "divisibleby": lambda value, num: binop("%", value, num) == 0,
        "even": lambda value: binop("%", value, 2) == 0,
        "odd": lambda value: binop("%", value, 2) == 1,
    }
    for name, function in tests.items():
        environment.tests[name] = _bounded(name, function, growth.rate(growth.ESCAPED))
    for function in (counted, turned, tested, shown, seen, concatenated):
        environment.filters[internal(function)] = function
    return environment


def internal(function: Callable[..., Any]) -> str:
    """The name of a filter that no template can write, and `guard` puts into its tree."""
    return f" {function.__name__}"


_JINJA = jinja2.Environment(autoescape=False)  # noqa: S701 - only its filters are used
