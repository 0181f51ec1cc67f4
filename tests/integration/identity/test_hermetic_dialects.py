"""Drivers of every dialect that a description may name take the flags that the SDK has for it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from compilers import debian_compilers, machine_gcc
from described_toolchains import ZIG, declare, edit
from elftools.elf.elffile import ELFFile
from mutations import House
from pypto.backend import RuntimeKind
from pypto.runtime.host import host_compilers, installed_sdk
from pypto_toolchains.toolchain_description import DIALECTS

# Without the instructions: their half-precision type came with Clang 15, which Debian's is not.
KERNEL = """
#include "pypto_rt/kernel_abi.h"

void kernel_entry(int64_t* args) {
  pypto_rt::guard_kernel(args, [&] { *reinterpret_cast<float*>(args[0]) = 2.0f; });
}
"""


def test_the_sdk_knows_every_dialect() -> None:
    assert set(installed_sdk().dialects) == set(DIALECTS)


@pytest.mark.parametrize("dialect", sorted({*DIALECTS} - {"zig"}))
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v4"])
def test_a_driver_of_the_dialect_compiles_what_the_sdk_says(
    described: House, tmp_path: Path, dialect: str, level: str
) -> None:
    driver = {"gcc": machine_gcc, "clang": lambda: debian_compilers()["clang"]}[dialect]()
    description = Path(described.environ["PYPTO_TOOLCHAIN"])
    # A script, because drivers find their parts beside themselves: only the flags are tried here.
    program = description.parent / ZIG[0]
    program.write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin\nexec {driver} "$@"\n')
    declare(description.parent, described.sdk)
    edit(
        description,
        lambda document: document["tools"].update(
            host_cxx={"argv": [ZIG[0], "-Werror"], "dialect": dialect}
        ),
    )
    source = tmp_path / "kernel.cpp"
    source.write_text(KERNEL)
    environ = {"PYPTO_CACHE_IDENTITY": "hermetic", "PYPTO_TOOLCHAIN": str(description)}
    compilers = host_compilers(environ=environ, cpu_level=level)
    for runtime in RuntimeKind:
        compiler = compilers("a5sim", runtime)
        for binary in (
            compiler.compile_incore(source, "aiv"),
            compiler.compile_incore(source, "aic"),
            compiler.compile_orchestration(source),
        ):
            elf: Any = ELFFile(io.BytesIO(binary))
            assert elf.get_section_by_name(".note.gnu.build-id") is not None
            symbols = elf.get_section_by_name(".dynsym").iter_symbols()
            assert "STB_LOOS" not in {symbol["st_info"]["bind"] for symbol in symbols}
