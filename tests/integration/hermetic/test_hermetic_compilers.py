"""What a hermetic toolchain's compilers make, and what of it may be used again."""

from __future__ import annotations

import ctypes
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from places import Place, Shell
from pypto.backend import RuntimeKind
from pypto.runtime.host import host_compilers

RUNTIMES = tuple(RuntimeKind)

ORCHESTRATION = """
#include "pypto_rt/pto_orchestration_api.h"

extern "C" PYPTO_KERNEL_EXPORT const char* where() { return __FILE__; }
"""

KERNEL = """
#include "pto/pto-inst.hpp"

void kernel_entry(int64_t* args) {
  pypto_rt::guard_kernel(args, [&] {
    pypto_rt::raise_fault(pypto_rt::current_core(), pypto_rt::FaultCode::Abi, "op", __FILE__);
  });
}
"""

# Every entry of <cmath> that a kernel may want comes from the process.
LIBRARY = """
#include "pto/pto-inst.hpp"
#include <cmath>
#include <cstring>
#include <numeric>

extern "C" PYPTO_KERNEL_EXPORT double library(const double* values, long count) {
  double copy[64];
  std::memcpy(copy, values, sizeof(double) * static_cast<unsigned long>(count));
  return std::cbrt(std::accumulate(copy, copy + count, 0.0));
}
"""


def environ(toolchain: Path, **more: str) -> Mapping[str, str]:
    return {
        "PYPTO_CACHE_IDENTITY": "hermetic",
        "PYPTO_TOOLCHAIN": str(toolchain / "identity.json"),
        **more,
    }


def source(top: Path, text: str) -> Path:
    path = top / "source.cpp"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def build_id(binary: bytes) -> str:
    section: Any = ELFFile(io.BytesIO(binary)).get_section_by_name(".note.gnu.build-id")
    assert section is not None
    (note,) = section.iter_notes()
    return str(note["n_desc"])


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("platform", ["a2a3", "a5"])
def test_orchestration_for_a_device_is_the_same_wherever_it_is_compiled(
    place: Place, toolchain: Path, tmp_path: Path, platform: str, runtime: RuntimeKind
) -> None:
    """For the ring buffer runtime it is AArch64, as without a hermetic toolchain."""
    binaries = [
        host_compilers(environ=environ(tools, **more))(platform, runtime).compile_orchestration(
            source(tmp_path / name, ORCHESTRATION)
        )
        for tools, name, more in (
            (toolchain, "one", {"PATH": "/nonexistent"}),
            (place.toolchain, "another/deeper", {"CPATH": str(tmp_path), "LANG": "C"}),
        )
    ]
    assert binaries[0] == binaries[1]
    elf: Any = ELFFile(io.BytesIO(binaries[0]))
    ring = runtime is RuntimeKind.TENSORMAP_AND_RINGBUFFER
    assert elf.get_machine_arch() == ("AArch64" if ring else "x64")
    assert elf.header["e_type"] == "ET_DYN"
    assert len(build_id(binaries[0])) == 40
    exported = {
        symbol.name
        for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name
    }
    assert exported == {"where", "framework_bind_runtime"}
    assert b"source/source.cpp\0" in binaries[0]
    for directory in (tmp_path, toolchain, place.top):
        assert str(directory).encode() not in binaries[0]


@pytest.mark.parametrize(
    ("level", "features"),
    [("x86-64", ""), ("x86-64-v3", "AVX2"), ("x86-64-v4", "AVX2 AVX512F")],
)
def test_every_level_of_the_sdk_is_compiled_for(
    toolchain: Path, tmp_path: Path, level: str, features: str
) -> None:
    wrong = [
        f"{'!' if name in features.split() else ''}defined(__{name}__)"
        for name in ("AVX2", "AVX512F")
    ]
    check = f"#if {' || '.join(wrong)}\n#error another level\n#endif\n"
    compiler = host_compilers(environ=environ(toolchain), cpu_level=level)("a2a3sim", RUNTIMES[0])
    assert compiler.compile_incore(source(tmp_path, check + LIBRARY), "aiv")


def test_kernels_for_an_aarch64_host_leave_by_the_c_library(
    toolchain: Path, tmp_path: Path
) -> None:
    """Clang has no way of its own out of a kernel there, but the headers have to work with it."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/zig").symlink_to(toolchain / "zig")
    document = json.loads((toolchain / "identity.json").read_text())
    document["tools"]["host_cxx"] = document["tools"]["aarch64_cxx"]
    (tmp_path / "tools/identity.json").write_text(json.dumps(document))
    compilers = host_compilers(environ=environ(tmp_path / "tools"), cpu_level="armv8-a")
    binary = compilers("a2a3sim", RUNTIMES[0]).compile_incore(source(tmp_path, KERNEL), "aiv")
    elf: Any = ELFFile(io.BytesIO(binary))
    assert elf.get_machine_arch() == "AArch64"
    symbols = elf.get_section_by_name(".dynsym").iter_symbols()
    undefined = {item.name for item in symbols if item["st_shndx"] == "SHN_UNDEF" and item.name}
    assert {"_setjmp", "longjmp"} <= undefined <= {"_setjmp", "longjmp", "memcpy", "memset"}
    for directory in (tmp_path, toolchain):
        assert str(directory).encode() not in binary


def test_a_kernel_may_use_the_standard_library_of_the_toolchain(
    toolchain: Path, tmp_path: Path
) -> None:
    compiler = host_compilers(environ=environ(toolchain))("a5sim", RUNTIMES[0])
    binary = compiler.compile_incore(source(tmp_path, LIBRARY), "aic")
    dynamic: Any = ELFFile(io.BytesIO(binary)).get_section_by_name(".dynamic")
    assert not [tag for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
    (tmp_path / "library.so").write_bytes(binary)
    function = ctypes.CDLL(str(tmp_path / "library.so")).library
    function.restype = ctypes.c_double
    assert function((ctypes.c_double * 3)(20.0, 30.0, 14.0), ctypes.c_long(3)) == 4.0


def test_nothing_else_is_written_and_nothing_is_left(toolchain: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    compiler = host_compilers(environ=environ(toolchain, TMPDIR=str(scratch), HOME=str(tmp_path)))
    before = {path: path.stat().st_mtime_ns for path in toolchain.iterdir()}
    assert compiler("a2a3sim", RUNTIMES[0]).compile_incore(source(tmp_path, LIBRARY), "aiv")
    assert list(scratch.iterdir()) == []
    assert {path: path.stat().st_mtime_ns for path in toolchain.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scratch", "source.cpp"]


def test_warm_fills_a_store_that_others_hit(place: Place, tmp_path: Path) -> None:
    """The command takes the policy and the toolchain from the environment, as requests do."""
    shell = Shell({"PATH": "/nonexistent", "HOME": str(tmp_path)})
    config = tmp_path / "warm.json"
    config.write_text(json.dumps({"schema_version": 1, "requests": [{"kernel": "doubled"}]}))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pypto.jit", "warm"),
            *("--module", "kernels", "--config", str(config)),
        ],
        cwd=place.modules,
        env={
            **place.environ(shell),
            "PYTHONPATH": os.pathsep.join([*place.environ(shell)["PYTHONPATH"].split(":"), "."]),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    stats = place.run(shell)["stats"]
    assert stats["ready_hits"] == 1
    assert stats["misses"] == 2
