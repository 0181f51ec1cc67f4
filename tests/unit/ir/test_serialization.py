"""Programs as bytes: what comes back, and what is refused."""

from __future__ import annotations

import hashlib
import json
import random
import re
from dataclasses import replace
from types import MappingProxyType

import pypto.language as pl
import pytest
from pypto import ir
from pypto.ir import serialization
from pypto.ir.dtypes import FP32, INDEX, TASK_ID
from pypto.ir.nodes import (
    ArrayType,
    Const,
    For,
    Function,
    FunctionKind,
    Op,
    Program,
    Return,
    ScalarType,
    Span,
    Var,
)
from pypto.ir.serialization import MAX_BYTES, DamagedProgram

TEXT = """
import pypto.language as pl
M = pl.dynamic("M")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore, attrs={"note": 1})
    def kernel(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        a = pl.load(x, [0, 0], [16, 16])
        for i in pl.range(3):
            a = pl.add(a, -0.0)
        return pl.store(a, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        n: pl.Scalar[pl.INT32],
        y: pl.Tensor[[M, 16], pl.BF16],
        out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ):
        if n > 5:
            out = self.kernel(x, out)
        return out
"""


@pytest.fixture(scope="module")
def program() -> Program:
    return pl.parse(TEXT, "program.py")


def test_a_program_comes_back(program):
    data = ir.serialize(program)
    assert data.startswith(b"pypto-ir/1 ")
    again = ir.deserialize(data)
    ir.assert_structural_equal(again, program)
    assert again.as_python() == program.as_python()
    assert ir.serialize(again) == data
    spans = [stmt.span for stmt in program.functions["kernel"].body]
    assert [stmt.span for stmt in again.functions["kernel"].body] == spans


def test_a_lowered_program_and_a_function_come_back(program):
    lowered = ir.PassManager.get_strategy().run_passes(program)
    ir.assert_structural_equal(ir.deserialize(ir.serialize(lowered)), lowered)
    kernel = program.functions["kernel"]
    ir.assert_structural_equal(ir.deserialize(ir.serialize(kernel)), kernel)


def test_equal_programs_give_equal_bytes_wherever_they_stand(program):
    assert ir.serialize(pl.parse(TEXT, "elsewhere.py")) == ir.serialize(program)
    assert b"program.py" not in ir.serialize(program)


def test_floats_and_every_type_are_exact():
    numbers = [0.1, -0.0, 1e-45, float("inf"), float("-inf"), float("nan")]
    span = Span("m:f", 1, 0)
    body = [
        Op("scalar.add", (Const(x, FP32), Const(x, FP32)), Var("s", ScalarType(FP32)), span)
        for x in numbers
    ]
    ids = Op(
        "array.create", (), Var("ids", ArrayType(2, TASK_ID)), span, {"size": 2, "dtype": TASK_ID}
    )
    function = Function(
        "f", FunctionKind.OPAQUE, (), (*body, ids, Return((), span)), (), span
    )  # fmt: skip
    again = ir.deserialize(ir.serialize(function))
    ir.assert_structural_equal(again, function)
    assert [repr(op.operands[0].value) for op in again.body[:-2]] == [repr(x) for x in numbers]


def test_what_cannot_be_written_says_so():
    with pytest.raises(TypeError, match=r"ir\.serialize takes an ir\.Program or an ir\.Function"):
        ir.serialize(3)
    span, one = Span("m:f", 1, 0), Const(1, INDEX)
    body = (Return((), span),)
    for _ in range(200):
        body = (For(Var("i", ScalarType(INDEX)), one, one, one, (), body, (), span),)
    function = Function("f", FunctionKind.OPAQUE, (), body, (), span)
    with pytest.raises(ValueError, match=r"nested (deeper than 256|so deeply)"):
        ir.serialize(function)


# --- damage --------------------------------------------------------------------------------


def sealed(document: object) -> bytes:
    body = json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()
    return b"pypto-ir/1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def document(program: Program) -> dict[str, object]:
    return json.loads(ir.serialize(program).partition(b"\n")[2])


def refused(data: bytes, reason: str) -> None:
    told = f"cannot read a serialized program: {reason}"
    with pytest.raises(DamagedProgram, match=re.escape(told)) as caught:
        ir.deserialize(data)
    assert str(caught.value).endswith("; serialize it again with this version")


def test_damage_is_refused(program):
    data = ir.serialize(program)
    refused(b"", "it does not begin like one")
    refused(b"PK\x03\x04" + data, "it does not begin like one")
    refused(data.replace(b"pypto-ir/1", b"pypto-ir/2", 1), "it is of version b'2', not 1")
    refused(data[:-1], "its digest is another than its content's")
    refused(data + b"\n", "its digest is another than its content's")
    refused(data.replace(b'"kernel"', b'"kermel"', 1), "its digest is another than its content's")
    refused(b"x" * (MAX_BYTES + 129), f"it has {MAX_BYTES + 129} bytes, more than {MAX_BYTES}")
    with pytest.raises(TypeError, match=r"ir\.deserialize takes bytes, not str"):
        ir.deserialize("text")


def test_every_flipped_bit_is_refused(program):
    data = ir.serialize(program)
    draw = random.Random(11)
    for _ in range(300):
        at = draw.randrange(len(data))
        flipped = bytearray(data)
        flipped[at] ^= 1 << draw.randrange(8)
        with pytest.raises(DamagedProgram):
            ir.deserialize(bytes(flipped))


ADD = serialization.OPS["scalar.add"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"scalar.added": ADD}, id="another name"),
        pytest.param({"scalar.add": None}, id="one less"),
        pytest.param({"scalar.add": replace(ADD, operands=ADD.operands[:1])}, id="operands"),
        pytest.param({"scalar.add": replace(ADD, attrs=("mode",))}, id="attributes"),
        pytest.param({"scalar.add": replace(ADD, optional=("mode",))}, id="optional attributes"),
        pytest.param({"scalar.add": replace(ADD, reference="x0 - x1")}, id="meaning"),
    ],
)
def test_a_program_of_other_operations_is_refused_with_one_error(program, monkeypatch, changes):
    data = ir.serialize(program)
    others = {**serialization.OPS, **changes}
    others = {name: replace(spec, name=name) for name, spec in others.items() if spec is not None}
    monkeypatch.setattr(serialization, "OPS", others)
    # What is known of the table was computed from the other one.
    monkeypatch.setattr(serialization, "_schema", serialization._schema.__wrapped__)
    refused(data, "another version of the compiler wrote it, whose programs or operations are")
    assert ir.deserialize(ir.serialize(program)) is not None


def test_forged_content_is_refused(program):
    good = document(program)
    refused(sealed({**good, "schema": "0" * 16}), "another version of the compiler wrote it")
    refused(sealed({"root": good["root"]}), "its content is not a root and a schema")
    refused(sealed({**good, "root": None}), "it holds a NoneType, no program or function")
    refused(sealed({**good, "root": ["d", "fp32"]}), "it holds a DataType, no program or function")
    refused(sealed({**good, "root": ["d", "fp33"]}), "['fp33'] is no element type")
    refused(sealed({**good, "root": ["e", "Direction", "Up"]}), "['Direction', 'Up'] is no member")
    refused(sealed({**good, "root": ["f", "0x"]}), "['0x'] is no float")
    refused(sealed({**good, "root": ["v", 1]}), "[1] is no variable")
    refused(sealed({**good, "root": ["n", "object"]}), "there is no class 'object'")
    refused(sealed({**good, "root": ["__init__", 1]}), "there is no kind of value called '__init_")
    refused(sealed({**good, "root": ["n", "Span", "u", 1]}), "a Span has 3 fields, not 2")
    refused(sealed({**good, "root": ["n", "Span", "u", "1", 0]}), "Span.line cannot be '1'")
    refused(sealed({**good, "root": ["n", "Span", "u", True, 0]}), "Span.line cannot be True")
    refused(sealed({**good, "root": 1.5}), "its content is no JSON: the number 1.5 is no integer")
    nested: object = 1
    for _ in range(300):
        nested = ["t", nested]
    refused(sealed({**good, "root": nested}), "it is nested deeper than 256")


def test_another_way_to_write_the_same_program_is_refused(program):
    body = json.dumps(document(program), indent=1).encode()
    data = b"pypto-ir/1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    refused(data, "it is not written in the one way that programs are")
    swapped = ir.serialize(program).partition(b"\n")[2].replace(b'"INCORE"', b'"InCore"')
    refused(sealed(json.loads(swapped)), "it is not written in the one way that programs are")


def _places(value: object, path: tuple[int | str, ...] = ()):
    yield path
    items = enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*path, key))


@pytest.mark.parametrize("seed", range(4))
def test_random_forgeries_give_that_error_or_a_program(program, seed):
    draw = random.Random(seed)
    good = document(program)
    places = [path for path in _places(good["root"]) if path]
    junk = [None, True, 0, -1, 2**70, "", "x", [], ["t"], ["v", 0], ["m"], ["d", "fp32"],
            ["n", "Return", ["t"], None], ["e", "Direction", "In"], ["f", "nan"]]  # fmt: skip
    accepted = 0
    for _ in range(150):
        forged = json.loads(json.dumps(good))
        target = forged["root"]
        *way, last = draw.choice(places)
        for step in way:
            target = target[step]
        target[last] = draw.choice(junk)
        try:
            node = ir.deserialize(sealed(forged))
        except DamagedProgram:
            continue
        accepted += 1
        assert ir.serialize(node) == sealed(forged)
    assert accepted < 150


def test_mappings_cannot_be_changed(program):
    again = ir.deserialize(ir.serialize(program))
    assert isinstance(again.functions, MappingProxyType)
    assert all(isinstance(f.attrs, MappingProxyType) for f in again.functions.values())
