"""The rows of operations that make, move, cut and fill tiles and tensors, or touch one element."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir import element_rules, memory_rules, view_rules, window_rules
from pypto.ir import typing_rules as rules
from pypto.ir.element_sets import STORED
from pypto.ir.op_spec import OperandKind, OpSpec, Role

_TILE, _TENSOR = OperandKind.TILE, OperandKind.TENSOR
_SCALAR, _INDICES = OperandKind.SCALAR, OperandKind.INDICES


def memory_rows() -> Iterator[OpSpec]:
    """The rows of these operations."""
    yield OpSpec(
        "tile.transpose_view",
        (_TILE,),
        (),
        rules.transpose_view,
        "ttrans",
        "x0.t()",
        "Rows and columns exchanged in Vec or in Mat.",
        elements=STORED,
        role=Role.TRANSPOSE,
        public="tile.transpose_view",
    )
    yield OpSpec(
        "tile.reshape",
        (_TILE,),
        ("shape",),
        memory_rules.tile_reshape,
        "treshape",
        "x0.reshape(shape)",
        "The same elements in row-major order under another shape.",
    )
    yield OpSpec(
        "tensor.reshape",
        (_TENSOR,),
        ("shape",),
        memory_rules.tensor_reshape,
        "",
        "x0.reshape(shape)",
        "The same memory under another shape.",
        role=Role.MEMORY,
        aliases=0,
    )
    yield OpSpec(
        "tensor.view",
        (_TENSOR, _INDICES),
        ("shape", "symbols", "drop"),
        view_rules.tensor_view,
        "",
        "",
        "A part of the same memory, without the axes to drop: an offset for each axis, then an "
        "extent for each that shape leaves open.",
        role=Role.MEMORY,
        aliases=0,
        off_core=True,
        public="slice",
    )
    yield OpSpec(
        "tensor.slice",
        (_TENSOR, _INDICES),
        ("shape", "drop", "has_valid", "pad"),
        memory_rules.tensor_slice,
        "",
        "",
        "A copy of the region at the offsets, without the axes to drop; with has_valid the last "
        "two operands are the rows and columns to read: what is valid, unless pad fills the rest.",
        role=Role.READ,
        reads=(0,),
    )
    yield OpSpec(
        "tensor.assemble",
        (_TENSOR, _INDICES, _TENSOR),
        ("shape",),
        memory_rules.tensor_assemble,
        "",
        "",
        "The region of that shape at the offsets takes the last operand's values; the result is "
        "the first.",
        optional=("atomic",),
        role=Role.WRITE,
        aliases=0,
        reads=(-1,),
        writes=True,
    )
    yield OpSpec(
        "tensor.full",
        (),
        ("shape", "dtype", "value"),
        memory_rules.tensor_full,
        "",
        "torch.full(shape, value, dtype=dtype)",
        "A tensor-level value that is one number everywhere.",
        role=Role.FILL,
    )
    yield OpSpec(
        "tensor.create",
        (_INDICES,),
        ("shape", "symbols", "dtype"),
        memory_rules.tensor_create,
        "",
        "",
        "A new tensor in global memory. Its contents are undefined without init_value; with "
        "manual_dep its memory orders no tasks.",
        optional=("init_value", "manual_dep"),
        role=Role.MEMORY,
        off_core=True,
    )
    yield OpSpec(
        "tensor.dim",
        (_TENSOR,),
        ("axis",),
        memory_rules.tensor_dim,
        "",
        "x0.shape[axis]",
        "The extent of one axis.",
        role=Role.MEMORY,
    )
    yield OpSpec(
        "tensor.assign",
        (_TENSOR, _TENSOR),
        (),
        memory_rules.tensor_assign,
        "",
        "x0.copy_(x1)",
        "The whole first operand takes the second's values; the result is the first.",
        role=Role.WRITE,
        aliases=0,
        reads=(-1,),
        writes=True,
        public="tensor assignment",
    )
    yield OpSpec(
        "tile.load",
        (_TENSOR, _INDICES),
        ("shape", "space", "has_valid"),
        memory_rules.tile_load,
        "tload",
        "",
        "A region of a tensor as a tile; with has_valid the last two operands are its valid "
        "rows and columns.",
        role=Role.READ,
        reads=(0,),
        faults=True,
    )
    yield OpSpec(
        "tile.store",
        (_TILE, _INDICES, _TENSOR),
        (),
        memory_rules.tile_store,
        "tstore",
        "",
        "The valid region of a tile into a tensor; the result is that tensor.",
        optional=("atomic",),
        role=Role.WRITE,
        aliases=-1,
        writes=True,
        faults=True,
    )
    yield OpSpec(
        "tile.move",
        (_TILE,),
        ("space",),
        memory_rules.tile_move,
        "tmov",
        "x0",
        "The same tile in another memory space.",
        in_place=(0,),
        role=Role.MAP,
    )
    yield OpSpec(
        "tile.slice",
        (_TILE, _INDICES),
        ("shape", "has_valid", "pad", "clamp"),
        window_rules.tile_slice,
        "textract",
        "",
        "A copy of the region at the offsets, in the same memory space; with has_valid the last "
        "two operands bound its valid rows and columns, and pad, if any, fills the rest.",
        faults=True,
    )
    yield OpSpec(
        "tile.assemble",
        (_TILE, _INDICES, _TILE),
        (),
        window_rules.tile_assemble,
        "tinsert",
        "",
        "The first operand with the valid region of the last one written at the offsets.",
        in_place=(0,),
        faults=True,
    )
    yield OpSpec(
        "tile.create",
        (),
        ("shape", "dtype", "space"),
        memory_rules.tile_create,
        "",
        "",
        "A tile whose contents are undefined.",
    )
    yield OpSpec(
        "tile.full",
        (),
        ("shape", "dtype", "value"),
        memory_rules.tile_full,
        "texpands",
        "torch.full(shape, value, dtype=dtype)",
        "A tile that holds one value everywhere.",
        role=Role.FILL,
    )
    for family, kind in (("tensor", _TENSOR), ("tile", _TILE)):
        # A tensor is memory; a tile is a value, of which writing an element makes another one.
        memory = kind is _TENSOR
        role = Role.MEMORY if memory else Role.WHOLE
        yield OpSpec(
            f"{family}.read",
            (kind, _INDICES),
            (),
            element_rules.element_read,
            "load_scalar",
            "",
            "One element as a scalar, by an index for each axis.",
            role=role,
            reads=(0,) if memory else (),
            faults=True,
        )
        yield OpSpec(
            f"{family}.write",
            (kind, _INDICES, _SCALAR),
            (),
            element_rules.element_write,
            "store_scalar",
            "",
            "One element takes a scalar's value; the result is the first operand afterwards.",
            in_place=(0,),
            role=role,
            aliases=0 if memory else None,
            writes=memory,
            faults=True,
        )
