"""Kernels written as .pto text, assembled, compiled and run as the product does it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pypto
import pypto._native as native
import pytest
from pypto.backend import RuntimeKind
from pypto.codegen.kernel_wrapper import embedded_body
from pypto.runtime.host import host_compilers

# The tests of this folder share modules that are no tests.
sys.path.insert(0, os.path.dirname(__file__))

from instruction_forms import Form, listed_forms

RING = RuntimeKind.TENSORMAP_AND_RINGBUFFER

Assemble = Callable[[str], str]
Run = Callable[..., None]


@pytest.fixture(scope="session")
def assembler() -> Path:
    named = os.environ.get("PYPTO_TEST_PTOAS")
    return Path(named or Path(pypto.__file__).parent / "_sdk/bin/ptoas").absolute()


@pytest.fixture(scope="session")
def forms(assembler: Path) -> list[Form]:
    return listed_forms(assembler)


@pytest.fixture(scope="session")
def assemble(assembler: Path) -> Assemble:
    def call(text: str) -> str:
        done = subprocess.run(
            [str(assembler), "-", "--pto-arch=a2a3"], input=text, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def kernel_text(assembled: str, name: str, arguments: Sequence[str]) -> str:
    """The kernel file around an assembled function."""
    return (
        f'#include "pypto_rt/kernel_abi.h"\n{embedded_body(assembled)}\n'
        'extern "C" PYPTO_KERNEL_EXPORT void kernel_entry(__gm__ int64_t* args) {\n'
        f"  pypto_rt::guard_kernel(args, [&] {{ {name}({', '.join(arguments)}); }});\n}}\n"
    )


@pytest.fixture
def program(assemble: Assemble, tmp_path: Path) -> Callable[..., Run]:
    """Makes a callable from a .pto function ``f`` of tensors, then 64-bit scalars."""

    def make(
        text: str, tensors: Sequence[str], scalars: Sequence[str] = (), *, core: str = "aiv"
    ) -> Run:
        arguments = [
            f"tensor_data<{kind}>(reinterpret_cast<ChipTensor*>(args[{i}]))"
            for i, kind in enumerate(tensors)
        ]
        arguments += [
            f"from_u64<{kind}>(args[{len(tensors) + i}])" for i, kind in enumerate(scalars)
        ]
        adds = "".join(
            f"  args.add_inout(orch_args.tensor({i}).ref());\n" for i in range(len(tensors))
        )
        adds += "".join(f"  args.add_scalar(orch_args.scalar({i}));\n" for i in range(len(scalars)))
        orchestration = (
            '#include "pypto_rt/pto_orchestration_api.h"\n'
            'extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs&) {\n'
            f"  return {{{len(tensors) + len(scalars)}}};\n}}\n"
            'extern "C" void aicpu_orchestration_entry(const ChipTaskArgs& orch_args) {\n'
            f"  CoreTaskArgs args;\n{adds}  rt_submit_{core}_task(0, args);\n}}\n"
        )
        compiler = host_compilers()("a2a3sim", RING)
        (tmp_path / "kernel.cpp").write_text(kernel_text(assemble(text), "f", arguments))
        (tmp_path / "orchestration.cpp").write_text(orchestration)
        kernel = tmp_path / "kernel.so"
        kernel.write_bytes(compiler.compile_incore(tmp_path / "kernel.cpp", core))
        library = tmp_path / "orchestration.so"
        library.write_bytes(compiler.compile_orchestration(tmp_path / "orchestration.cpp"))
        loaded = native.load_program(
            [(0, core, str(kernel))], str(library), RING.value, len(tensors), len(scalars)
        )
        chip = native.Chip("a2a3sim")

        def run(
            arrays: Sequence[tuple[int, int, tuple[int, ...], int]], values: Sequence[int]
        ) -> None:
            loaded.run(chip, arrays, [value & (2**64 - 1) for value in values])

        return run

    return make
