"""Every name and spelling that kernels may rely on exists, group by group."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.ir.dtypes import DataType
from pypto.language.parser.diagnostics import exceptions


def missing(names: str, owner: object = pl) -> list[str]:
    """The names that the owner, ``pypto.language`` by default, does not have."""
    return [name for name in names.split() if not hasattr(owner, name)]


@pytest.mark.conforms("language.1")
def test_names_of_types() -> None:
    assert not missing("Tensor Tile Scalar Out InOut Array Tuple TaskId TensorView TileView MemRef")
    assert not missing("dynamic DynVar constexpr RUNTIME")
    assert pl.TaskId == pl.Scalar[pl.TASK_ID]


@pytest.mark.conforms("language.2")
def test_names_of_element_types() -> None:
    names = "FP32 FP16 BF16 INT32 INT64 INT8 INT16 UINT8 BOOL INDEX TASK_ID"
    assert not missing(names)
    assert all(isinstance(getattr(pl, name), DataType) for name in names.split())


@pytest.mark.conforms("language.3")
def test_names_of_places_and_choices() -> None:
    assert pl.Mem is pl.MemorySpace
    assert not missing("DDR Vec Mat Left Right Acc Bias LeftScale RightScale", pl.Mem)
    assert not missing("CORE_GROUP", pl.Level)
    assert not missing("zero min max", pl.PadValue)
    assert not missing("NONE UP_DOWN LEFT_RIGHT", pl.SplitMode)
    assert not missing("Add None_", pl.AtomicType)
    assert not missing("InCore Orchestration Opaque", pl.FunctionType)
    assert not missing("ND NZ DN")


@pytest.mark.conforms("language.4")
def test_names_of_decorators() -> None:
    assert not missing("jit function program inline")
    assert not missing("incore inline opaque extern", pl.jit)


@pytest.mark.conforms("language.5")
def test_names_of_statements() -> None:
    assert not missing("at range parallel pipeline unroll while_ cond yield_")
    assert not missing("static_assert static_print const")


@pytest.mark.conforms("language.6")
def test_names_of_scheduling() -> None:
    assert not missing("spmd spmd_submit submit cluster manual_scope no_dep dump_tag")
    assert not missing("split cross_core_slot")
    assert not missing("create read write", pl.array)
    assert not missing("get_block_idx get_block_num", pl.tile)


@pytest.mark.conforms("language.7")
def test_names_of_data_movement() -> None:
    assert not missing("load store move create_tensor create_tile full read write slice assemble")
    assert not missing("full slice assemble read write fillpad transpose", pl.tile)
    assert not missing("full slice assemble read write dim", pl.tensor)


@pytest.mark.conforms("language.8")
def test_names_of_elementwise_operations() -> None:
    assert not missing("add sub mul div maximum minimum fmod min max")
    assert not missing("adds subs muls divs maximums minimums fmods")
    assert not missing("exp log sqrt rsqrt recip neg abs sin cos relu lrelu prelu cast")
    assert not missing("and_ or_ xor not_ shl shr ands ors xors shls shrs")


@pytest.mark.conforms("language.9")
def test_names_of_matrix_row_and_column_operations() -> None:
    assert not missing("matmul matmul_acc transpose reshape concat fillpad")
    for axis in ("row", "col"):
        assert not missing(" ".join(f"{axis}_{form}" for form in ("sum", "max", "min", "prod")))
        forms = ("expand", *(f"expand_{op}" for op in ("add", "sub", "mul", "div", "max", "min")))
        assert not missing(" ".join(f"{axis}_{form}" for form in forms))
    assert not missing("row_expand_expdif")


@pytest.mark.conforms("language.141", "language.152")
def test_names_of_masks_and_valid_regions() -> None:
    assert not missing("cmp cmps sel sels set_validshape fillpad_expand transpose_view")
    assert not missing("transpose_view set_validshape", pl.tile)


@pytest.mark.conforms("language.10")
def test_names_of_texts() -> None:
    assert not missing("parse loads")


@pytest.mark.conforms("language.11")
@pytest.mark.parametrize(
    "name",
    [
        "ParserSyntaxError",
        "ParserTypeError",
        "UndefinedVariableError",
        "SSAViolationError",
        "UnsupportedFeatureError",
        "InvalidOperationError",
        "ScopeIsolationError",
    ],
)
def test_names_of_errors(name: str) -> None:
    """One ``except ParserError`` catches them all; a wrong type is a TypeError too."""
    error = getattr(exceptions, name)
    assert issubclass(error, exceptions.ParserError)
    assert issubclass(error, TypeError) == (name == "ParserTypeError")
