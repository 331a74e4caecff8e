"""What a template's tree needs before it is run: nothing where it is plain, else counters in all its parts."""
# ruff: noqa: N802, N815 - Jinja's visitor calls methods by the names of nodes

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from evalcube.flows.config.jinja import sandbox

_Body = TypeVar("_Body", nodes.Macro, nodes.Block, nodes.CallBlock)

_PLAIN = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Const,
    nodes.Name,
    nodes.Getattr,
    nodes.If,
    nodes.CondExpr,
    nodes.Concat,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Test,
    nodes.Filter,
)
"""Parts that do no more than read the variables and print them."""
_PLAIN_FILTERS = frozenset({"capitalize", "int", "length", "lower", "string", "tojson", "trim", "upper"})
_PLAIN_TESTS = frozenset({"defined", "none", "undefined", "string", "number", "mapping", "true", "false"})
_MOST_PLAIN = 8
"""Filters, comparisons and joined parts in a plain text: each one reads a variable once."""


def is_plain(tree: nodes.Template) -> bool:
    """Whether rendering takes no longer than reading the variables a few times, so that nothing need be counted."""
    work = 0
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, _PLAIN):
            return False
        if isinstance(node, nodes.Test) and (node.name not in _PLAIN_TESTS or node.args or node.kwargs):
            return False
        if isinstance(node, nodes.Filter) and not _is_plain_filter(node):
            return False
        work += isinstance(node, (nodes.Filter, nodes.Compare))
        work += len(node.nodes) if isinstance(node, nodes.Concat) else 0
    return work <= _MOST_PLAIN


def _is_plain_filter(node: nodes.Filter) -> bool:
    """Without arguments, and not of what another filter made: quotes of quotes of quotes double each time."""
    inner = node.node
    if isinstance(inner, nodes.Filter) and inner.name == "trim":
        inner = inner.node
    given = node.args or node.kwargs or node.dyn_args or node.dyn_kwargs
    return node.name in _PLAIN_FILTERS and not given and isinstance(inner, (nodes.Name, nodes.Getattr))


def guard(tree: nodes.Template) -> nodes.Template:
    """The tree with counters in all parts that Jinja's sandbox does not see."""
    guarded: nodes.Template = _Guard().visit(tree)
    return guarded


class _Guard(NodeTransformer):
    """Puts the filters of `sandbox` where work is done."""

    def visit_Output(self, node: nodes.Output) -> nodes.Output:
        """Print through `shown`."""
        self.generic_visit(node)
        node.nodes = [
            _through(sandbox.shown, nodes.Const(part.data, lineno=part.lineno))
            if isinstance(part, nodes.TemplateData)
            else _through(sandbox.shown, part)
            for part in node.nodes
        ]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        """Join through `concatenated`."""
        self.generic_visit(node)
        first, *rest = node.nodes
        return _through(sandbox.concatenated, first, *rest)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        """Compare what was measured."""
        self.generic_visit(node)
        node.expr = _measured(node.expr)
        for operand in node.ops:
            operand.expr = _measured(operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        """Measure what was cut out."""
        self.generic_visit(node)
        return _measured(node) if isinstance(node.arg, nodes.Slice) else node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Pair:
        """Measure keys, which are hashed."""
        self.generic_visit(node)
        node.key = _measured(node.key)
        return node

    def visit_For(self, node: nodes.For) -> nodes.For:
        """Count the items. A loop that calls itself gives new ones, which `Sandbox.call` counts."""
        size = nodes.Const(_nodes(node), lineno=node.lineno)
        self.generic_visit(node)
        node.iter = _through(sandbox.counted, node.iter, size)
        if node.recursive:
            node.body = [nodes.ExprStmt(_through(sandbox.turned, size), lineno=node.lineno), *node.body]
            if node.test is not None:
                node.test = _through(sandbox.tested, node.test, size)
        return node

    def visit_Macro(self, node: _Body) -> _Body:
        """Count the body each time it is run."""
        size = _nodes(node)
        self.generic_visit(node)
        turn = _through(sandbox.turned, nodes.Const(size, lineno=node.lineno))
        node.body = [nodes.ExprStmt(turn, lineno=node.lineno), *node.body]
        return node

    visit_Block = visit_Macro
    visit_CallBlock = visit_Macro


def _measured(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _through(sandbox.seen, node)


def _through(function: Callable[..., Any], node: nodes.Node, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, sandbox.internal(function), list(args), [], None, None, lineno=node.lineno)


def _nodes(node: nodes.Node) -> int:
    return sum(1 for _ in node.find_all(nodes.Node))
