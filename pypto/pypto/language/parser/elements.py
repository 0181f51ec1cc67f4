"""Single elements of tensors and tiles: ``pl.read``, ``pl.write``, ``x[i, j]`` and ``x[i] = s``."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pypto.ir.nodes import Operand, TensorType, TileType, Var
from pypto.ir.typing_rules import show_type
from pypto.language import functions as pl
from pypto.language.parser.diagnostics.exceptions import InvalidOperationError
from pypto.language.parser.frame import Frame
from pypto.language.parser.scalars import coerce, index_operand, scalar_operand
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.values import Value, is_scalar, is_tensor, show_value


def read_element(
    frame: Frame, container: Var, indices: Sequence[Operand], node: ast.AST, hint: str = ""
) -> Var:
    """One element as a scalar."""
    family = _family(frame, container, node)
    return frame.emit(f"{family}.read", [container, *indices], node, hint=hint)


def write_element(
    frame: Frame,
    container: Var,
    indices: Sequence[Operand],
    value: Value,
    node: ast.AST,
    target: ast.AST | None,
) -> Var:
    """One element takes a value; the name that ``target`` is stands for the result afterwards."""
    assert isinstance(container.type, TensorType | TileType)
    family = _family(frame, container, node)
    what = f"the value for an element of a {show_type(container.type)}"
    scalar = scalar_operand(frame, value, node, what)
    element = coerce(frame, scalar, container.type.dtype, node, what)
    hint = container.name
    result = frame.emit(f"{family}.write", [container, *indices, element], node, hint=hint)
    if family == "tensor":
        frame.values.record_write(result, container)
    if isinstance(target, ast.Name):
        frame.env[target.id] = result
    return result


def _family(frame: Frame, container: Var, node: ast.AST) -> str:
    if is_tensor(container):
        return "tensor"
    if not frame.on_core:
        raise frame.error(
            InvalidOperationError, node, "the elements of a tile can be used on a core only"
        )
    return "tile"


def element_indices(frame: Frame, indices: Value, node: ast.AST, what: str) -> list[Operand]:
    """The indices of one element: a list, or one index by itself."""
    items = tuple(indices) if isinstance(indices, list | tuple) else (indices,)
    return [
        index_operand(frame, item, node, f"{what}: index {axis}") for axis, item in enumerate(items)
    ]


def _read(site: CallSite) -> Value:
    container = site.shaped("x")
    indices = element_indices(site.frame, site.values["offsets"], site.at("offsets"), site.name)
    return read_element(site.frame, container, indices, site.node, site.hint)


def _write(site: CallSite) -> Value:
    container = site.shaped("x")
    indices = element_indices(site.frame, site.values["offsets"], site.at("offsets"), site.name)
    value = site.values["value"]
    if not is_scalar(value):
        raise site.wrong("value", f"value must be a number or a scalar, not {show_value(value)}")
    # A name that is bound once keeps its value where the result has a name of its own.
    kept = site.frame.source.strict_ssa and bool(site.hint)
    target = None if kept else site.at("x")
    return write_element(site.frame, container, indices, value, site.node, target)


ELEMENTS: Mapping[object, Handler] = MappingProxyType(
    {
        pl.read: _read,
        pl.write: _write,
    }
)
