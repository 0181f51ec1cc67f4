"""Builds with an assembler that only writes what the compiler needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pypto.backend import target_of
from pypto.compiler import Assembler, BuiltSources, build_sources
from pypto.compiler.build_options import BuildOptions
from pypto.ir.nodes import Program

sys.path.insert(0, os.path.dirname(__file__))

from copy_programs import FAKE_PTOAS

Build = Callable[..., BuiltSources]


@pytest.fixture
def assembler(tmp_path: Path) -> Assembler:
    ptoas = tmp_path / "ptoas"
    ptoas.write_text(FAKE_PTOAS)
    ptoas.chmod(0o755)
    return Assembler(ptoas, dict(os.environ), 20.0)


@pytest.fixture
def build(assembler: Assembler) -> Build:
    def run(
        program: Program, output: Path, platform: str = "a2a3sim", **options: object
    ) -> BuiltSources:
        chosen = BuildOptions(target_of(platform), **options)  # type: ignore[arg-type]
        used = assembler if chosen.assemble else None
        return build_sources(program, output, options=chosen, assembler=used)

    return run
