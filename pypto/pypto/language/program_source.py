"""The source of a function that ``pl.function`` or ``pl.inline`` decorates: its text and names."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from types import FrameType, FunctionType, MappingProxyType

from pypto.ir.external import ExternalKernel
from pypto.ir.nodes import NO_ATTRS, AttrValue, FunctionKind
from pypto.language.source import FunctionSource

# A line that lets an indented definition be parsed with its indentation, so that columns stay.
_BLOCK = "if 1:"


def read_source(
    function: FunctionType,
    kind: FunctionKind,
    *,
    scopes: Mapping[str, object],
    method: bool,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external: ExternalKernel | None = None,
    attrs: Mapping[str, AttrValue] = NO_ATTRS,
) -> FunctionSource:
    """What the parser needs of a decorated function.

    ``scopes`` are the names that the places around the decorator give, as ``enclosing_names`` finds
    them. A ``method`` has its first parameter, ``self``, taken off.

    Raises OSError, naming the function, where its text cannot be found.
    """
    try:
        found, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise OSError(
            f"the source of kernel {function.__name__!r} is not available: "
            f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}; define kernels "
            "in a file, or give their text to pl.parse"
        ) from error
    lines = tuple(line.rstrip("\n") for line in found)
    if lines[0][:1].isspace():
        lines = (_BLOCK, *lines)
        first -= 1
    tree = _definition(function, lines)
    if method:
        _without_self(tree)
    return FunctionSource(
        name=function.__name__,
        unit=f"{function.__module__}:{function.__qualname__}",
        kind=kind,
        tree_of=lambda: tree,
        file=function.__code__.co_filename or f"<jit:{function.__name__}>",
        first_line=first + tree.lineno - 1,
        namespace=MappingProxyType(_namespace(function, scopes)),
        lines=lines,
        auto_scope=auto_scope,
        strict_ssa=strict_ssa,
        declared=True,
        external=external,
        attrs=attrs,
    )


def _definition(function: FunctionType, lines: tuple[str, ...]) -> ast.FunctionDef:
    try:
        body = ast.parse("\n".join(lines) + "\n").body
    except SyntaxError:
        # A string that reaches further left than its function: columns move, the rest is right.
        body = ast.parse(textwrap.dedent("\n".join(lines[1:])) + "\n").body
    if lines[0] == _BLOCK and isinstance(body[0], ast.If):
        body = body[0].body
    tree = body[0]
    if not isinstance(tree, ast.FunctionDef) or tree.name != function.__name__:
        raise OSError(
            f"the source of kernel {function.__name__!r} changed since import: "
            f"{function.__code__.co_filename}:{function.__code__.co_firstlineno} holds another text"
        )
    return tree


def _without_self(tree: ast.FunctionDef) -> None:
    arguments = tree.args
    first = arguments.posonlyargs or arguments.args
    del first[0]


def _namespace(function: FunctionType, scopes: Mapping[str, object]) -> dict[str, object]:
    names: dict[str, object] = {**vars(builtins), **function.__globals__, **scopes}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # assigned later than the decorator runs
            names.pop(name, None)
    return names


def enclosing_names(frame: FrameType) -> Mapping[str, object]:
    """What is visible where a decorator runs, globals aside: annotations use it uncaptured."""
    names: dict[str, object] = {}
    for scope in reversed(list(_scopes(frame))):
        names.update(scope)
    return names


def _scopes(frame: FrameType) -> Iterator[Mapping[str, object]]:
    """The innermost first: classes being defined, and the function around them."""
    current: FrameType | None = frame
    while current is not None and current.f_locals is not current.f_globals:
        yield current.f_locals
        if not in_class_body(current):
            return
        current = current.f_back


def in_class_body(frame: FrameType) -> bool:
    """Whether the code of a frame is the body of a class."""
    names = frame.f_locals
    return names is not frame.f_globals and "__module__" in names and "__qualname__" in names
