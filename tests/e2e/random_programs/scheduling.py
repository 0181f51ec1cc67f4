"""Tasks whose order the program declares, and loops around tasks that end by a condition."""

from __future__ import annotations

from collections.abc import Callable

from choices import Name, Source
from core_code import CoreCode
from program_text import AT, TILES, ProgramText


class Scheduling:
    """Writes manual scopes, submitted tasks, arrays of task ids and `pl.while_`."""

    def __init__(self, text: ProgramText, core: CoreCode) -> None:
        self.text = text
        self.core = core

    def chain(self, depth: int, counters: list[str]) -> None:
        """Tasks whose order only `deps` says."""
        t = self.text
        t.line(depth, "with pl.manual_scope():")
        tasks = [t.fresh("task") for _ in range(t.number(2, 3))]
        for number, name in enumerate(tasks):
            deps = f", deps=[{tasks[number - 1]}]" if number else ""
            self.core.scope(depth + 1, counters, deps, name)

    def waves(self, depth: int, counters: list[str]) -> None:
        """Tasks on parts of their own, then one on all of them behind the ids in an array."""
        t, (r, c) = self.text, self.text.shape
        dtype, other = t.pick(t.dtypes), t.pick(t.dtypes)
        ids, last, task = t.fresh("ids"), t.fresh("last"), t.fresh("task")
        step, wave = f"i{depth}", f"s{depth}"
        t.line(
            depth, f"{ids}: pl.Array[{TILES}, pl.TASK_ID] = pl.array.create({TILES}, pl.TASK_ID)"
        )
        t.line(depth, f"{last}: pl.TaskId = None")
        t.line(depth, "with pl.manual_scope():")
        t.line(depth + 1, f"for {wave} in pl.range({t.pick(['1', '2', 'n'])}):")
        t.line(depth + 2, f"for {step} in pl.{t.pick(['range', 'parallel'])}({TILES}):")
        t.line(depth + 3, AT.replace("):", f", deps=[{last}]) as {task}:"))
        t.line(depth + 4, f"a = pl.load(x_{dtype}, [{step} * {r}, 0], [{r}, {c}])")
        source = Source(t.shape, [Name("a", dtype)], [*counters, step], scalars=("n", "m"))
        value = self.core.expressions.bound(source, other)
        t.line(depth + 4, f"y_{other} = pl.store({value}, [{step} * {r}, 0], y_{other})")
        t.line(depth + 3, f"{ids}[{step}] = {task}")
        self.core.scope(depth + 2, [*counters, wave], f", deps=[{ids}, {last}]", last)

    def submitted(self, depth: int, counters: list[str], step: str, dtype: str) -> None:
        """A core function twice, the second time on what the first wrote, ordered by its id.

        The memory between them is nobody else's, because it may be hidden from the order.
        """
        t, (r, c) = self.text, self.text.shape
        between, task, after = t.fresh("between"), t.fresh("task"), t.fresh("after")
        hidden = t.pick(["no_dep", "manual_dep", "no_dep_args", ""])
        manual = ", manual_dep=True" if hidden == "manual_dep" else ""
        t.line(depth, f"{between} = pl.create_tensor([{r}, {c}], dtype=pl.{dtype}{manual})")
        place = f"pl.no_dep({between})" if hidden == "no_dep" else between
        options = f", no_dep_args=[{between}]" if hidden == "no_dep_args" else ""
        row = t.offset(counters)
        t.line(depth, f"from_row = {row}")
        part = f"x_{dtype}[from_row : from_row + {r}, :]"
        t.line(depth, f"{between}, {task} = pl.submit({step}, {part}, n, {place}{options})")
        t.line(depth, f"{after} = y_{dtype}[{r}:{2 * r}, :]")
        options += f", deps=[None, {task}]"
        t.line(depth, f"pl.submit({step}, {place}, m, {after}{options})")

    def while_loop(
        self, depth: int, counters: list[str], task: Callable[[int, list[str]], None]
    ) -> None:
        t = self.text
        left, rest = t.fresh("left"), t.fresh("rest")
        t.line(depth, f"for ({left},) in pl.while_(init_values=({t.pick(['n', 'm % 3'])},)):")
        t.line(depth + 1, f"pl.cond({left} > 0)")
        task(depth + 1, [*counters, left])
        t.line(depth + 1, f"{rest} = pl.yield_({left} - 1)")
