"""Values that the blocks of a task compute and something after them reads.

Such a value is memory for those who come after, and there is one for all blocks. What a block
goes on with itself is its own value, which no other block changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.nodes import AttrValue, Op, Scope, Stmt, TensorType, Var
from pypto.ir.passes.rewrite import bindings, fresh, reads, substitute, with_bodies
from pypto.ir.passes.tensor_values import computed_values, escaping_values, static_extents


def with_results_stored(
    body: Sequence[Stmt], partly: Mapping[Var, frozenset[int]]
) -> tuple[Stmt, ...]:
    """The body of an orchestration in which each block ends by storing such values.

    What may be valid in part, as ``partly`` says, or has extents that are known at run time only,
    stays as it is.
    """
    return _rewritten(body, Counter(reads(body)), partly)


def _rewritten(
    body: Sequence[Stmt], total: Counter[Var], partly: Mapping[Var, frozenset[int]]
) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Scope) and stmt.schedule.blocks is not None:
            values = computed_values(stmt.body) & escaping_values(stmt.body, total)
            stored = [v for v in bindings(stmt.body) if v in values and _is_whole(v, partly)]
            out.extend(_stored(stmt, stored))
        else:
            out.append(with_bodies(stmt, lambda inner: _rewritten(inner, total, partly)))
    return tuple(out)


def _is_whole(var: Var, partly: Mapping[Var, frozenset[int]]) -> bool:
    assert isinstance(var.type, TensorType)
    return var not in partly and len(static_extents(var.type)) == len(var.type.shape)


def _stored(scope: Scope, values: Sequence[Var]) -> tuple[Stmt, ...]:
    """What creates memory for the values, and the scope in which each of them has another name."""
    own = {value: fresh(value) for value in values}
    created: list[Op] = []
    stores: list[Op] = []
    for value, inner in own.items():
        assert isinstance(value.type, TensorType)
        memory = Var(value.name, TensorType(value.type.shape, value.type.dtype))
        attrs: dict[str, AttrValue] = {
            "shape": static_extents(value.type),
            "symbols": (),
            "dtype": value.type.dtype,
        }
        created.append(Op("tensor.create", (), memory, scope.span, MappingProxyType(attrs)))
        stores.append(Op("tensor.assign", (memory, inner), value, scope.span))
    body = (*substitute(scope.body, own), *stores)
    return (*created, replace(scope, body=body))
