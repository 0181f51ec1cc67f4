"""The scalars of a scope that could as well be computed before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pypto.ir.nodes import Op, ScalarType, Stmt, Var
from pypto.ir.passes.rewrite import bindings


def orchestration_scalars(body: Sequence[Stmt]) -> Mapping[Var, Op]:
    """Scalars that need nothing but what is bound outside, with their operations, in order.

    What a loop or a branch of the scope computes is none of them, nor is an element that a core
    reads.
    """
    bound = set(bindings(body))
    found: dict[Var, Op] = {}
    for stmt in body:
        if not isinstance(stmt, Op) or stmt.result is None:
            continue
        if not stmt.op.startswith("scalar.") and stmt.op != "tensor.dim":
            continue
        if not isinstance(stmt.result.type, ScalarType):
            continue
        if all(o not in bound or o in found for o in stmt.operands if isinstance(o, Var)):
            found[stmt.result] = stmt
    return found


def with_operands(wanted: Iterable[Var], scalars: Mapping[Var, Op]) -> set[Var]:
    """Those of ``scalars`` that some of them need, themselves included."""
    needed: set[Var] = set()
    queue = list(wanted)
    while queue:
        var = queue.pop()
        if var in scalars and var not in needed:
            needed.add(var)
            queue += [o for o in scalars[var].operands if isinstance(o, Var)]
    return needed
