"""Writing `.pto` text: lines, names, constants, types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from pypto.codegen.literals import pto_literal
from pypto.codegen.names import Names, identifier
from pypto.ir.dtypes import BOOL, INDEX, INT64, DataType
from pypto.ir.nodes import Const, Span, TileType
from pypto.ir.passes.tile_layout import layout_of, physical_shape

_INDENT = "  "


class PtoText:
    """One function's text. Constants, views and tiles stand before the body that uses them."""

    def __init__(self) -> None:
        self.names = Names()
        self._constants: dict[tuple[str, str], str] = {}
        self._constant_lines: list[str] = []
        self._head: list[str] = []
        self._body: list[str] = []
        self._depth = 2

    def constant(self, const: Const) -> str:
        """The name of a constant, defined once a function."""
        literal = pto_literal(const)
        key = (literal, const.dtype.pto)
        name = self._constants.get(key)
        if name is None:
            name = "%" + self.names.new(_constant_stem(literal, const.dtype))
            self._constants[key] = name
            type_ = "" if const.dtype == BOOL else f" : {const.dtype.pto}"
            self._constant_lines.append(f"{name} = arith.constant {literal}{type_}")
        return name

    def index(self, value: int) -> str:
        """The name of an index constant."""
        return self.constant(Const(value, INDEX))

    def address(self, value: int) -> str:
        """The name of an address."""
        return self.constant(Const(value, INT64))

    def new(self, stem: str) -> str:
        """A fresh value name that resembles the user's."""
        return "%" + self.names.new(identifier(stem))

    def head(self, line: str) -> None:
        """A line before the body."""
        self._head.append(line)

    def line(self, line: str, span: Span | None = None) -> None:
        """A line of the body."""
        where = "" if span is None else f" {location(span)}"
        self._body.append(f"{_INDENT * self._depth}{line}{where}")

    @contextmanager
    def block(self) -> Iterator[None]:
        """Lines written inside are indented by one step more."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def lines(self) -> list[str]:
        """All lines of the function's body, indented."""
        first = [_INDENT * 2 + line for line in (*self._constant_lines, *self._head)]
        return first + self._body


def _constant_stem(literal: str, dtype: DataType) -> str:
    if dtype == BOOL:
        return literal
    if dtype.is_float:
        return "cst"
    return f"c{literal.replace('-', 'm')}_{dtype.pto}"


def location(span: Span) -> str:
    """The trailing `loc(...)` of an operation."""
    unit = span.unit.replace("\\", "\\\\").replace('"', '\\"')
    return f'loc("{unit}":{span.line}:{span.column})'


# A location as `location` writes it, at the end of a line.
_LOCATION = re.compile(r' loc\("(?:[^"\\]|\\.)*":\d+:\d+\)$', re.MULTILINE)


def without_locations(pto: str) -> str:
    """The text of a module without the user's places."""
    return _LOCATION.sub("", pto)


# The numbers by which a tile's type names what fills it outside its valid region.
PAD_NUMBERS: Mapping[str, int] = MappingProxyType({"": 0, "zero": 1, "max": 2, "min": 3})


def tile_text(tile: TileType, arch: str, pad: str = "") -> str:
    """A tile's type; `pad` is a key of `PAD_NUMBERS`."""
    rows, cols = physical_shape(tile)
    valid_rows, valid_cols = ("?" if v is None else v for v in tile.valid)
    layout = layout_of(tile, arch)
    return (
        f"!pto.tile_buf<loc={tile.space.value}, dtype={tile.dtype.pto}, rows={rows}, cols={cols}, "
        f"v_row={valid_rows}, v_col={valid_cols}, blayout={layout.blayout}, "
        f"slayout={layout.slayout}, fractal={layout.fractal}, "
        f"pad={PAD_NUMBERS[pad]}>"
    )


def view_text(rank: int, dtype: DataType) -> str:
    """A tensor view's type; its extents are operands of the view."""
    return f"!pto.tensor_view<{'?x' * rank}{dtype.pto}>"


def partition_text(sizes: Sequence[int | None], dtype: DataType) -> str:
    """A partition's type; `None` is an extent that is an operand."""
    extents = "".join(f"{'?' if size is None else size}x" for size in sizes)
    return f"!pto.partition_tensor_view<{extents}{dtype.pto}>"
