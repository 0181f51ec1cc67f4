"""Calls that submit tasks and say how they are scheduled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pypto.ir.nodes import FunctionKind, Operand
from pypto.ir.typing_rules import is_whole
from pypto.language import scheduling as pl
from pypto.language.markers import SplitMode
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserTypeError,
)
from pypto.language.parser.invoke import call_kernel_function
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.tasks import NoDep, block_count, new_task, requested
from pypto.language.parser.values import Value, show_value
from pypto.language.program_style import InlineFunction, SourceFunction
from pypto.language.source import FunctionSource, KernelFunction


@dataclass(frozen=True, slots=True)
class Optimization:
    """An entry of ``optimizations=[...]``. None of them changes a result."""

    name: str


def kernel_of(callee: Value) -> FunctionSource | None:
    """The kernel function that a callable value stands for, if it is one."""
    if isinstance(callee, InlineFunction | SourceFunction):
        callee = callee.source
    elif isinstance(callee, KernelFunction):
        callee = callee.kernel_source()
    return callee if isinstance(callee, FunctionSource) else None


def _submit(site: CallSite) -> Value:
    return _submitted(site, None)


def _spmd_submit(site: CallSite) -> Value:
    site.flag("sync_start")
    return _submitted(site, block_count(site, "core_num"))


def _submitted(site: CallSite, blocks: Operand | None) -> Value:
    kernel = kernel_of(site.values["kernel"])
    if kernel is None or kernel.kind is not FunctionKind.INCORE:
        given = show_value(site.values["kernel"] if kernel is None else kernel)
        raise site.wrong("kernel", f"submits a core function, such as @pl.jit.incore, not {given}")
    if site.frame.on_core:
        raise site.frame.error(
            InvalidOperationError, site.node, f"{site.name}: submits a task, which a core cannot do"
        )
    task = new_task(site.frame, site.hint or "task")
    request = requested(site, blocks=blocks, task=task)
    args, keywords = site.values["args"], site.values["kwargs"]
    assert isinstance(args, tuple)
    assert isinstance(keywords, dict)
    value = call_kernel_function(site.frame, kernel, site.node, args, keywords, "", request=request)
    if value is None:
        return task
    return (*value, task) if isinstance(value, tuple) else (value, task)


def _no_dep(site: CallSite) -> Value:
    return NoDep(site.tensor("tensor"))


def _dump_tag(site: CallSite) -> Value:
    tensor = site.tensor("tensor")
    site.frame.values.dump_tags.add(site.frame.values.root(tensor))
    return tensor


def _split(site: CallSite) -> Value:
    if not isinstance(site.values["mode"], SplitMode):
        shown = show_value(site.values["mode"])
        raise site.wrong("mode", f"mode must be a pl.SplitMode, not {shown}")
    return Optimization(site.name)


def _cross_core_slot(site: CallSite) -> Value:
    count = site.values["slot_num"]
    if not is_whole(count) or count < 1:
        raise site.wrong("slot_num", f"slot_num must be a positive int, not {show_value(count)}")
    return Optimization(site.name)


def check_optimizations(site: CallSite) -> None:
    """Refuses what ``optimizations`` cannot hold."""
    value = site.values["optimizations"]
    for item in () if value is None else site.sequence("optimizations"):
        if not isinstance(item, Optimization):
            raise site.wrong(
                "optimizations",
                "optimizations is a list of pl.split(mode) and pl.cross_core_slot(slot_num=), not "
                f"of {show_value(item)}",
                ParserTypeError,
            )


def _place(site: CallSite) -> Value:
    site.needs_core()
    return site.emit(site.name.removeprefix("pl."), [])


SCHEDULING: Mapping[object, Handler] = MappingProxyType(
    {
        pl.submit: _submit,
        pl.spmd_submit: _spmd_submit,
        pl.no_dep: _no_dep,
        pl.dump_tag: _dump_tag,
        pl.split: _split,
        pl.cross_core_slot: _cross_core_slot,
        pl.get_block_idx: _place,
        pl.get_block_num: _place,
    }
)
