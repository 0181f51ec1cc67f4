"""Random programs of the language, as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from axes import Axes
from core_code import CoreCode
from hypothesis import strategies as st
from inexact import Inexact
from large import Large
from matrices import Matrices
from program_text import LETTERS, TILES, ProgramText
from scheduling import Scheduling
from tasks import Tasks


@dataclass(frozen=True)
class RandomProgram:
    """A program's text and what it has to be called with."""

    text: str
    # An entry of `pl.jit` called `main`, or a program's class called `Random`.
    jit: bool
    platform: str
    runtime: str
    # Name, element type, extents (None: at least `rows`, any number).
    tensors: tuple[tuple[str, str, tuple[int | None, ...]], ...]
    rows: int


def written(random: Random) -> RandomProgram:
    return _Writer(random).program()


# A program is one choice of Hypothesis: its own choices prefer the ends of what there is, and the
# same small programs again and again.
random_programs = st.randoms(use_true_random=True).map(written)


def mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


class _Writer:
    """Puts tasks into loops and branches, and a heading over them."""

    def __init__(self, random: Random) -> None:
        self.text = ProgramText(random)
        # Annotations of an entry that leave shapes and element types open.
        self.bare = self.text.jit and self.text.chance(30)
        self.core = CoreCode(self.text)
        self.tasks = Tasks(self.text, self.core)
        self.matrices = Matrices(self.text)
        self.scheduling = Scheduling(self.text, self.core)
        self.axes = Axes(self.text, self.core)
        self.large = Large(self.text, self.core)
        self.inexact = Inexact(self.text)

    def program(self) -> RandomProgram:
        t, (r, c) = self.text, self.text.shape
        height = None if t.dynamic else t.height
        tensors: list[tuple[str, str, tuple[int | None, ...]]] = []
        tensors += [(f"{x}_{d}", d, (height, c)) for d in t.dtypes for x in LETTERS]
        tensors += [("cube", t.dtypes[0], (TILES, r, c)), ("edge", t.dtypes[0], (c,))]
        tensors += [("near", t.inexact, (t.height, c)), ("far", t.inexact, (t.height, c))]
        tensors += [("total", t.dtypes[0], (r, c)), ("large", t.large[1], t.large[0])]
        tensors += [("square", t.dtypes[0], (r, r)), ("corner", t.dtypes[0], (c, c))]
        for _ in range(t.number(2, 5)):
            self.task_or_control(t.depth, [])
        text = "\n".join(t.lines)
        used = tuple(x for x in tensors if x[0].startswith(LETTERS) or mentions(text, x[0]))
        header = ", ".join(self.parameter(x) for x in used)
        scalar = "pl.INT64" if t.jit and t.chance(30) else "pl.Scalar[pl.INT64]"
        header += f", n: {scalar}, m: {scalar}"
        if t.jit and t.chance(40):
            header += ", turns: pl.constexpr = 2"
            text = re.sub(r"pl\.range\(2\)", "pl.range(turns)", text)
        if self.bare and t.dynamic:
            text = "".join(f"    {x[0]}.bind_dynamic(0, N)\n" for x in used if None in x[2]) + text
        return RandomProgram(
            self.module(header, text),
            t.jit,
            t.pick(["a2a3sim", "a5sim"]),
            "host_build_graph" if t.host_build_graph else "tensormap_and_ringbuffer",
            used,
            t.height,
        )

    def parameter(self, tensor: tuple[str, str, tuple[int | None, ...]]) -> str:
        name, dtype, extents = tensor
        type_ = self.text.tensor_type(dtype, *("N" if e is None else e for e in extents))
        return f"{name}: pl.InOut[{'pl.Tensor' if self.bare else type_}]"

    def module(self, header: str, body: str) -> str:
        t = self.text
        text = "from __future__ import annotations\n\n" if t.jit and t.chance(30) else ""
        text += 'import pypto.language as pl\n\nN = pl.dynamic("N")\n\n\n'
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
        kinds += [
            self.large.scope,
            self.axes.task,
            tasks.element,
            self.scheduling.chain,
            self.scheduling.waves,
        ]
        kinds += [self.submitted, self.inexact.scope, self.inexact.scope, self.inexact.scope]
        kinds += [matrices.tensors, matrices.tiles]
        self.text.pick(kinds)(depth, counters)

    def submitted(self, depth: int, counters: list[str]) -> None:
        dtype = self.text.pick(self.text.dtypes)
        self.scheduling.submitted(depth, counters, self.tasks.step(dtype, False), dtype)
