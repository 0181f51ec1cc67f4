"""Every form of every instruction, on every element type it takes, compiles and runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from instruction_forms import BITS, COLS, CPP, ROWS, Form, Writer, module

Program = Callable[..., Callable[..., None]]

ROUND_MODES = ("NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")
CODES = {
    "f32": 0,
    "f16": 1,
    "i32": 2,
    "i16": 3,
    "i8": 4,
    "ui8": 5,
    "bf16": 6,
    "i64": 7,
    "i1": 8,
    "ui16": 9,
    "ui32": 10,
    "ui64": 11,
}


@pytest.mark.parametrize("element", CPP)
def test_every_form(program: Program, forms: list[Form], element: str) -> None:
    writer = Writer()
    used = []
    for form in forms:
        if element in form.worked_on.elements:
            writer.reuse_memory()
            writer.use(form, element)
            used.append(form.mnemonic)
    assert len(used) > (5 if element == "i1" else 25)
    cube = any(mnemonic.startswith("pto.tmatmul") for mnemonic in used)
    run = program(module(writer.function([element])), [CPP[element]], core="aic" if cube else "aiv")
    memory = np.zeros(ROWS * COLS * BITS[element] // 8, dtype=np.uint8)
    run([(memory.ctypes.data, memory.nbytes, (ROWS, COLS), CODES[element])], [])


def test_every_conversion(program: Program) -> None:
    writer = Writer()
    for source in CPP:
        for target in CPP:
            # Any use of a pair instantiates all modes.
            for mode in ROUND_MODES if (source, target) == ("f32", "i32") else ("RINT",):
                writer.reuse_memory()
                a, a_type = writer.filled("vec", source, (ROWS, COLS))
                b, b_type = writer.tile("vec", target, (ROWS, COLS))
                writer.lines.append(
                    f"pto.tcvt ins({a} : {a_type}) outs({b} : {b_type}) "
                    f"{{rmode = #pto<round_mode {mode}>}}"
                )
    run = program(module(writer.function(["f32"])), ["float"])
    memory = np.zeros(4, dtype=np.float32)
    run([(memory.ctypes.data, memory.nbytes, (4,), 0)], [])


MOVES = {
    ("vec", "vec"),
    ("mat", "mat"),
    ("mat", "left"),
    ("mat", "right"),
    ("mat", "vec"),
    ("left", "left"),
    ("right", "right"),
    ("acc", "acc"),
    ("acc", "mat"),
    ("acc", "vec"),
}


def test_every_move(program: Program) -> None:
    writer = Writer()
    for source, target in sorted(MOVES):
        for narrow in ("f32", "f16", "bf16") if source == "acc" else ("f32",):
            writer.reuse_memory()
            a, a_type = writer.filled(source, "f32", (ROWS, COLS))
            b, b_type = writer.tile(target, narrow, (ROWS, COLS))
            writer.lines.append(f"pto.tmov ins({a} : {a_type}) outs({b} : {b_type})")
    run = program(module(writer.function(["f32"])), ["float"], core="aic")
    memory = np.zeros(4, dtype=np.float32)
    run([(memory.ctypes.data, memory.nbytes, (4,), 0)], [])
