"""An InCore function as `.pto` text."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.codegen.abi import KernelAbi
from pypto.codegen.pto_control import write_branch, write_loop, write_while
from pypto.codegen.pto_elements import ELEMENT_EMITTERS
from pypto.codegen.pto_scalars import emit_scalar
from pypto.codegen.pto_text import PtoText, partition_text, tile_text, view_text
from pypto.codegen.pto_tiles import TILE_EMITTERS
from pypto.ir.errors import CompileError
from pypto.ir.nodes import (
    Call,
    Const,
    Dim,
    For,
    Function,
    If,
    Op,
    Operand,
    Program,
    Return,
    Scope,
    Span,
    Stmt,
    TensorType,
    TileType,
    Var,
    While,
)
from pypto.ir.passes.aliases import Roots


def kernel_text(
    program: Program, function: Function, abi: KernelAbi, symbol: str, kind: str, arch: str
) -> str:
    """The module of one InCore function, named `symbol`, for a `vector` or `cube` core."""
    writer = KernelWriter(program, function, abi, arch)
    writer.write(function.body)
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in writer.arguments)
    lines = [
        f'module attributes {{pto.target_arch = "{arch}"}} {{',
        f"  func.func @{symbol}({arguments}) "
        f"attributes {{pto.kernel_kind = #pto.kernel_kind<{kind}>}} {{",
        *writer.text.lines(),
        "    return",
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


_EMITTERS = {**TILE_EMITTERS, **ELEMENT_EMITTERS}


class KernelWriter:
    """The values of one function and the text that defines them."""

    def __init__(self, program: Program, function: Function, abi: KernelAbi, arch: str) -> None:
        self.text = PtoText()
        self.arguments: list[tuple[str, str]] = []
        # By operation, the name of what it says of where the kernel runs.
        self.places: dict[str, str] = {}
        self._arch = arch
        self._roots = Roots(program, function.body, exchange=False)
        self._names: dict[Var, str] = {}
        self._addresses: dict[Var, int] = {}
        self._valid: dict[Var, tuple[str, str]] = {}
        self._pads: dict[Var, str] = {}
        # Where the operation stands that is being written, if one is.
        self._span: Span | None = None
        self._extents: dict[tuple[Var, int], str] = {}
        self._strides: dict[tuple[Var, int], str] = {}
        self._views: dict[tuple[Var, tuple[Dim, ...]], str] = {}
        self._declare(abi)

    def _declare(self, abi: KernelAbi) -> None:
        for var in abi.parameters:
            name = self.text.new(f"arg{len(self.arguments)}")
            self._names[var] = name
            pointer = isinstance(var.type, TensorType)
            type_ = f"!pto.ptr<{var.type.dtype.pto}>" if pointer else var.type.dtype.pto
            self.arguments.append((name, type_))
        for table, known in ((abi.extents, self._extents), (abi.strides, self._strides)):
            for key in table:
                name = self.text.new(f"arg{len(self.arguments)}")
                known[key] = name
                self.arguments.append((name, "index"))
        for place in abi.places:
            given = self.text.new(f"arg{len(self.arguments)}")
            self.arguments.append((given, "i32"))
            self.places[place] = self.text.new(place.removeprefix("tile.get_"))
            self.text.head(f"{self.places[place]} = arith.index_cast {given} : i32 to index")

    # Values that operations are written with.

    def scalar(self, operand: Operand) -> str:
        """The name of a scalar."""
        return self.text.constant(operand) if isinstance(operand, Const) else self._names[operand]

    def bind(self, var: Var) -> str:
        """A fresh name for a scalar that the next line defines."""
        self._names[var] = self.text.new(var.name)
        return self._names[var]

    def tile(self, operand: Operand) -> str:
        """The name of a tile."""
        assert isinstance(operand, Var)
        return self._names[operand]

    def type(self, operand: Operand) -> str:
        """The text of a tile's or a scalar's type."""
        if isinstance(operand, Var) and isinstance(operand.type, TileType):
            return tile_text(operand.type, self._arch, self._pads.get(operand, ""))
        dtype = operand.dtype if isinstance(operand, Const) else operand.type.dtype
        return dtype.pto

    def valid(self, tile: Var) -> tuple[str, str]:
        """The names of a tile's valid row and column counts."""
        known = self._valid.get(tile)
        if known is None:
            assert isinstance(tile.type, TileType)
            rows, cols = tile.type.valid
            assert rows is not None and cols is not None, f"{tile.name}: unknown valid region"
            known = (self.text.index(rows), self.text.index(cols))
        return known

    def define(
        self,
        tile: Var,
        address: int,
        valid: tuple[str | None, str | None] = (None, None),
        pad: str = "",
    ) -> str:
        """Declare a tile; `valid` gives the counts that its type leaves to run time."""
        type_ = tile.type
        assert isinstance(type_, TileType)
        self._addresses[tile] = address
        self._pads[tile] = pad
        name = self.text.new(tile.name)
        self._names[tile] = name
        at = self.text.address(address)
        declared = f"{name} = pto.alloc_tile addr = {at}"
        counts = []
        for word, static, given in zip(("valid_row", "valid_col"), type_.valid, valid, strict=True):
            if static is None:
                assert given is not None, f"{tile.name}: unknown valid region"
                declared += f" {word} = {given}"
                counts.append(given)
            else:
                counts.append(self.text.index(static))
        self._valid[tile] = (counts[0], counts[1])
        declared += f" : {self.type(tile)}"
        if None in type_.valid:
            self.text.line(declared, self._span)  # its valid region may turn out not to fit
        else:
            self.text.head(declared)
        return name

    def address(self, op: Op) -> int:
        """Where memory planning put an operation's result."""
        address = op.attrs["addr"]
        assert isinstance(address, int)
        return address

    def alias(self, var: Var, origin: Var) -> None:
        """Make a tile another name of a buffer."""
        self._names[var] = self._names[origin]
        self._addresses[var] = self._addresses[origin]
        self._pads[var] = self._pads[origin]
        self._valid[var] = self.valid(origin)

    def address_of(self, tile: Var) -> int:
        """Where a tile lies."""
        return self._addresses[tile]

    def view(self, tensor: Var) -> tuple[str, str, int]:
        """The name, the type and the number of dimensions of a view of a tensor."""
        assert isinstance(tensor.type, TensorType)
        rank = max(2, len(tensor.type.shape))
        return self._view(tensor), view_text(rank, tensor.type.dtype), rank

    def partition(
        self, tensor: Operand, offsets: Sequence[Operand], tile: Var, span: Span
    ) -> tuple[str, str]:
        """The name and type of the part of a tensor that a tile's valid region covers."""
        assert isinstance(tensor, Var) and isinstance(tensor.type, TensorType)
        assert isinstance(tile.type, TileType)
        view, view_type, rank = self.view(tensor)
        lead = rank - 2
        names = [self.scalar(o) for o in offsets]
        names = [self.text.index(0)] * (rank - len(names)) + names
        sizes = [self.text.index(1)] * lead + list(self.valid(tile))
        type_ = partition_text((1,) * lead + tile.type.valid, tensor.type.dtype)
        part = self.text.new(f"{tensor.name}_part")
        self.text.line(
            f"{part} = pto.partition_view {view}, offsets = [{', '.join(names)}], "
            f"sizes = [{', '.join(sizes)}] : {view_type} -> {type_}",
            span,
        )
        return part, type_

    def _extent(self, tensor: Var, axis: int) -> str:
        assert isinstance(tensor.type, TensorType)
        extent = tensor.type.shape[axis]
        if isinstance(extent, int):
            return self.text.index(extent)
        return self._extents[self._roots[tensor], axis]

    def _view(self, tensor: Var) -> str:
        """A view of a tensor's memory under its shape; one axis is a single row."""
        assert isinstance(tensor.type, TensorType)
        root, shape = self._roots[tensor], tensor.type.shape
        view = self._views.get((root, shape))
        if view is not None:
            return view
        extents = [self._extent(tensor, axis) for axis in range(len(shape))]
        lead = max(0, 2 - len(shape))
        extents = [self.text.index(1)] * lead + extents
        dims = (1,) * lead + shape
        strides = self._dense_strides(extents, dims)
        for axis in tensor.type.run_time_strides:
            strides[lead + axis] = self._strides[root, axis]
        view = self.text.new(f"{root.name}_view")
        self.text.head(
            f"{view} = pto.make_tensor_view {self._names[root]}, shape = [{', '.join(extents)}], "
            f"strides = [{', '.join(strides)}] "
            f"{{layout = #pto.layout<{tensor.type.layout.value}>}} : "
            f"{view_text(len(dims), tensor.type.dtype)}"
        )
        self._views[root, shape] = view
        return view

    def _dense_strides(self, extents: Sequence[str], dims: Sequence[Dim]) -> list[str]:
        """The strides of a tensor without gaps."""
        strides = [self.text.index(1)]
        static: int | None = 1
        for extent, dim in zip(reversed(extents[1:]), reversed(dims[1:]), strict=True):
            static = static * dim if static is not None and isinstance(dim, int) else None
            if static is not None:
                strides.insert(0, self.text.index(static))
            elif strides[0] == self.text.index(1):
                strides.insert(0, extent)
            else:
                product = self.text.new("stride")
                self.text.head(f"{product} = arith.muli {strides[0]}, {extent} : index")
                strides.insert(0, product)
        return strides

    # Statements.

    def write(self, body: Sequence[Stmt]) -> None:
        """Write a body."""
        for stmt in body:
            match stmt:
                case Op():
                    self._write_op(stmt)
                case For():
                    write_loop(self, stmt)
                case While():
                    write_while(self, stmt)
                case If():
                    write_branch(self, stmt)
                case Return():
                    pass  # what is returned are tensors, which the caller names already
                case Call() | Scope():
                    raise CompileError(
                        "an InCore function cannot call another function; write the callee as "
                        "@pl.jit.inline",
                        stmt.span,
                    )

    def _write_op(self, op: Op) -> None:
        if op.op == "tensor.dim":
            tensor, axis = op.operands[0], op.attrs["axis"]
            assert isinstance(tensor, Var) and isinstance(axis, int) and op.result is not None
            self._names[op.result] = self._extent(tensor, axis)
        elif op.op in self.places:
            assert op.result is not None
            self._names[op.result] = self.places[op.op]
        elif op.op == "tensor.reshape":
            pass  # another view of the memory, made where it is used
        elif op.op.startswith("scalar."):
            assert op.result is not None
            values = tuple(self.scalar(o) for o in op.operands)
            self._names[op.result] = emit_scalar(self.text, op, values)
        else:
            self._span = op.span
            _EMITTERS[op.op](self, op)
            self._span = None
