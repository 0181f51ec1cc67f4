"""Hints: what runs, and would run faster if it were written in another way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pypto.ir.nodes import Op, Program, Span, TensorType, TileType, Var
from pypto.ir.passes.rewrite import walk
from pypto.ir.passes.target import TargetLimits
from pypto.ir.typing_rules import show_shape


@dataclass(frozen=True, slots=True)
class Hint:
    """One hint. ``code`` and ``name`` say what kind it is of; either can be switched off."""

    code: str
    name: str
    message: str
    span: Span


def _short_rows(op: Op, target: TargetLimits) -> str | None:
    """A transfer whose rows are too short for full speed."""
    match op:
        case Op(op="tile.load", operands=(memory, *_), result=tile):
            pass
        case Op(op="tile.store", operands=(tile, *_, memory)):
            pass
        case _:
            return None
    assert isinstance(tile, Var) and isinstance(tile.type, TileType)
    assert isinstance(memory, Var) and isinstance(memory.type, TensorType)
    rows, cols = tile.type.shape
    row = cols * tile.type.dtype.get_byte()
    # Where rows are single elements, there is nothing to make longer.
    if row >= target.row_bytes or memory.type.shape[-1] == 1:
        return None
    return (
        f"{op.op} has innermost dim = {row}B (tile {tile.type.dtype}{show_shape(tile.type.shape)}, "
        f"target_memory={tile.type.space.name}); moves {rows} row{'s' * (rows != 1)} of {row}B "
        f"each; recommended >= {target.row_bytes}B on {target.arch}"
    )


_Check = Callable[[Op, TargetLimits], str | None]

# By code: the name, and what an operation has to be told, if anything.
_CHECKS: Mapping[str, tuple[str, _Check]] = MappingProxyType(
    {"PH001": ("TileInnermostDimGranularity", _short_rows)}
)

# Every name by which a kind of hint can be switched off.
HINT_NAMES = frozenset(_CHECKS) | {name for name, _check in _CHECKS.values()}


def hints_of(
    program: Program, target: TargetLimits, disabled: Collection[str] = ()
) -> Iterator[Hint]:
    """The hints for a program, but those whose code or name is disabled, in program order."""
    for function in program.functions.values():
        for stmt in walk(function.body):
            if not isinstance(stmt, Op):
                continue
            for code, (name, check) in _CHECKS.items():
                if code in disabled or name in disabled:
                    continue
                message = check(stmt, target)
                if message is not None:
                    yield Hint(code, name, message, stmt.span)
