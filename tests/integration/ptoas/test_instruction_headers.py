"""Assembled text includes the headers that declare what it names, and no other."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pypto
import pytest
from instruction_forms import COLS, CPP, ROWS, Form, Writer, module
from pypto.codegen.kernel_wrapper import instruction_headers

Assemble = Callable[[str], str]

INCLUDE = Path(pypto.__file__).parent / "_sdk/include"
HALVES = ("f16", "bf16")
CALLED = re.compile(r"\bpto::(T[A-Z_]+)\(")
DECLARED = re.compile(r"\binline void (T[A-Z_]+)\(")
# What every instruction has around it: the places of statements, tiles and where they come from.
AROUND = {"pto/sim/fault.hpp", "pto/sim/tile.hpp", "pto/sim/global_tensor.hpp"}


def included(text: str) -> list[str]:
    return re.findall(r'^#include "(.*)"$', text, re.MULTILINE)


@pytest.fixture(scope="module")
def declared() -> dict[str, str]:
    """By the name of a call, the header that declares it."""
    return {
        call: str(path.relative_to(INCLUDE))
        for path in (INCLUDE / "pto/sim").glob("*.hpp")
        for call in DECLARED.findall(path.read_text())
    }


@pytest.fixture(scope="module")
def texts(assemble: Assemble, forms: list[Form]) -> list[str]:
    """The text of each form on its own, on the element types that C++ has and on the others."""
    found = []
    for form in forms:
        for of_halves in (False, True):
            functions = []
            for element in CPP:
                if element in form.worked_on.elements and (element in HALVES) == of_halves:
                    writer = Writer(fill=False)
                    writer.use(form, element)
                    functions.append(writer.function([element], f"f_{element}"))
            if functions:
                found.append(assemble(module(*functions)))
    assert len(found) > len(forms)
    return found


def test_a_form_includes_what_declares_it(texts: list[str], declared: dict[str, str]) -> None:
    for text in texts:
        headers = included(text)
        calls = {declared[call] for call in CALLED.findall(text)}
        halves = {"pto/sim/dtypes.hpp"} if re.search(r"pto::(half|bfloat16_t)", text) else set()
        assert calls - AROUND, text
        assert set(headers) - AROUND == (calls | halves) - AROUND, text
        assert headers == sorted(set(headers))


def test_every_form_compiles_with_its_own_headers(texts: list[str], tmp_path: Path) -> None:
    """Forms that include the same share a file, where none can lend another a header."""
    bodies: dict[tuple[str, ...], list[str]] = {}
    for text in texts:
        headers = instruction_headers(text)
        assert headers == included(text)
        code = text.partition("using namespace pto;\n")[2]
        bodies.setdefault(tuple(headers), []).append(code)
    assert len(bodies) > 20
    files = []
    for number, (headers, found) in enumerate(bodies.items()):
        lines = [f'#include "{header}"' for header in headers]
        lines += [
            f"using namespace pto;\nnamespace form{i} {{\n{body}\n}}"
            for i, body in enumerate(found)
        ]
        files.append(tmp_path / f"headers{number}.cpp")
        files[-1].write_text("\n".join(lines) + "\n")

    def compile_all(share: list[Path]) -> None:
        command = ["g++", "-std=c++20", "-Werror", "-fsyntax-only", f"-I{INCLUDE}"]
        done = subprocess.run([*command, *map(str, share)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_all, (files[::2], files[1::2])))


def addition() -> str:
    """A function that loads two tiles, adds them and stores the sum."""
    writer = Writer()
    shape = (ROWS, COLS)
    (a, kind), (b, _), (total, _) = (writer.tile("vec", "f32", shape) for _ in range(3))
    part, part_kind = writer.partition("f32", shape)
    writer.lines += [
        f"pto.tload ins({part} : {part_kind}) outs({a} : {kind})",
        f"pto.tload ins({part} : {part_kind}) outs({b} : {kind})",
        f"pto.tadd ins({a}, {b} : {kind}, {kind}) outs({total} : {kind})",
        f"pto.tstore ins({total} : {kind}) outs({part} : {part_kind})",
    ]
    return module(writer.function(["f32"]))


def test_an_addition_does_not_read_the_headers_of_other_instructions(
    assemble: Assemble, tmp_path: Path
) -> None:
    text = assemble(addition())
    assert included(text) == [
        "pto/sim/elementwise.hpp",
        "pto/sim/fault.hpp",
        "pto/sim/global_tensor.hpp",
        "pto/sim/tile.hpp",
        "pto/sim/transfer.hpp",
    ]
    source = tmp_path / "kernel.cpp"
    source.write_text(text)
    command = ["g++", "-std=c++20", "-M", f"-I{INCLUDE}", str(source)]
    read = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"/pto/(?:sim/)?([\w-]+)\.hpp", read))
    assert "elementwise" in names
    unused = {"bitwise", "expand", "matmul", "moves", "pto-inst", "reduce", "remainder"}
    assert not names & (unused | {"scalar_ops", "select", "trigonometry"})


@pytest.mark.parametrize(
    ("statement", "header"),
    [
        ("arith.addi %a, %a : i32", "pto/sim/scalar_ops.hpp"),
        ("arith.cmpi slt, %a, %a : i32", None),
        ("arith.cmpi ult, %a, %a : i32", "pto/sim/scalar_ops.hpp"),
        ("arith.andi %a, %a : i32", None),
        ("pto.cast_rint %a : i32 to i8", "pto/sim/convert.hpp"),
        ("arith.sitofp %a : i32 to f16", "pto/sim/dtypes.hpp"),
    ],
)
def test_scalar_operations_include_what_they_call(
    assemble: Assemble, tmp_path: Path, statement: str, header: str | None
) -> None:
    text = assemble(f"module {{ func.func @f(%a: i32) {{\n%r = {statement}\nreturn }} }}")
    headers = included(text)
    assert "pto/sim/fault.hpp" in headers
    assert header is None or header in headers
    assert len(headers) == 1 + (header is not None) + ("f16" in statement)
    source = tmp_path / "kernel.cpp"
    source.write_text(text)
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{INCLUDE}", str(source)]
    subprocess.run(command, check=True)


@pytest.mark.parametrize(("step", "calls"), [("%one", False), ("%two", True), ("%n", True)])
def test_a_loop_includes_what_makes_its_step(assemble: Assemble, step: str, calls: bool) -> None:
    text = assemble(
        "module { func.func @f(%n: index) {\n"
        "%one = arith.constant 1 : index\n%two = arith.constant 2 : index\n"
        f"scf.for %i = %one to %n step {step} {{\n}}\nreturn }} }}"
    )
    assert ("pto/sim/scalar_ops.hpp" in included(text)) == calls
