"""Random programs of the language, as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from choices import Draw
from core_code import CoreCode
from hypothesis import strategies as st
from inexact import Inexact
from matrices import Matrices
from program_text import LETTERS, ProgramText
from scheduling import Scheduling
from tasks import LARGE, Tasks


@dataclass(frozen=True)
class RandomProgram:
    """A program's text and what it has to be called with."""

    text: str
    # An entry of `pl.jit` called `main`, or a program's class called `Random`.
    jit: bool
    platform: str
    runtime: str
    # Name, element type, extents (None: at least `rows`, any number).
    tensors: tuple[tuple[str, str, tuple[int | None, int]], ...]
    rows: int


def choose(draw: Draw) -> RandomProgram:
    return _Writer(draw).program()


random_programs: st.SearchStrategy[RandomProgram] = st.composite(choose)()


def mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


class _Writer:
    """Puts tasks into loops and branches, and a heading over them."""

    def __init__(self, draw: Draw) -> None:
        self.text = ProgramText(draw)
        self.core = CoreCode(self.text)
        self.tasks = Tasks(self.text, self.core)
        self.matrices = Matrices(self.text)
        self.scheduling = Scheduling(self.text, self.core)
        self.inexact = Inexact(self.text)

    def program(self) -> RandomProgram:
        t, (r, c) = self.text, self.text.shape
        height = None if t.dynamic else t.height
        tensors = [(f"{x}_{d}", d, (height, c)) for d in t.dtypes for x in LETTERS]
        tensors += [("near", t.inexact, (t.height, c)), ("far", t.inexact, (t.height, c))]
        tensors += [("total", t.dtypes[0], (r, c)), ("large", "FP32", LARGE)]
        tensors += [("square", t.dtypes[0], (r, r)), ("corner", t.dtypes[0], (c, c))]
        for _ in range(t.number(2, 5)):
            self.task_or_control(t.depth, [])
        text = "\n".join(t.lines)
        used = tuple(x for x in tensors if x[0].startswith(LETTERS) or mentions(text, x[0]))
        header = ", ".join(
            f"{n}: pl.InOut[{t.tensor_type(d, 'N' if h is None else h, w)}]"
            for n, d, (h, w) in used
        )
        header += ", n: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT64]"
        return RandomProgram(
            self.module(header, text),
            t.jit,
            t.pick(["a2a3sim", "a5sim"]),
            "host_build_graph" if t.host_build_graph else "tensormap_and_ringbuffer",
            used,
            t.height,
        )

    def module(self, header: str, body: str) -> str:
        t = self.text
        text = 'import pypto.language as pl\n\nN = pl.dynamic("N")\n\n\n'
        text += "@pl.jit.inline\n" if t.jit else "@pl.inline\n"
        text += "def added(t):\n    return pl.add(t, pl.abs(t))\n\n\n"
        if t.jit:
            text += "".join(f"{f}\n" for f in t.functions)
            return text + f"@pl.jit\ndef main({header}):\n{body}\n"
        text += "@pl.program\nclass Random:\n" + "".join(t.functions)
        text += "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        return text + f"    def main(self, {header}):\n{body}\n"

    def task_or_control(self, depth: int, counters: list[str]) -> None:
        t = self.text
        kind = t.number(0, 99)
        if depth >= t.depth + 2 or kind < 76:
            self.task(depth, counters)
        elif kind >= 88:
            counter = f"i{depth}"
            t.line(depth, f"for {counter} in pl.range({t.range(counters)}):")
            self.task_or_control(depth + 1, [*counters, counter])
            if t.chance(50):
                self.task_or_control(depth + 1, [*counters, counter])
        elif kind >= 80:
            t.line(depth, f"if {t.condition(counters)}:")
            self.task_or_control(depth + 1, counters)
            if t.chance(60):
                t.line(depth, "else:")
                self.task_or_control(depth + 1, counters)
        else:
            self.scheduling.while_loop(depth, counters, self.task_or_control)

    def task(self, depth: int, counters: list[str]) -> None:
        tasks, matrices = self.tasks, self.matrices
        kinds: list[Callable[[int, list[str]], None]] = [self.core.scope] * 4
        kinds += [tasks.disjoint, tasks.call, tasks.view, tasks.reshaped, tasks.exchange]
        kinds += [tasks.whole, tasks.element, self.scheduling.chain, self.scheduling.waves]
        kinds += [self.submitted, self.inexact.scope, self.inexact.scope, self.inexact.scope]
        kinds += [matrices.tensors, matrices.tiles]
        self.text.pick(kinds)(depth, counters)

    def submitted(self, depth: int, counters: list[str]) -> None:
        dtype = self.text.pick(self.text.dtypes)
        self.scheduling.submitted(depth, counters, self.tasks.step(dtype, False), dtype)
