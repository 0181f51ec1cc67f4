"""A small toolchain: two files of a compiler and the SDK that it is declared for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from toolchain_directory import Tool, assemble

LABELS = {
    "device_toolchain": "//x:kernel_compiler",
    "pto_isa": "//x:pto_isa",
    "ptoas": "//x:ptoas",
    "runtime": "//x:sdk",
}
TOOLS = (
    Tool("host_cxx", ("cc/bin/c++", "-target", "x86_64"), "clang"),
    Tool("aarch64_cxx", ("cc/bin/c++", "-target", "aarch64"), "clang"),
)


@pytest.fixture
def labels() -> Mapping[str, str]:
    return LABELS


@pytest.fixture
def tools() -> Sequence[Tool]:
    return TOOLS


@pytest.fixture
def sdk(tmp_path: Path) -> Path:
    root = tmp_path / "sdk"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "ptoas").write_bytes(b"the assembler")
    (root / "sdk.json").write_text(json.dumps({"revision": "1" * 64}))
    (root / "pto_isa.pin").write_text("2" * 64 + "\n")
    return root


@pytest.fixture
def sources(tmp_path: Path) -> Mapping[str, Path]:
    """The files by place; the headers are given as one directory."""
    root = tmp_path / "sources"
    for name, content in {
        "c++": b"the compiler",
        "include/b.h": b"a header",
        "include/a/a.h": b"a header",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return {"cc/include": root / "include", "cc/bin/c++": root / "c++"}


@pytest.fixture
def make(tmp_path: Path, sdk: Path, sources: Mapping[str, Path]) -> Callable[[str], Path]:
    """Makes the toolchain directory of that name."""

    def made(name: str) -> Path:
        out = tmp_path / name
        out.mkdir(parents=True)
        assemble(out, sdk, LABELS, TOOLS, sources)
        return out

    return made
