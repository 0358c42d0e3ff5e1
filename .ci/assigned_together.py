"""What griffe does not read: names that are assigned together, as in `YES, NO = "yes", "no"`."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import griffe


class AssignedTogether(griffe.Extension):
    """Adds each public name with its value; they share the docstring below."""

    def on_module_members(self, *, node: Any, mod: griffe.Module, **_: object) -> None:
        """Add the names of a module that was read from its source."""
        for statement, below in pairwise([*node.body, ast.Pass()]):
            for name, value in _pairs(statement):
                if not name.startswith("_"):
                    mod.set_member(name, _attribute(name, value, statement, below))


def _pairs(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match statement:
        case ast.Assign(targets=[ast.Tuple(names)], value=value):
            values = value.elts if isinstance(value, ast.Tuple) else [value] * len(names)
            yield from zip(map(ast.unparse, names), values, strict=True)


def _attribute(
    name: str, value: ast.expr, statement: ast.stmt, below: ast.stmt
) -> griffe.Attribute:
    made = griffe.Attribute(
        name, value=ast.unparse(value), lineno=statement.lineno, endlineno=statement.end_lineno
    )
    made.labels.add("module-attribute")
    match below:
        case ast.Expr(ast.Constant(str(text))):
            made.docstring = griffe.Docstring(text, parent=made, lineno=below.lineno)
    return made
