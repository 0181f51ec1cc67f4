"""Scalar operations as `arith` text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pypto.codegen.pto_text import PtoText
from pypto.ir.dtypes import BF16, BOOL, FP16, FP32, INDEX, DataType
from pypto.ir.nodes import Const, Op, ScalarType, Span
from pypto.ir.ops import OPS
from pypto.ir.typing_rules import type_of


def emit_scalar(text: PtoText, op: Op, values: tuple[str, ...]) -> str:
    """Write a scalar operation on the named values; the name of its result."""
    assert op.result is not None
    source = type_of(op.operands[0]).dtype
    if op.op == "scalar.cast":
        assert isinstance(op.result.type, ScalarType)
        target, mode = op.result.type.dtype, op.attrs.get("mode")
        if mode is not None:
            return _rounded(text, values[0], source, target, f"pto.cast_{mode}", op)
        return _convert(text, values[0], source, target, op.span)
    special = _SPECIAL.get((op.op, source.is_float))
    if special is not None:
        return special(text, values, source, op.span)
    spec = OPS[op.op]
    mnemonic = spec.float_mnemonic if source.is_float else spec.mnemonic
    assert mnemonic, f"{op.op} on {source}"
    return _binary(text, mnemonic, values, source, op.span, op.result.name)


def _binary(
    text: PtoText,
    mnemonic: str,
    values: tuple[str, ...],
    dtype: DataType,
    span: Span,
    stem: str = "v",
) -> str:
    name, predicate = (*mnemonic.split(" "), "")[:2]
    result = text.new(stem)
    listed = ", ".join((predicate, *values) if predicate else values)
    text.line(f"{result} = {name} {listed} : {dtype.pto}", span)
    return result


Special = Callable[[PtoText, tuple[str, ...], DataType, Span], str]


def _mod(text: PtoText, values: tuple[str, ...], dtype: DataType, span: Span) -> str:
    """The remainder with the sign of the divisor, as Python has it."""
    quotient = _binary(text, "arith.floordivsi", values, dtype, span, "q")
    product = _binary(text, "arith.muli", (quotient, values[1]), dtype, span, "p")
    return _binary(text, "arith.subi", (values[0], product), dtype, span, "r")


def _not(text: PtoText, values: tuple[str, ...], dtype: DataType, span: Span) -> str:
    true = text.constant(Const(True, BOOL))
    return _binary(text, "arith.xori", (values[0], true), dtype, span, "not")


def _negate(text: PtoText, values: tuple[str, ...], dtype: DataType, span: Span) -> str:
    zero = text.constant(Const(0, dtype))
    return _binary(text, "arith.subi", (zero, values[0]), dtype, span, "neg")


# By operation and whether it works on floats.
_SPECIAL: Mapping[tuple[str, bool], Special] = MappingProxyType(
    {
        ("scalar.mod", False): _mod,
        ("scalar.not", False): _not,
        ("scalar.neg", False): _negate,
    }
)


def _rounded(
    text: PtoText, value: str, source: DataType, target: DataType, mnemonic: str, op: Op
) -> str:
    if source == target:
        return value
    result = text.new("cast")
    text.line(f"{result} = {mnemonic} {value} : {source.pto} to {target.pto}", op.span)
    return result


def _convert(text: PtoText, value: str, source: DataType, target: DataType, span: Span) -> str:
    for mnemonic, via in _steps(source, target):
        result = text.new("cast")
        text.line(f"{result} = {mnemonic} {value} : {source.pto} to {via.pto}", span)
        value, source = result, via
    return value


def _steps(source: DataType, target: DataType) -> tuple[tuple[str, DataType], ...]:
    """The conversions that lead from one type to another."""
    if source == target:
        return ()
    if source == BOOL:
        return (("arith.uitofp" if target.is_float else "arith.extui", target),)
    if source.is_float and target.is_float:
        if {source, target} == {FP16, BF16}:
            return (("arith.extf", FP32), ("arith.truncf", target))
        grows = source.bits < target.bits
        return (("arith.extf" if grows else "arith.truncf", target),)
    if target.is_float:
        return (("arith.uitofp" if source.is_unsigned else "arith.sitofp", target),)
    if source.is_float:
        if target.is_unsigned:
            return (("pto.cast_trunc", target),)
        return (("arith.fptosi", target),)
    if INDEX in (source, target):
        return (("arith.index_cast", target),)
    if source.bits == target.bits:
        return (("arith.index_cast", INDEX), ("arith.index_cast", target))
    if source.bits > target.bits:
        return (("arith.trunci", target),)
    return (("arith.extui" if source.is_unsigned else "arith.extsi", target),)
