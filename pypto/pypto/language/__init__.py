"""The kernel language, by custom ``import pypto.language as pl``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pypto.ir.dtypes import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    DataType,
)
from pypto.ir.nodes import MemorySpace
from pypto.language import tensor, tile
from pypto.language.functions import (
    abs,
    add,
    at,
    cast,
    col_expand,
    col_expand_add,
    col_expand_div,
    col_expand_mul,
    col_expand_sub,
    concat,
    const,
    create_tensor,
    create_tile,
    div,
    exp,
    full,
    load,
    log,
    matmul,
    matmul_acc,
    max,
    maximum,
    min,
    minimum,
    move,
    mul,
    neg,
    range,
    recip,
    relu,
    reshape,
    row_expand_add,
    row_expand_div,
    row_expand_mul,
    row_expand_sub,
    row_max,
    row_min,
    row_sum,
    rsqrt,
    sqrt,
    static_assert,
    static_print,
    store,
    sub,
    yield_,
)
from pypto.language.markers import (
    RUNTIME,
    DynVar,
    InOut,
    Level,
    Out,
    PadValue,
    Scalar,
    Tensor,
    TensorLayout,
    Tile,
    constexpr,
    dynamic,
)

if TYPE_CHECKING:
    from pypto.jit import jit

Mem = MemorySpace
ND = TensorLayout.ND


AS_IMPORTED: Mapping[str, object] = MappingProxyType(dict(globals()))
"""What the text of this module gives its names; anybody may set others later."""


def __getattr__(name: str) -> object:
    # The decorator belongs to a layer above this one, which imports this module.
    if name == "jit":
        from pypto.jit import jit

        return jit
    raise AttributeError(f"module 'pypto.language' has no attribute {name!r}")


__all__ = [
    "BF16",
    "BOOL",
    "FP16",
    "FP32",
    "INDEX",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "ND",
    "RUNTIME",
    "UINT8",
    "DataType",
    "DynVar",
    "InOut",
    "Level",
    "Mem",
    "MemorySpace",
    "Out",
    "PadValue",
    "Scalar",
    "Tensor",
    "TensorLayout",
    "Tile",
    "abs",
    "add",
    "at",
    "cast",
    "col_expand",
    "col_expand_add",
    "col_expand_div",
    "col_expand_mul",
    "col_expand_sub",
    "concat",
    "const",
    "constexpr",
    "create_tensor",
    "create_tile",
    "div",
    "dynamic",
    "exp",
    "full",
    "jit",
    "load",
    "log",
    "matmul",
    "matmul_acc",
    "max",
    "maximum",
    "min",
    "minimum",
    "move",
    "mul",
    "neg",
    "range",
    "recip",
    "relu",
    "reshape",
    "row_expand_add",
    "row_expand_div",
    "row_expand_mul",
    "row_expand_sub",
    "row_max",
    "row_min",
    "row_sum",
    "rsqrt",
    "sqrt",
    "static_assert",
    "static_print",
    "store",
    "sub",
    "tensor",
    "tile",
    "yield_",
]
