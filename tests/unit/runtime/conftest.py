"""A miniature SDK, and a compiler that only records how it was called."""

from __future__ import annotations

import json
import shutil
import stat
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TARGET_HEADER = """
#ifndef ADMITTED
#error "this target is not admitted"
#endif
#define FORCED_HEADER 1
"""

KERNEL = 'extern "C" __attribute__((visibility("default"))) void kernel_entry(long*) {}\n'


def sdk_document() -> dict[str, Any]:
    """What the sdk.json of the miniature says; tests change a copy."""
    incore = {
        "tool": "host_cxx",
        "flags": ["-std=c++17", "-O1", "-fPIC", "-shared", "-Wl,--build-id=sha1"],
        "core_flags": {"aiv": ["-DVECTOR=1"], "aic": ["-DCUBE=1"]},
        "forced_header": "include/pto/sim/target.hpp",
        "admission": "-DADMITTED=1",
        "include_dirs": ["include"],
    }
    orchestration = {
        "tool": "host_cxx",
        "flags": ["-std=c++17", "-fPIC", "-shared", "-pthread", "-Wl,--build-id=sha1"],
        "include_dirs": ["include"],
        "helper_sources": ["src/support.cpp"],
    }
    simulated = {
        "host": True,
        "incore": incore,
        "orchestration": {
            "host_build_graph": orchestration,
            "tensormap_and_ringbuffer": orchestration,
        },
    }
    onboard = {
        "host": False,
        "incore": None,
        "needs": "the CANN toolkit",
        "orchestration": {
            "host_build_graph": orchestration,
            "tensormap_and_ringbuffer": {**orchestration, "tool": "aarch64_cxx"},
        },
    }
    document: dict[str, Any] = {
        "schema": 2,
        "revision": "ab" * 32,
        "tools": {"host_cxx": "g++", "aarch64_cxx": "aarch64-linux-gnu-g++"},
        "dialects": {
            "gcc": {"instead": {}, "adds": [], "link": None},
            "zig": {
                "instead": {"-fPIC": ["-fpic", "-DPIC"], "-std=c++17": []},
                "adds": ["-DADDED"],
                "link": ["-DLINKED"],
            },
        },
        "targets": {
            "a2a3sim": {"arch": "a2a3", **simulated},
            "a5sim": {"arch": "a5", **simulated},
            "a2a3": {"arch": "a2a3", **onboard},
            "a5": {"arch": "a5", **onboard},
        },
        "cpu_levels": {"x86-64": [], "x86-64-v3": ["-DLEVEL=3"]},
        "limits": {"a2a3": {"vec_bytes": 196608}},
    }
    copy: dict[str, Any] = json.loads(json.dumps(document))
    return copy


def write_sdk(root: Path, document: Mapping[str, Any]) -> Path:
    """Make the miniature SDK in ``root``."""
    for directory in ("include/pto/sim", "src", "bin"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    (root / "include/pto/sim/target.hpp").write_text(TARGET_HEADER)
    (root / "src/support.cpp").write_text('extern "C" int framework_bind_runtime() { return 7; }\n')
    (root / "sdk.json").write_text(json.dumps(document))
    return root


@pytest.fixture
def sdk_root(tmp_path: Path) -> Path:
    return write_sdk(tmp_path / "sdk", sdk_document())


@dataclass(frozen=True)
class FakeCompiler:
    """An executable that appends each invocation to a log and then behaves as told.

    It copies the file ``output`` to its ``-o`` argument; where that is missing it writes nothing.
    ``behaviour`` is Python that runs first, with ``argv`` and ``source`` in scope.
    """

    directory: Path
    log: Path
    output: Path

    def calls(self) -> list[dict[str, Any]]:
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def fake_compiler(tmp_path: Path) -> Callable[..., FakeCompiler]:
    def make(
        behaviour: str = "", *, name: str = "g++", output: bytes | None = None
    ) -> FakeCompiler:
        directory = tmp_path / f"tools-{name}"
        directory.mkdir(exist_ok=True)
        fake = FakeCompiler(directory, tmp_path / f"{name}.log", tmp_path / f"{name}.output")
        if output is not None:
            fake.output.write_bytes(output)
        script = directory / name
        script.write_text(
            f"#!{sys.executable} -IS\n"
            + textwrap.dedent(
                f"""
                import json, os, shutil, sys, time
                argv = sys.argv[1:]
                entry = dict(argv=argv, program=sys.argv[0], cwd=os.getcwd(), env=dict(os.environ))
                with open({str(fake.log)!r}, "a") as log:
                    log.write(json.dumps(entry) + "\\n")
                source = next(
                    (item for item in argv if item.endswith(".cpp") and item[0] == "/"), None
                )
                open(os.path.join(os.environ["TMPDIR"], "intermediate.o"), "w").close()
                """
            )
            + textwrap.dedent(behaviour)
            + textwrap.dedent(
                f"""
                if os.path.exists({str(fake.output)!r}):
                    shutil.copyfile({str(fake.output)!r}, argv[argv.index("-o") + 1])
                """
            )
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return fake

    return make


@pytest.fixture(scope="session")
def gxx() -> str:
    found = shutil.which("g++")
    if found is None:
        pytest.skip("no g++ on PATH")
    return found
