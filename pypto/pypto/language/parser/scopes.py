"""Blocks that ``with`` opens, and ``for i in pl.spmd(n)``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType, MappingProxyType

from pypto.ir.nodes import FunctionKind, ManualScope, Scope, Stmt, TensorType
from pypto.ir.passes.rewrite import free_variables
from pypto.ir.passes.scope_scalars import orchestration_scalars
from pypto.language import functions as pl
from pypto.language import scheduling
from pypto.language.markers import Level
from pypto.language.parser.calls import call_site
from pypto.language.parser.diagnostics.exceptions import (
    ParserError,
    ParserSyntaxError,
    UnsupportedFeatureError,
)
from pypto.language.parser.expressions import evaluate
from pypto.language.parser.frame import Frame
from pypto.language.parser.scheduling import check_optimizations, kernel_of
from pypto.language.parser.site import CallSite
from pypto.language.parser.tasks import (
    PLAIN_TASK,
    TaskRequest,
    block_count,
    new_task,
    requested,
)
from pypto.language.parser.values import Value, show_value


def with_statement(frame: Frame, node: ast.With) -> None:
    """``with pl.at(...):`` and the other blocks."""
    if len(node.items) != 1:
        raise frame.error(UnsupportedFeatureError, node, "with opens one block at a time")
    opener = node.items[0].context_expr
    callee = evaluate(frame, opener.func) if isinstance(opener, ast.Call) else None
    handler = _BLOCKS.get(callee) if isinstance(callee, FunctionType) else None
    if handler is None:
        raise frame.error(
            UnsupportedFeatureError,
            opener,
            f"with {ast.unparse(opener)} cannot be used in a kernel; a with statement opens "
            "pl.at(level=pl.Level.CORE_GROUP), pl.spmd(n), pl.cluster() or pl.manual_scope()",
        )
    assert isinstance(opener, ast.Call)
    assert isinstance(callee, FunctionType)
    handler(frame, node, call_site(frame, opener, callee, ""))


def is_spmd_loop(frame: Frame, node: ast.For) -> bool:
    """Whether a loop runs over ``pl.spmd``."""
    return isinstance(node.iter, ast.Call) and evaluate(frame, node.iter.func) is scheduling.spmd


def spmd_loop(frame: Frame, node: ast.For) -> None:
    """``for i in pl.spmd(n):``."""
    assert isinstance(node.iter, ast.Call)
    if node.orelse:
        raise frame.error(UnsupportedFeatureError, node.orelse[0], "a loop cannot have an else")
    if not isinstance(node.target, ast.Name):
        raise frame.error(ParserSyntaxError, node.target, "a loop over pl.spmd has one variable")
    site = call_site(frame, node.iter, scheduling.spmd, "")  # type: ignore[arg-type]
    request = _spmd_request(node, site)
    _core_block(frame, node, _name_hint(site), request, node.target.id)


def _at(frame: Frame, node: ast.With, site: CallSite) -> None:
    if site.values["level"] is not Level.CORE_GROUP:
        raise site.wrong(
            "level", f"level must be pl.Level.CORE_GROUP, not {show_value(site.values['level'])}"
        )
    if site.values["role"] is not None:
        raise site.wrong(
            "role",
            f"role must be None, not {show_value(site.values['role'])}: a block of one core group "
            "has no other; leave it out",
        )
    check_optimizations(site)
    for parameter in ("allow_early_resolve", "windowize"):
        site.flag(parameter)
    name, request = _name_hint(site), requested(site)
    if frame.runs_blocks and node.items[0].optional_vars is None and _is_plain(request):
        frame.builder.block(frame, node.body)  # the blocks of pl.spmd are at a core already
        return
    _check_place(frame, node, site)
    _named(frame, node, request, lambda task: _core_block(frame, node, name, task))


def _spmd(frame: Frame, node: ast.With, site: CallSite) -> None:
    request, name = _spmd_request(node, site), _name_hint(site)

    def run(task: TaskRequest) -> None:
        call = _only_kernel_call(frame, node.body)
        if call is None:
            _core_block(frame, node, name, task)
            return
        frame.scheduled = (call, task)
        frame.builder.block(frame, node.body)

    _named(frame, node, request, run)


def _spmd_request(node: ast.stmt, site: CallSite) -> TaskRequest:
    check_optimizations(site)
    site.flag("sync_start")
    request = requested(site, blocks=block_count(site, "blocks", "core_num"))
    _check_place(site.frame, node, site)
    return request


def _cluster(frame: Frame, node: ast.With, site: CallSite) -> None:
    name = _name_hint(site)
    if node.items[0].optional_vars is not None:
        raise frame.error(ParserSyntaxError, node, f"{site.name} is no task, so as names nothing")
    if frame.runs_blocks or _submits(frame, node.body):
        frame.builder.block(frame, node.body)
        return
    _check_place(frame, node, site)
    _core_block(frame, node, name, PLAIN_TASK)


def _manual_scope(frame: Frame, node: ast.With, site: CallSite) -> None:
    _check_place(frame, node, site)
    if node.items[0].optional_vars is not None:
        raise frame.error(ParserSyntaxError, node, f"{site.name} is no task, so as names nothing")
    outer, inner = frame.body, list[Stmt]()
    frame.body = inner
    frame.builder.block(frame, node.body)
    frame.body = outer
    outer.append(ManualScope(tuple(inner), frame.source.span(node)))


_BLOCKS: Mapping[object, Callable[[Frame, ast.With, CallSite], None]] = MappingProxyType(
    {
        pl.at: _at,
        scheduling.spmd: _spmd,
        scheduling.cluster: _cluster,
        scheduling.manual_scope: _manual_scope,
    }
)


def _is_plain(request: TaskRequest) -> bool:
    return not (request.deps or request.no_deps or request.dumps)


def _named(
    frame: Frame, node: ast.With, request: TaskRequest, run: Callable[[TaskRequest], None]
) -> None:
    """Runs with the request, and binds the task's id to the name after ``as``."""
    target = node.items[0].optional_vars
    if target is None:
        run(request)
        return
    if not isinstance(target, ast.Name):
        raise frame.error(ParserSyntaxError, target, "as takes one name")
    task = new_task(frame, target.id)
    run(replace(request, task=task))
    frame.env[target.id] = task


def _name_hint(site: CallSite) -> str:
    name = site.values["name_hint"]
    if not isinstance(name, str) or (name and not (name.isidentifier() and name.isascii())):
        raise site.wrong("name_hint", f"name_hint must be an identifier, not {show_value(name)}")
    return name


def _check_place(frame: Frame, node: ast.stmt, site: CallSite) -> None:
    if frame.kind is FunctionKind.INCORE:
        raise frame.error(
            ParserSyntaxError,
            node,
            f"{site.name} has no place in a @pl.jit.incore function: all of it runs on a core "
            "already",
        )
    if frame.scope is not None:
        raise frame.error(ParserSyntaxError, node, f"{site.name} blocks cannot be nested")


def _core_block(
    frame: Frame,
    node: ast.With | ast.For,
    name: str,
    request: TaskRequest,
    variable: str = "",
) -> None:
    """A block that becomes a task; ``variable`` is bound to the index of the block."""
    outer, inner = frame.body, list[Stmt]()
    frame.values.scopes += 1
    frame.scope, frame.body, frame.block = frame.values.scopes, inner, node.body
    if request.blocks is not None:
        frame.values.block_scopes.add(frame.scope)
    if variable:
        frame.env[variable] = frame.emit("tile.get_block_idx", [], node, hint=variable)
    frame.builder.block(frame, node.body)
    frame.leave_scope(frame.scope, orchestration_scalars(inner))
    frame.scope, frame.body, frame.block = None, outer, None
    used = [var for var in free_variables(inner) if isinstance(var.type, TensorType)]
    schedule = request.schedule(frame, used)
    outer.append(Scope(name, tuple(inner), frame.source.span(node), schedule))


def _only_kernel_call(frame: Frame, body: Sequence[ast.stmt]) -> ast.Call | None:
    """The call that a body consists of, where it calls a core function."""
    match body:
        case [ast.Expr(value=ast.Call() as call)]:
            return call if _is_kernel(frame, call) else None
        case [ast.Assign(value=ast.Call() as call) | ast.AnnAssign(value=ast.Call() as call)]:
            return call if _is_kernel(frame, call) else None
    return None


def _is_kernel(frame: Frame, call: ast.Call) -> bool:
    kernel = kernel_of(_value(frame, call.func))
    return kernel is not None and kernel.kind is FunctionKind.INCORE


def _submits(frame: Frame, body: Sequence[ast.stmt]) -> bool:
    """Whether statements submit tasks of their own, so that a block around them is none."""
    calls = [node for stmt in body for node in ast.walk(stmt) if isinstance(node, ast.Call)]
    openers = (pl.at, scheduling.spmd, scheduling.submit, scheduling.spmd_submit)
    return any(
        any(_value(frame, call.func) is opener for opener in openers) or _is_kernel(frame, call)
        for call in calls
    )


def _value(frame: Frame, node: ast.expr) -> Value:
    """What a callee is, or ``None`` where that cannot be said yet."""
    try:
        return evaluate(frame, node)
    except ParserError:
        return None
