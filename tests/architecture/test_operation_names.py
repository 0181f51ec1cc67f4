"""What the table says of an operation is said nowhere else: no module keeps a list of operations.

A module may have a function for an operation, by a ``match``, a comparison or a dictionary from
operations to functions. A set or a tuple of them, or a dictionary with something else about each,
is a column that the table lacks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pypto
import pytest
from pypto.ir.ops import OPS

PACKAGE = Path(pypto.__file__).parent
# A row may name others, as where one joins the parts of another.
MODULES = sorted(
    path
    for layer in ("ir", "language", "codegen")
    for path in (PACKAGE / layer).rglob("*.py")
    if not path.stem.endswith("_rows")
)


def lists_of_operations(tree: ast.AST) -> Iterator[int]:
    """The lines on which a display says something of two or more operations."""
    for node in ast.walk(tree):
        match node:
            case ast.Set() | ast.Tuple() | ast.List():
                if sum(_names_operation(item) for item in node.elts) > 1:
                    yield node.lineno
            case ast.Dict():
                data = [
                    key
                    for key, value in zip(node.keys, node.values, strict=True)
                    if key is not None and _names_operation(key) and not _is_function(value)
                ]
                if len(data) > 1:
                    yield node.lineno
            case _:
                pass


def _names_operation(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in OPS


def _is_function(node: ast.AST) -> bool:
    """Whether a value is a function, or what a call makes of one, by the way it is written."""
    match node:
        case ast.Attribute():
            return node.attr.islower()
        case ast.Name():
            return not node.id.isupper()
        case _:
            return isinstance(node, ast.Lambda | ast.Call)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_beside_the_rows_lists_operations(path: Path) -> None:
    lines = list(lists_of_operations(ast.parse(path.read_text(encoding="utf-8"))))
    assert not lines, f"{path.name}:{lines[0]} lists operations: make it a column of the table"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('_KEPT = {"tile.load", "tile.store"}', True),
        ('op.op in ("tile.load", "tile.store")', True),
        ('{"tile.load": 0, "tile.store": -1}', True),
        ('{"tile.load": Space.Left, "tile.store": Space.Right}', True),
        ('{"tile.load": _load, "tile.store": _store}', False),
        ('{"scalar.add": operator.add, "scalar.sub": operator.sub}', False),
        ('op.op == "tile.load"', False),
        ('("tile.load", "rows")', False),
    ],
)
def test_a_list_of_operations_is_seen(text: str, found: bool) -> None:
    assert bool(list(lists_of_operations(ast.parse(text)))) is found
