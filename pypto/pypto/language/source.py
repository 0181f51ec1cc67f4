"""What the parser is given: a function's syntax tree and a snapshot of the names it uses."""

from __future__ import annotations

import abc
import ast
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pypto.ir.external import ExternalKernel
from pypto.ir.nodes import (
    NO_ATTRS,
    AttrValue,
    Direction,
    FunctionKind,
    ScalarType,
    Span,
    TensorType,
)

# The kinds of values that may stand for a name at compile time; lists and tuples of them too.
Static = object


@dataclass(frozen=True, slots=True, eq=False)
class CapturedAttributes:
    """Attributes of the user's objects as a snapshot saw them.

    ``values`` maps an owner's ``id`` and a name to the owner, which is thereby kept, and the
    value, `NO_ATTRIBUTE` where there was none. Whatever is not in it cannot change, and is read
    from the object.
    """

    values: Mapping[tuple[int, str], tuple[object, object]]

    def read(self, owner: object, name: str) -> object:
        """The attribute; AttributeError if there was none."""
        captured = self.values.get((id(owner), name))
        if captured is None:
            return getattr(owner, name)
        if captured[1] is NO_ATTRIBUTE:
            raise AttributeError(name)
        return captured[1]


NO_ATTRIBUTE = object()
NO_ATTRIBUTES = CapturedAttributes(MappingProxyType({}))


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSource:
    """A function to be parsed.

    ``tree`` is what ``tree_of`` gives, the same each time: it comes from parsing ``lines`` joined,
    the slice of the user's file, decorators included, with its indentation, after a line that opens
    a block if it has any. ``tree.lineno`` is the ``def`` line within it. ``file`` and
    ``first_line`` say where that ``def`` line is in the user's file. They serve messages only:
    nothing derived from them reaches a program.

    ``namespace`` maps every free name of body, annotations (string ones too) and defaults to its
    value: closure, then globals, then builtins; a name that has no value is absent. A function
    decorated with ``pl.jit`` or one of its kinds is represented by its own ``FunctionSource``.
    ``attributes`` are those of the values in it that might have changed since.

    ``external`` has the C++ files of a function that only declares a kernel: its body says nothing.
    A ``strict_ssa`` function binds each name once. A ``declared`` one is part of a ``pl.program``,
    so that its annotations say all of its types.
    """

    name: str
    unit: str
    kind: FunctionKind
    tree_of: Callable[[], ast.FunctionDef]
    file: str
    first_line: int
    namespace: Mapping[str, Static]
    lines: tuple[str, ...] = ()
    auto_scope: bool = True
    strict_ssa: bool = False
    declared: bool = False
    external: ExternalKernel | None = None
    attributes: CapturedAttributes = NO_ATTRIBUTES
    attrs: Mapping[str, AttrValue] = field(default_factory=lambda: NO_ATTRS)

    @property
    def tree(self) -> ast.FunctionDef:
        """The function's definition."""
        return self.tree_of()

    def span(self, node: ast.AST) -> Span:
        """The position of a node of ``tree``, independent of where the function stands."""
        line, column = self._position(node)
        return Span(self.unit, line - self.tree.lineno + 1, column)

    def user_position(self, node: ast.AST) -> tuple[int, int]:
        """Line (from 1) and column (from 1) of a node in the user's file."""
        line, column = self._position(node)
        return line - self.tree.lineno + self.first_line, column + 1

    def source_line(self, node: ast.AST) -> str:
        """The line of ``lines`` that a node begins on, or an empty string."""
        line = getattr(node, "lineno", self.tree.lineno)
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def _position(self, node: ast.AST) -> tuple[int, int]:
        line = getattr(node, "lineno", self.tree.lineno)
        offset = getattr(node, "col_offset", self.tree.col_offset)
        assert isinstance(line, int)
        assert isinstance(offset, int)
        if not 0 < line <= len(self.lines) or self.lines[line - 1].isascii():
            return line, offset
        # The tree counts bytes of UTF-8.
        return line, len(self.lines[line - 1].encode()[:offset].decode(errors="ignore"))


class KernelFunction(abc.ABC):
    """What a decorator of a layer above makes of a function, for programs that call it."""

    @abc.abstractmethod
    def kernel_source(self) -> FunctionSource:
        """The function and the names it uses, as they are now."""


class ParamCategory(enum.Enum):
    """What a parameter's annotation says it is."""

    TENSOR = "tensor"
    SCALAR = "scalar"
    CONSTEXPR = "constexpr"
    UNANNOTATED = "unannotated"


@dataclass(frozen=True, slots=True)
class ParamAnnotation:
    """One parameter of a signature.

    ``type`` is complete for a tensor annotated with shape and element type and for every scalar;
    it is ``None`` for a bare ``pl.Tensor``, a ``pl.constexpr`` and an unannotated parameter.
    ``default`` means something only when ``has_default`` is true.
    """

    name: str
    direction: Direction
    category: ParamCategory
    type: TensorType | ScalarType | None
    has_default: bool = False
    default: Static = None


@dataclass(frozen=True, slots=True)
class ConstValue:
    """The value of a ``pl.constexpr`` parameter: int, float, bool, str, dtype, enum member, or a
    list or tuple of those, with the attributes of it that might change."""

    value: Static
    attributes: CapturedAttributes = field(default=NO_ATTRIBUTES, compare=False, repr=False)


# What a parameter is in one program: the type of its argument, or its value.
Argument = TensorType | ScalarType | ConstValue
