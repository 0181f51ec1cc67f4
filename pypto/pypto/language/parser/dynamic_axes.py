"""Which axes of a function's parameters are known only when it runs.

Three things make an axis dynamic: a ``pl.dynamic`` in the annotation, a ``bind_dynamic`` statement
in the body, and a call of a kernel function that has a dynamic axis there, if the annotation
leaves the shape open.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pypto.ir.nodes import DynDim, TensorType
from pypto.ir.typing_rules import is_whole
from pypto.language import markers
from pypto.language.parser.diagnostics.exceptions import ParserError, ParserTypeError
from pypto.language.parser.expressions import static_value
from pypto.language.parser.signature import annotation_frame, read_signature
from pypto.language.parser.values import show_value
from pypto.language.source import FunctionSource, ParamAnnotation, ParamCategory

# For each parameter, the symbols of its dynamic axes.
Axes = dict[str, dict[int, str]]


def dynamic_axes(source: FunctionSource) -> Mapping[str, Mapping[int, str]]:
    """The axes that the body makes dynamic, by its own statements or by what it calls.

    Those that annotations make dynamic are not among them. Raises a :class:`ParserError` for a
    ``bind_dynamic`` statement that means nothing.
    """
    return _axes(source, {})


def _axes(source: FunctionSource, known: dict[FunctionSource, Axes | None]) -> Axes:
    """`dynamic_axes`; `known` has each function's axes, None while they are being looked for."""
    known[source] = None
    found = _cascaded(source, known)
    for name, axes in _bound(source).items():
        found.setdefault(name, {}).update(axes)
    known[source] = found
    return found


def _bound(source: FunctionSource) -> Axes:
    """What ``param.bind_dynamic(axis, M)`` statements say."""
    found: Axes = {}
    frame = annotation_frame(source)
    for statement in source.tree.body:
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="bind_dynamic"),
                    args=[axis_node, extent_node],
                    keywords=[],
                )
            ):
                axis = static_value(frame, axis_node, "an axis")
                extent = static_value(frame, extent_node, "an extent")
                if not is_whole(axis) or axis < 0:
                    raise frame.error(
                        ParserTypeError, axis_node, f"an axis is an int from 0, not {axis!r}"
                    )
                if not isinstance(extent, markers.DynVar):
                    raise frame.error(
                        ParserTypeError,
                        extent_node,
                        f"bind_dynamic takes a pl.dynamic, not {show_value(extent)}",
                    )
                found.setdefault(name, {})[axis] = extent.name
    return found


def _cascaded(source: FunctionSource, known: dict[FunctionSource, Axes | None]) -> Axes:
    """What calls of kernel functions say of parameters whose shape is left open."""
    try:
        own = {param.name for param in read_signature(source) if _is_open(param)}
    except ParserError:
        return {}  # to be reported by whoever parses the function
    if not own:
        return {}
    own -= _replaced(source)
    groups = _Groups()
    for node in ast.walk(source.tree):
        callee = _callee(source, node)
        if callee is None:
            continue
        try:
            params = read_signature(callee)
            inner = known[callee] if callee in known else _axes(callee, known)
        except ParserError:
            continue
        if inner is None:
            continue  # it calls itself, which whoever parses it reports
        # One symbol is one extent within a call, and another one at the next call.
        first: dict[str, _Axis] = {}
        for param, name in _arguments(node, params):
            if name in own:
                for axis, symbol in _all_axes(param, inner).items():
                    groups.join(first.setdefault(symbol, (name, axis)), (name, axis), symbol)
    return groups.named()


_Axis = tuple[str, int]


class _Groups:
    """Axes of parameters that have one extent, each group with a symbol of its own."""

    def __init__(self) -> None:
        self._first: dict[_Axis, _Axis] = {}
        self._symbols: dict[_Axis, str] = {}

    def _root(self, axis: _Axis) -> _Axis:
        while self._first.setdefault(axis, axis) != axis:
            axis = self._first[axis]
        return axis

    def join(self, one: _Axis, other: _Axis, symbol: str) -> None:
        root = self._root(one)
        self._first[self._root(other)] = root
        self._symbols.setdefault(root, symbol)

    def named(self) -> Axes:
        names: dict[_Axis, str] = {}
        found: Axes = {}
        for axis in self._first:
            root = self._root(axis)
            if root not in names:
                # No identifier: what is passed for it is compared at run time.
                symbol, _, _ = self._symbols[root].partition("$")
                names[root] = f"{symbol}${len(names)}"
            found.setdefault(axis[0], {})[axis[1]] = names[root]
        return found


def _is_open(param: ParamAnnotation) -> bool:
    tensor = param.category in (ParamCategory.TENSOR, ParamCategory.UNANNOTATED)
    return tensor and param.type is None


def _replaced(source: FunctionSource) -> frozenset[str]:
    """Names that the body binds to something else than what a call gives back.

    ``c = kernel(a, c)`` names the same tensor afterwards.
    """
    return frozenset(
        target.id
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _callee(source: FunctionSource, node: ast.AST) -> FunctionSource | None:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    callee = source.namespace.get(node.func.id)
    return callee if isinstance(callee, FunctionSource) else None


def _arguments(
    node: ast.AST, params: tuple[ParamAnnotation, ...]
) -> Iterator[tuple[ParamAnnotation, str]]:
    """Each parameter that is given a plain name."""
    assert isinstance(node, ast.Call)
    by_name = {param.name: param for param in params}
    for param, value in zip(params, node.args, strict=False):
        if isinstance(value, ast.Name):
            yield param, value.id
    for keyword in node.keywords:
        if keyword.arg in by_name and isinstance(keyword.value, ast.Name):
            yield by_name[keyword.arg], keyword.value.id


def _all_axes(param: ParamAnnotation, inner: Axes) -> dict[int, str]:
    axes = dict(inner.get(param.name, {}))
    if isinstance(param.type, TensorType):
        for axis, dim in enumerate(param.type.shape):
            if isinstance(dim, DynDim):
                axes.setdefault(axis, dim.symbol)
    return axes
