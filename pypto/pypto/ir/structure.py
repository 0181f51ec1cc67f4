"""Whether two programs say the same, whatever they call their values and wherever they stand."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pypto.ir.dtypes import DataType
from pypto.ir.nodes import Const, DynDim, Function, Op, Param, Program, Span, Var
from pypto.ir.spelling import spelled_const
from pypto.ir.typing_rules import show_type


class StructuralDifference(AssertionError, ValueError):
    """Two representations differ; ``path`` is where, seen from them."""

    def __init__(self, path: str, detail: str) -> None:
        self.path = path
        self.detail = detail
        super().__init__(f"the representations differ at {path or 'the top'}: {detail}")


def structural_equal(left: Program | Function, right: Program | Function) -> bool:
    """Whether two programs or functions are the same but for names of local values and places."""
    try:
        assert_structural_equal(left, right)
    except StructuralDifference:
        return False
    return True


def assert_structural_equal(left: Program | Function, right: Program | Function) -> None:
    """Raises `StructuralDifference`, which names the first difference, unless they are the same.

    Names of programs, functions and parameters count. Those of local values and of run-time extents
    need only correspond to each other one to one; where something stood in a file does not count.
    """
    _Comparison().same(left, right, "")


# What says where a node came from.
_PLACES = frozenset({"span", "sources", "home"})


class _Comparison:
    def __init__(self) -> None:
        self._vars: tuple[dict[Var, Var], dict[Var, Var]] = ({}, {})
        self._symbols: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def same(self, left: Any, right: Any, path: str) -> None:
        if isinstance(left, Function) and isinstance(right, Function):
            self._functions(left, right, path)
        elif type(left) is not type(right):
            raise StructuralDifference(path, f"{_shown(left)} and {_shown(right)}")
        elif isinstance(left, Var):
            self._variables(left, right, path)
        elif isinstance(left, DynDim):
            self._symbol(left.symbol, right.symbol, path)
            self.same(left.limit, right.limit, f"{path}.limit")
        elif isinstance(left, Mapping):
            self._mappings(left, right, path)
        elif isinstance(left, tuple | list):
            self._sequences(left, right, path)
        elif isinstance(left, Param):
            self._leaf(left.name_hint, right.name_hint, f"{path}.name_hint")
            self._fields(left, right, path)
        elif isinstance(left, Op):
            self._operations(left, right, path)
        elif is_dataclass(left) and not isinstance(left, DataType | Span | Const):
            self._fields(left, right, path)
        else:
            self._leaf(left, right, path)

    def _leaf(self, left: Any, right: Any, path: str) -> None:
        # repr tells what == does not: signed zeros, and it makes NaN equal to itself.
        if left is not right and repr(left) != repr(right):
            raise StructuralDifference(path, f"{_shown(left)} and {_shown(right)}")

    def _fields(self, left: Any, right: Any, path: str) -> None:
        for name in _names(left):
            step = f"{path}.{name}" if path else name
            self.same(getattr(left, name), getattr(right, name), step)

    def _functions(self, left: Function, right: Function, path: str) -> None:
        """As functions, whatever else an object knows."""
        self._symbols = ({}, {})  # a function's run-time extents are its own
        for field in fields(Function):
            if field.name not in _PLACES:
                step = f"{path}.{field.name}" if path else field.name
                self.same(getattr(left, field.name), getattr(right, field.name), step)

    def _mappings(self, left: Mapping[str, Any], right: Mapping[str, Any], path: str) -> None:
        if list(left) != list(right):
            raise StructuralDifference(path, f"{_listed(left)} and {_listed(right)}")
        for key in left:
            self.same(left[key], right[key], f"{path}[{key!r}]")

    def _sequences(self, left: Any, right: Any, path: str) -> None:
        for index, (one, other) in enumerate(zip(left, right, strict=False)):
            self.same(one, other, f"{path}[{index}]")
        if len(left) != len(right):
            longer = left if len(left) > len(right) else right
            which = "left" if longer is left else "right"
            extra = longer[min(len(left), len(right))]
            detail = f"{len(left)} and {len(right)} items; only the {which} has {_shown(extra)}"
            raise StructuralDifference(path, detail)

    def _variables(self, left: Var, right: Var, path: str) -> None:
        forth, back = self._vars
        if left not in forth and right not in back:
            forth[left], back[right] = right, left
            self.same(left.type, right.type, f"{path}.type")
        elif forth.get(left) is not right:
            raise StructuralDifference(
                path, f"{left.name!r} and {right.name!r} stand for different values"
            )

    def _symbol(self, left: str, right: str, path: str) -> None:
        forth, back = self._symbols
        if left not in forth and right not in back:
            forth[left], back[right] = right, left
        elif forth.get(left) != right:
            raise StructuralDifference(
                path, f"{left!r} and {right!r} stand for different run-time extents"
            )

    def _operations(self, left: Op, right: Op, path: str) -> None:
        self._leaf(left.op, right.op, f"{path}.op")
        self._sequences(left.operands, right.operands, f"{path}.operands")
        given, other = dict(left.attrs), dict(right.attrs)
        for index, (one, two) in enumerate(zip(_symbols(given), _symbols(other), strict=False)):
            self._symbol(one, two, f"{path}.attrs['symbols'][{index}]")
        self._mappings(dict(sorted(given.items())), dict(sorted(other.items())), f"{path}.attrs")
        self.same(left.result, right.result, f"{path}.result")


def _symbols(attrs: dict[str, Any]) -> tuple[str, ...]:
    """The extents that attributes name, taken out: what is left of them is how many they are."""
    names = attrs.get("symbols", ())
    if names:
        attrs["symbols"] = len(names)
    return tuple(names)


def _names(node: Any) -> Iterator[str]:
    for field in fields(node):
        if field.name not in _PLACES:
            yield field.name


def _listed(mapping: Mapping[str, Any]) -> str:
    return "[" + ", ".join(mapping) + "]"


def _shown(value: Any) -> str:
    """A value in a message: short, and never a whole body."""
    if isinstance(value, Const):
        return spelled_const(value, exact=True)
    if isinstance(value, Var):
        return f"{value.name!r}, a {show_type(value.type)}"
    if isinstance(value, Op):
        return f"the operation {value.op}"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if is_dataclass(value) and not isinstance(value, DataType):
        return f"a {type(value).__name__}"
    return repr(value)
