"""Scalar operations mean on the chip what the dialect says, also where C++ says nothing."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pypto._native as native
import pytest
import torch

Program = Callable[..., Callable[..., None]]
Integers = Callable[[int, int], int]

INT64, FP32 = 7, 0
EXTREMES = [0, 1, -1, 2, -2, 7, -7, 100, 2**31, -(2**31), 2**63 - 1, -(2**63)]
VEC = "!pto.tile_buf<loc=vec, dtype={}, rows=1, cols=8, v_row=1, v_col=1>"


def wrapped(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted_right(a: int, b: int, bits: int) -> int:
    return (-1 if a < 0 else 0) if not 0 <= b < bits else a >> b


def integer_operations(bits: int) -> dict[str, Integers]:
    return {
        "addi": lambda a, b: a + b,
        "subi": lambda a, b: a - b,
        "muli": lambda a, b: a * b,
        "minsi": min,
        "maxsi": max,
        "andi": lambda a, b: a & b,
        "ori": lambda a, b: a | b,
        "xori": lambda a, b: a ^ b,
        "shli": lambda a, b: a << b if 0 <= b < bits else 0,
        "shrsi": lambda a, b: shifted_right(a, b, bits),
        "cmpi slt,": lambda a, b: int(a < b),
        "cmpi sge,": lambda a, b: int(a >= b),
        "cmpi eq,": lambda a, b: int(a == b),
        "cmpi ult,": lambda a, b: int(a % 2**bits < b % 2**bits),
        "cmpi uge,": lambda a, b: int(a % 2**bits >= b % 2**bits),
    }


DIVISIONS: dict[str, Integers] = {
    "divsi": truncated,
    "remsi": lambda a, b: a - b * truncated(a, b),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
}


def scalar_module(lines: list[str], results: list[str], kind: str, parameters: str) -> str:
    """A function that stores the named results, all of type ``kind``, one after the other."""
    tile = VEC.format(kind)
    stores = []
    for i, name in enumerate(results):
        view = f"!pto.tensor_view<?x?x{kind}>"
        part = f"!pto.partition_tensor_view<1x1x{kind}>"
        stores += [
            f"%k{i} = arith.constant {i} : index",
            f"pto.texpands ins({name} : {kind}) outs(%t : {tile})",
            f"%p{i} = pto.partition_view %v, offsets = [%zero, %k{i}], sizes = [%one, %one] : "
            f"{view} -> {part}",
            f"pto.tstore ins(%t : {tile}) outs(%p{i} : {part})",
        ]
    return "\n".join(
        [
            f"module {{ func.func @f(%out: !pto.ptr<{kind}>, {parameters}) {{",
            "%zero = arith.constant 0 : index",
            "%one = arith.constant 1 : index",
            "%at = arith.constant 0 : i64",
            f"%count = arith.constant {len(results)} : index",
            "%v = pto.make_tensor_view %out, shape = [%one, %count], strides = [%count, %one] : "
            f"!pto.tensor_view<?x?x{kind}>",
            f"%t = pto.alloc_tile addr = %at : {tile}",
            *lines,
            *stores,
            "return } }",
        ]
    )


def described(array: np.ndarray[tuple[int], np.dtype[np.generic]], code: int) -> tuple[object, ...]:
    return (array.ctypes.data, array.nbytes, array.shape, code)


def integer_module(operations: list[str], kind: str) -> str:
    """Each operation on i64 parameters cut to ``kind``, the results widened again."""
    lines = ["%a = arith.addi %x, %at : i64", "%b = arith.addi %y, %at : i64"]
    if kind != "i64":
        lines = [f"%{c} = arith.trunci %{p} : i64 to {kind}" for c, p in ("ax", "by")]
    results = []
    for i, operation in enumerate(operations):
        lines.append(f"%r{i} = arith.{operation} %a, %b : {kind}")
        narrow = f"%r{i}"
        if operation.startswith("cmpi"):
            lines.append(f"%w{i} = arith.extui {narrow} : i1 to i64")
        elif kind != "i64":
            lines.append(f"%w{i} = arith.extsi {narrow} : {kind} to i64")
        results.append(f"%w{i}" if f"%w{i} =" in lines[-1] else narrow)
    return scalar_module(lines, results, "i64", "%x: i64, %y: i64")


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers(program: Program, bits: int) -> None:
    total, partial = integer_operations(bits), DIVISIONS
    operations = {**total, **partial}
    run = program(integer_module(list(operations), f"i{bits}"), ["int64_t"], ["int64_t"] * 2)
    out = np.zeros(len(operations), dtype=np.int64)
    for x in EXTREMES:
        for y in EXTREMES:
            a, b = wrapped(x, bits), wrapped(y, bits)
            if b == 0:
                continue
            out[:] = 77
            run([described(out, INT64)], [x, y])
            for (name, operation), got in zip(operations.items(), out.tolist(), strict=True):
                want = wrapped(operation(a, b), 64 if name.startswith("cmpi") else bits)
                assert got == want, f"{name} of {a} and {b} as i{bits}"


@pytest.mark.parametrize("operation", sorted(DIVISIONS))
def test_division_by_zero_is_a_fault_of_its_line(program: Program, operation: str) -> None:
    text = scalar_module(
        [f'%r = arith.{operation} %x, %y : i64 loc("kernels:f":12:8)'],
        ["%r"],
        "i64",
        "%x: i64, %y: i64",
    )
    run = program(text, ["int64_t"], ["int64_t"] * 2)
    out = np.zeros(1, dtype=np.int64)
    with pytest.raises(native.KernelFault, match="integer division by zero") as caught:
        run([described(out, INT64)], [1, 0])
    fault = caught.value
    assert (fault.op, fault.unit, fault.line, fault.column) == (operation, "kernels:f", 12, 8)
    before, _, _ = text.partition("%r =")
    assert fault.pto_line == before.count("\n") + 1


def test_a_step_that_never_ends_is_a_fault(program: Program) -> None:
    text = scalar_module(
        [
            "%lo = arith.index_cast %x : i64 to index",
            "%st = arith.index_cast %y : i64 to index",
            "%r = scf.for %i = %lo to %count step %st iter_args(%n = %x) -> (i64) {",
            "%j = arith.index_cast %i : index to i64",
            "%m = arith.addi %n, %j : i64",
            "scf.yield %m : i64 }",
        ],
        ["%r"],
        "i64",
        "%x: i64, %y: i64",
    )
    run = program(text, ["int64_t"], ["int64_t"] * 2)
    out = np.zeros(1, dtype=np.int64)
    run([described(out, INT64)], [-4, 3])
    assert out[0] == -4 + (-4 - 1)
    run([described(out, INT64)], [0, 2**63 - 1])
    assert out[0] == 0
    for step in (0, -1):
        with pytest.raises(native.KernelFault, match=f"the step of a loop is {step}"):
            run([described(out, INT64)], [0, step])


FLOATS = [0.0, -0.0, 1.0, -1.5, 3.1415927, 65504.0, 1e-8, 3e38, math.inf, -math.inf, math.nan]
FLOAT_OPERATIONS = {
    "addf": torch.add,
    "subf": torch.sub,
    "mulf": torch.mul,
    "divf": torch.div,
    "minimumf": torch.minimum,
    "maximumf": torch.maximum,
}
KINDS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def float_bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


@pytest.mark.parametrize("kind", KINDS)
def test_floats(program: Program, kind: str) -> None:
    lines = ["%a = arith.negf %x : f32", "%b = arith.negf %y : f32"]
    if kind != "f32":
        lines += [
            f"%{c} = arith.truncf %{p} : f32 to {kind}" for c, p in (("na", "a"), ("nb", "b"))
        ]
    left, right = ("%na", "%nb") if kind != "f32" else ("%a", "%b")
    results = []
    for i, name in enumerate(FLOAT_OPERATIONS):
        lines.append(f"%r{i} = arith.{name} {left}, {right} : {kind}")
        if kind != "f32":
            lines.append(f"%w{i} = arith.extf %r{i} : {kind} to f32")
        results.append(f"%r{i}" if kind == "f32" else f"%w{i}")
    text = scalar_module(lines, results, "f32", "%x: f32, %y: f32")
    run = program(text, ["float"], ["float"] * 2)
    out = np.zeros(len(results), dtype=np.float32)
    for x in FLOATS:
        for y in FLOATS:
            run([described(out, FP32)], [float_bits(-x), float_bits(-y)])
            a, b = (torch.tensor(value).to(KINDS[kind]) for value in (x, y))
            for (name, operation), got in zip(FLOAT_OPERATIONS.items(), out.tolist(), strict=True):
                want = operation(a, b).float().item()
                same = math.isnan(got) if math.isnan(want) else got == want
                assert same, f"{name} of {x} and {y} as {kind}: {got}, not {want}"


def test_floats_become_integers_without_surprise(program: Program) -> None:
    lines, results = [], []
    for kind in ("i8", "i16", "i32"):
        lines.append(f"%{kind} = arith.fptosi %x : f32 to {kind}")
        lines.append(f"%w{kind} = arith.extsi %{kind} : {kind} to i64")
        results.append(f"%w{kind}")
    lines.append("%i64 = arith.fptosi %x : f32 to i64")
    text = scalar_module(lines, [*results, "%i64"], "i64", "%x: f32")
    run = program(text, ["int64_t"], ["float"])
    out = np.zeros(4, dtype=np.int64)
    for value in (0.0, -0.9, 1.9, 127.9, -129.0, 2.0**31, 2.0**63, -(2.0**63), -1e30, math.inf):
        run([described(out, INT64)], [float_bits(value)])
        for bits, got in zip((8, 16, 32, 64), out.tolist(), strict=True):
            low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
            whole = high if value == math.inf else int(value)
            assert got == min(max(whole, low), high), f"{value} as i{bits}"
    run([described(out, INT64)], [float_bits(math.nan)])
    assert out.tolist() == [0, 0, 0, 0]


def test_literals_keep_their_bits(program: Program, tmp_path: Path) -> None:
    literals = {
        "0x7F800000 : f32": math.inf,
        "0xFF800000 : f32": -math.inf,
        "-0.0 : f32": -0.0,
        "1.0e-45 : f32": 1e-45,
        "3.4028235e+38 : f32": 3.4028235e38,
        "0.1 : f32": 0.1,
        "0x7C00 : f16": math.inf,
        "0x0001 : f16": 2.0**-24,
        "65504.0 : f16": 65504.0,
        "0xFF80 : bf16": -math.inf,
        "0x0001 : bf16": 2.0**-133,
        "1.00390625 : bf16": 1.0,
    }
    lines, results = [], []
    for i, literal in enumerate(literals):
        kind = literal.rpartition(" ")[2]
        lines.append(f"%l{i} = arith.constant {literal}")
        if kind != "f32":
            lines.append(f"%w{i} = arith.extf %l{i} : {kind} to f32")
        results.append(f"%l{i}" if kind == "f32" else f"%w{i}")
    run = program(scalar_module(lines, results, "f32", "%x: f32"), ["float"], ["float"])
    out = np.zeros(len(literals), dtype=np.float32)
    run([described(out, FP32)], [0])
    want = np.array(list(literals.values()), dtype=np.float32)
    assert out.tobytes() == want.tobytes(), dict(zip(literals, out.tolist(), strict=True))
