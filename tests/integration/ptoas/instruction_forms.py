"""Every form of the assembler's instructions, and text that uses one."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The element types of the language, in .pto text and in C++.
CPP = {
    "f32": "float",
    "f16": "pto::half",
    "bf16": "pto::bfloat16_t",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "ui8": "uint8_t",
    "ui16": "uint16_t",
    "ui32": "uint32_t",
    "ui64": "uint64_t",
    "i1": "bool",
}

FORM = re.compile(r"(?P<mnemonic>[\w.]+) ins\((?P<ins>.*)\) outs\((?P<out>.*)\)")
OPERAND = re.compile(r"(?P<kind>\w+)\{(?:(?P<spaces>[^:{}]*): )?(?P<elements>[^{}]*)\}")
LITERALS = {"f32": "3.0", "f16": "3.0", "bf16": "3.0", "i1": "true"}
BITS = {
    "f32": 32,
    "f16": 16,
    "bf16": 16,
    "i8": 8,
    "i16": 16,
    "i32": 32,
    "i64": 64,
    "ui8": 8,
    "ui16": 16,
    "ui32": 32,
    "ui64": 64,
    "i1": 8,  # a byte that is 0 or 1
}
ROWS, COLS = 16, 32


@dataclass(frozen=True, slots=True)
class Operand:
    kind: str
    spaces: tuple[str, ...]
    elements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Form:
    mnemonic: str
    operands: tuple[Operand, ...]  # the destination first

    @property
    def worked_on(self) -> Operand:
        """The last operand that is not an offset."""
        return [operand for operand in self.operands if operand.elements != ("index",)][-1]


def operands_of(text: str) -> tuple[Operand, ...]:
    return tuple(
        Operand(
            match["kind"],
            tuple((match["spaces"] or "").split(", ")),
            tuple(match["elements"].split(", ")),
        )
        for match in OPERAND.finditer(text)
    )


def listed_forms(assembler: Path) -> list[Form]:
    """Every form that the assembler says it has."""
    text = subprocess.run(
        [str(assembler), "--list-instructions"], capture_output=True, text=True, check=True
    ).stdout
    found = []
    for line in text.splitlines():
        match = FORM.fullmatch(line)
        assert match is not None, line
        found.append(Form(match["mnemonic"], operands_of(match["out"]) + operands_of(match["ins"])))
    assert len(found) > 40
    return found


REDUCTIONS = ("max", "min", "sum", "prod")


def extents(mnemonic: str, operand: int) -> tuple[int, int]:
    """Extents that satisfy the rules of an instruction's operands."""
    if mnemonic in {f"pto.trow{n}" for n in REDUCTIONS} and operand == 0:
        return ROWS, 1
    if mnemonic in {f"pto.tcol{n}" for n in REDUCTIONS} and operand == 0:
        return 1, COLS
    if mnemonic.startswith("pto.trowexpand"):
        return (ROWS, 1) if operand == (1 if mnemonic == "pto.trowexpand" else 2) else (ROWS, COLS)
    if mnemonic.startswith("pto.tcolexpand"):
        return (1, COLS) if operand == (1 if mnemonic == "pto.tcolexpand" else 2) else (ROWS, COLS)
    if mnemonic == "pto.ttrans" and operand == 0:
        return COLS, ROWS
    if mnemonic == "pto.treshape" and operand == 0:
        return ROWS // 2, COLS * 2
    if mnemonic == "pto.textract" and operand == 0:
        return ROWS // 2, COLS // 2
    if mnemonic == "pto.tinsert" and operand == 2:
        return ROWS // 2, COLS // 2
    if mnemonic == "pto.tconcat" and operand == 0:
        return ROWS, COLS * 2
    if mnemonic.startswith("pto.tmatmul"):
        return {"0": (ROWS, ROWS), "-2": (ROWS, COLS), "-1": (COLS, ROWS)}[str(operand)]
    return ROWS, COLS


def tile_type(space: str, element: str, rows: int, cols: int) -> str:
    return f"!pto.tile_buf<loc={space}, dtype={element}, rows={rows}, cols={cols}>"


class Writer:
    """Writes the body of one function, line by line, values under fresh names.

    Without `fill`, tiles have no contents, and only what is asked for is written.
    """

    def __init__(self, *, fill: bool = True) -> None:
        self._fill = fill
        self.lines: list[str] = []
        self._count = 0
        self._offsets: dict[str, int] = {}

    def reuse_memory(self) -> None:
        self._offsets.clear()

    def value(self, text: str) -> str:
        self._count += 1
        self.lines.append(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def tile(self, space: str, element: str, shape: tuple[int, int]) -> tuple[str, str]:
        offset = self._offsets.get(space, 0)
        size = shape[0] * shape[1] * BITS[element] // 8
        self._offsets[space] = offset + (size + 31) // 32 * 32
        address = self.value(f"arith.constant {offset} : i64")
        type_ = tile_type(space, element, *shape)
        return self.value(f"pto.alloc_tile addr = {address} : {type_}"), type_

    def partition(self, element: str, shape: tuple[int, int]) -> tuple[str, str]:
        type_ = f"!pto.partition_tensor_view<{shape[0]}x{shape[1]}x{element}>"
        view = f"!pto.tensor_view<?x?x{element}>"
        rows, cols = (self.value(f"arith.constant {extent} : index") for extent in shape)
        whole = self.value(
            f"pto.make_tensor_view %arg_{element}, shape = [{rows}, {cols}], "
            f"strides = [{cols}, %one] : {view}"
        )
        part = self.value(
            f"pto.partition_view {whole}, offsets = [%zero, %zero], sizes = [{rows}, {cols}] : "
            f"{view} -> {type_}"
        )
        return part, type_

    def filled(self, space: str, element: str, shape: tuple[int, int]) -> tuple[str, str]:
        """A tile with contents, so that no divisor is zero."""
        tile, type_ = self.tile(space, element, shape)
        if self._fill and space == "vec":
            content = self.value(f"arith.constant {LITERALS.get(element, '3')} : {element}")
            self.lines.append(f"pto.texpands ins({content} : {element}) outs({tile} : {type_})")
        return tile, type_

    def use(self, form: Form, element: str) -> None:
        names, types = [], []
        sums = "f32" if element in ("f32", "f16", "bf16") else "i32"
        count = len(form.operands)
        for i, operand in enumerate(form.operands):
            own = element if element in operand.elements else sums
            own = own if own in operand.elements else operand.elements[0]
            if form.mnemonic.startswith("pto.tmatmul"):
                position = i - count if operand.spaces[0] in {"left", "right"} else 0
                shape = extents(form.mnemonic, position)
                own = sums if position == 0 else element
            else:
                shape = extents(form.mnemonic, i)
            if operand.kind == "scalar":
                name = self.value(f"arith.constant {LITERALS.get(own, '3')} : {own}")
                type_ = own
            elif operand.kind == "partition":
                name, type_ = self.partition(own, shape)
            else:
                name, type_ = self.filled(operand.spaces[0], own, shape)
            names.append(name)
            types.append(type_)
        self.lines.append(
            f"{form.mnemonic} ins({', '.join(names[1:])} : {', '.join(types[1:])}) "
            f"outs({names[0]} : {types[0]})"
        )

    def function(self, elements: Sequence[str], name: str = "f") -> str:
        """The function of what was written, with a pointer for each of the elements."""
        parameters = ", ".join(f"%arg_{element}: !pto.ptr<{element}>" for element in elements)
        head = ["%zero = arith.constant 0 : index", "%one = arith.constant 1 : index"]
        body = "\n".join([*head, *self.lines])
        return f"func.func @{name}({parameters}) {{\n{body}\nreturn }}"


def module(*functions: str) -> str:
    return "module {\n" + "\n".join(functions) + "\n}"
