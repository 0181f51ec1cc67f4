"""The compile driver: from programs to artifacts."""

from __future__ import annotations

from pypto.compiler.driver import Assembler, BuiltSources, build_sources, lower
from pypto.compiler.entry import compile, compile_program, run
from pypto.compiler.errors import AssemblyFailed
from pypto.compiler.pass_record import PassRecord

__all__ = [
    "Assembler",
    "AssemblyFailed",
    "BuiltSources",
    "PassRecord",
    "build_sources",
    "compile",
    "compile_program",
    "lower",
    "run",
]
