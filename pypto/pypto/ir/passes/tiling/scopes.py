"""A scope or an InCore function whose whole tensors do not fit, taken apart into nests of loops.

Straight runs of tensor-level operations become groups, each group a nest. A value that leaves its
group, or that a loop or a branch hands on, lives in global memory, in a tensor that is created
before the scope.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    AttrValue,
    Carried,
    Dim,
    DynDim,
    For,
    If,
    Op,
    Operand,
    Span,
    Stmt,
    TensorType,
    Var,
    While,
)
from pypto.ir.op_spec import Role
from pypto.ir.ops import OPS
from pypto.ir.passes.rewrite import ZERO, free_variables, index, walk
from pypto.ir.passes.target import TargetLimits
from pypto.ir.passes.tensor_values import computed_values
from pypto.ir.passes.tiling.blocks import Blocks, largest, of_cols, of_product, of_rows
from pypto.ir.passes.tiling.emission import Emission
from pypto.ir.passes.tiling.fit import fits
from pypto.ir.passes.tiling.groups import Group, Memory, Output, form_groups
from pypto.ir.passes.tiling.nest import Nest
from pypto.ir.passes.tiling.roles import broadcasts, joined, matrix_of, role_of, tensors_of
from pypto.ir.passes.tiling.sweeps import Sweeps


def tile_scope(
    body: Sequence[Stmt],
    read: Counter[Var],
    memory: Memory,
    partly: Mapping[Var, frozenset[int]],
    target: TargetLimits,
) -> tuple[list[Op], tuple[Stmt, ...]]:
    """What has to stand before a scope, and its body in blocks.

    ``read`` counts how often the function around the scope reads each variable, ``partly`` are
    its values that may be valid in part.
    """
    scope = _Scope(body, read, memory, partly, target)
    tiled = scope.block(body)
    return scope.prelude, tiled


def _is_on_memory(op: Op) -> bool:
    """Whether a tensor operation names memory or touches one element, and so stays as it is."""
    return OPS[op.op].role is Role.MEMORY


class _OwnMemory:
    """What memory variables name where every value of a scope has memory of its own."""

    def __init__(self, body: Sequence[Stmt], values: frozenset[Var], outside: Memory) -> None:
        self._values = values
        self._outside = outside
        self._same = {
            stmt.result: stmt.operands[aliased]
            for stmt in walk(body)
            if isinstance(stmt, Op)
            and _is_on_memory(stmt)
            and (aliased := OPS[stmt.op].aliases) is not None
        }

    def tensors(self, var: Var) -> frozenset[Var]:
        if var not in self._values:
            return self._outside.tensors(var)
        while isinstance(source := self._same.get(var), Var):
            var = source
        return frozenset((var,)) if var in self._values else self._outside.tensors(var)

    def name(self, var: Var) -> Var:
        return var if var in self._values else self._outside.name(var)


class _Scope:
    """One body, and what has to stand before it."""

    def __init__(
        self,
        body: Sequence[Stmt],
        read: Counter[Var],
        memory: Memory,
        partly: Mapping[Var, frozenset[int]],
        target: TargetLimits,
    ) -> None:
        self._partly = partly
        self.prelude: list[Op] = []
        self._values = computed_values(body)
        self._read = read
        self._memory = _OwnMemory(body, self._values, memory)
        self._target = target
        self._outside = [v for v in free_variables(body) if isinstance(v.type, TensorType)]
        self._extents: dict[Dim, Operand] = {}

    # Statements.

    def block(self, body: Sequence[Stmt], after: Sequence[Op] = ()) -> tuple[Stmt, ...]:
        """A body, and operations that end it."""
        out: list[Stmt] = []
        run: list[Op] = []

        def end_run() -> None:
            out.extend(self._tiled(run))
            run.clear()

        for stmt in body:
            match stmt:
                case Op(op="tensor.concat") if not self._is_partly_valid(stmt):
                    run.extend(self._side_by_side(stmt))
                case Op() if stmt.op.startswith("tensor.") and not _is_on_memory(stmt):
                    run.append(self._owned(stmt))
                case Op(op="tensor.dim") if stmt.operands[0] in self._values:
                    out.append(self._known_extent(stmt))
                case Op() if stmt.op.startswith("scalar.") or stmt.op == "tensor.dim":
                    out.append(stmt)  # reads nothing that the run before it computes
                case For() | While():
                    end_run()
                    out.extend(self._loop(stmt))
                case If():
                    end_run()
                    out.extend(self._branch(stmt))
                case _:
                    end_run()
                    out.append(stmt)
        run.extend(after)
        end_run()
        return tuple(out)

    def _owned(self, op: Op) -> Op:
        """An assignment to a value gets memory of its own to go to."""
        if op.op == "tensor.assemble" and op.operands[0] in self._values:
            assert isinstance(op.operands[0], Var)
            raise CompileError(
                f"{op.operands[0].name} is computed here, so that it has no memory a part of "
                "which could be written: write it to a tensor first",
                op.span,
            )
        if op.op != "tensor.assign" or op.operands[0] not in self._values:
            return op
        assert op.result is not None
        self._check_whole(op.result, op.span)
        return replace(op, operands=(self._created(op.result, op.span), op.operands[1]))

    def _check_whole(self, var: Var, span: Span) -> None:
        """CompileError for what would go to memory, which does not know how much is valid."""
        if var in self._partly:
            raise CompileError(
                f"{var.name} may be valid in part, but goes through global memory here, as this "
                "scope does not fit on chip: fill it with pl.fillpad before",
                span,
            )

    def _side_by_side(self, op: Op) -> list[Op]:
        """A concatenation as two regions of one tensor."""
        left, right = op.operands
        assert isinstance(left, Var) and isinstance(right, Var) and op.result is not None
        created = self._created(op.result, op.span)
        assert isinstance(created.type, TensorType)
        out, at = list[Op](), 0
        for part, result in ((left, Var(created.name, created.type)), (right, op.result)):
            assert isinstance(part.type, TensorType)
            rows, cols = part.type.shape
            if not isinstance(rows, int) or not isinstance(cols, int):
                return [op]
            attrs: dict[str, AttrValue] = {"shape": (rows, cols)}
            operands = (created, ZERO, index(at), part)
            out.append(Op("tensor.assemble", operands, result, op.span, MappingProxyType(attrs)))
            at += cols
        return out

    def _known_extent(self, op: Op) -> Op:
        value, axis = op.operands[0], op.attrs["axis"]
        assert isinstance(value, Var) and isinstance(value.type, TensorType)
        assert isinstance(axis, int)
        extent = self._extent_of(value.type.shape[axis], op.span)
        return Op("scalar.add", (extent, ZERO), op.result, op.span)

    def _loop(self, loop: For | While) -> list[Stmt]:
        before: list[Op] = []
        after: list[Op] = []
        carried, yields = list(loop.carried), list(loop.yields)
        for position, c in enumerate(loop.carried):
            if c.arg not in self._values:
                continue
            self._check_whole(c.arg, loop.span)
            assert isinstance(c.init, Var)
            created = self._created(c.arg, loop.span)
            start = Var(c.arg.name, c.arg.type)
            before.append(Op("tensor.assign", (created, c.init), start, loop.span))
            carried[position] = Carried(start, c.arg, c.result)
            value, written = yields[position], Var(c.arg.name, c.arg.type)
            if value in {other.arg for other in loop.carried} and value is not c.arg:
                # Another value that is carried, whose memory may be written before it is read.
                kept = Var(c.arg.name, c.arg.type)
                created = self._created(c.arg, loop.span)
                after.insert(0, Op("tensor.assign", (created, value), kept, loop.span))
                value = kept
            after.append(Op("tensor.assign", (c.arg, value), written, loop.span))
            yields[position] = written
        changes: dict[str, object] = {"carried": tuple(carried), "yields": tuple(yields)}
        changes["body"] = self.block(loop.body, after)
        if isinstance(loop, While):
            changes["condition_body"] = self.block(loop.condition_body)
        return [*self._tiled(before), replace(loop, **changes)]  # type: ignore[arg-type]

    def _branch(self, branch: If) -> list[Stmt]:
        arms = [list(branch.then_yields), list(branch.else_yields)]
        after: tuple[list[Op], list[Op]] = ([], [])
        for position, result in enumerate(branch.results):
            if result not in self._values:
                continue
            self._check_whole(result, branch.span)
            created = self._created(result, branch.span)
            for yields, ops in zip(arms, after, strict=True):
                written = Var(result.name, result.type)
                operands = (created, yields[position])
                ops.append(Op("tensor.assign", operands, written, branch.span))
                yields[position] = written
        return [
            replace(
                branch,
                then_body=self.block(branch.then_body, after[0]),
                then_yields=tuple(arms[0]),
                else_body=self.block(branch.else_body, after[1]),
                else_yields=tuple(arms[1]),
            )
        ]

    # Groups.

    def _tiled(self, ops: Sequence[Op]) -> list[Stmt]:
        out: list[Stmt] = []
        for group in form_groups(ops, self._memory, self._is_partly_valid):
            out.extend(self._whole(group.ops[0]) if group.whole else self._nest(group))
        return out

    def _is_partly_valid(self, op: Op) -> bool:
        """Whether an operation has to do with a valid region, which blocks would cut."""
        return op.result in self._partly or any(o in self._partly for o in op.operands)

    def _whole(self, op: Op) -> list[Stmt]:
        """An operation of which no blocks can be made; its result goes to memory."""
        if op.op == "tensor.assign" and self._overlaps(*op.operands):
            return self._copy_by_way(op)
        if role_of(op) is Role.WRITE or not self._leaves(op.result, [op]):
            return [op]
        if op.result in self._partly:
            return [op]  # memory would not know what of it is valid
        assert op.result is not None
        value = Var(op.result.name, op.result.type)
        created = self._created(op.result, op.span)
        store = Op("tensor.assign", (created, value), op.result, op.span)
        return [replace(op, result=value), store]

    def _overlaps(self, target: Operand, source: Operand) -> bool:
        assert isinstance(target, Var) and isinstance(source, Var)
        return not self._memory.tensors(target).isdisjoint(self._memory.tensors(source))

    def _copy_by_way(self, op: Op) -> list[Stmt]:
        """A copy between parts of one memory: all of it is read before any of it is written."""
        target, source = op.operands
        assert isinstance(source, Var)
        kept = Var(source.name, source.type)
        read = replace(op, operands=(self._created(source, op.span), source), result=kept)
        write = replace(op, operands=(target, kept))
        return [*self._tiled([read]), *self._tiled([write])]

    def _nest(self, group: Group) -> list[Stmt]:
        alone = [op for op in group.ops if self._is_copy(op, group)]
        if alone and len(group.ops) > 1:
            copies = [stmt for op in alone for stmt in self._tiled([op])]
            return [*copies, *self._tiled([op for op in group.ops if op not in alone])]
        outputs = self._outputs(group)
        if not outputs:
            return []
        for output in outputs:
            domain = joined(group.domain, matrix_of(output.value) or group.domain)
            assert domain is not None
            group = replace(group, domain=domain)
        extent_of = self._extents_at(group.ops[0].span)

        sweeps = Sweeps(group, outputs)

        def statements(blocks: Blocks) -> tuple[Stmt, ...]:
            return Nest(sweeps, blocks, extent_of).statements()

        def fit(blocks: Blocks) -> bool:
            return fits(statements(blocks), self._target)

        # Computing again must not read what was written, nor repeat a product.
        whole = sweeps.count > 1 and (group.in_place or bool(group.products))
        for family in self._families(group, whole=whole):
            blocks = largest(family, fit)
            if blocks is not None:
                return list(statements(blocks))
        if len(group.ops) == 1:
            return list(group.ops)  # memory planning says what does not fit
        middle = len(group.ops) // 2
        return [*self._tiled(group.ops[:middle]), *self._tiled(group.ops[middle:])]

    def _is_copy(self, op: Op, group: Group) -> bool:
        """Whether a slice is read elsewhere too, in blocks of other extents than the group's."""
        assert op.result is not None
        extents = matrix_of(op.result)
        return (
            role_of(op) is Role.READ
            and self._leaves(op.result, group.ops)
            and (extents is None or not broadcasts(extents, group.domain))
        )

    def _families(self, group: Group, *, whole: bool) -> list[list[Blocks]]:
        if group.products:
            first = tensors_of(group.products[0])[-2]
            extents = matrix_of(first)
            assert extents is not None and isinstance(first.type, TensorType)
            size = first.type.dtype.get_byte()
            return list(of_product(group.domain, extents[1], size, self._target, whole=whole))
        of = of_rows if group.axis == 1 else of_cols
        return list(of(group.domain, whole=whole))

    def _outputs(self, group: Group) -> list[Output]:
        outputs = []
        for position, op in enumerate(group.ops):
            assert op.result is not None
            if role_of(op) is Role.WRITE:
                target, *offsets, source = op.operands
                assert isinstance(target, Var) and isinstance(source, Var)
                attrs = {key: value for key, value in op.attrs.items() if key == "atomic"}
                at = tuple(offsets)
                outputs.append(
                    Output(position, source, target, at, op.result, MappingProxyType(attrs))
                )
            elif self._leaves(op.result, group.ops):
                created = self._created(op.result, op.span)
                outputs.append(Output(position, op.result, created, (), op.result))
        return outputs

    def _leaves(self, var: Var | None, ops: Sequence[Op]) -> bool:
        """Whether anything but these operations reads a value."""
        return var is not None and self._read[var] > sum(op.operands.count(var) for op in ops)

    # Memory and extents.

    def _created(self, like: Var, span: Span) -> Var:
        """A tensor that is created before the scope."""
        assert isinstance(like.type, TensorType)
        type_ = TensorType(like.type.shape, like.type.dtype)
        created = Var(like.name, type_)
        dynamic = [extent for extent in type_.shape if isinstance(extent, DynDim)]
        attrs: dict[str, AttrValue] = {
            "shape": tuple(e if isinstance(e, int) else None for e in type_.shape),
            "symbols": tuple(extent.symbol for extent in dynamic),
            "dtype": type_.dtype,
        }
        extents = tuple(self._extent_of(extent, span) for extent in dynamic)
        self.prelude.append(Op("tensor.create", extents, created, span, MappingProxyType(attrs)))
        return created

    def _extents_at(self, span: Span) -> Callable[[Dim], Operand]:
        return lambda extent: self._extent_of(extent, span)

    def _extent_of(self, extent: Dim, span: Span) -> Operand:
        if isinstance(extent, int):
            return index(extent)
        known = self._extents.get(extent)
        if known is not None:
            return known
        for var in self._outside:
            assert isinstance(var.type, TensorType)
            if extent in var.type.shape:
                read = Emission(span)
                axis = var.type.shape.index(extent)
                self._extents[extent] = read.op("tensor.dim", (var,), extent.symbol, axis=axis)
                self.prelude.extend(op for op in read.body if isinstance(op, Op))
                return self._extents[extent]
        raise CompileError(
            f"no tensor that is used here has the run-time extent {extent.symbol}, so nothing says "
            "how far to compute",
            span,
        )
