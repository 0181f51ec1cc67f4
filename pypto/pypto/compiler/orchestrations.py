"""A program with several orchestration functions is several programs that share a directory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from pypto.ir.nodes import Call, Program
from pypto.ir.passes.rewrite import walk


def orchestrations(program: Program) -> Mapping[str, Program]:
    """A program of its own for each orchestration function, in order: that and all it calls."""
    return MappingProxyType({name: _only(program, name) for name in program.orchestrations})


def _only(program: Program, entry: str) -> Program:
    reached: set[str] = set()
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        called = program.functions[name].body
        waiting += [s.callee for s in walk(called) if isinstance(s, Call)]
    functions = {name: f for name, f in program.functions.items() if name in reached}
    return dataclasses.replace(program, functions=MappingProxyType(functions), entry=entry)
