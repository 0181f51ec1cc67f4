"""Calls of other kernel functions: incore functions become functions of the program, inline ones
are spliced in."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import replace

from pypto.ir.dtypes import TASK_ID
from pypto.ir.nodes import (
    Call,
    Dim,
    Direction,
    DynDim,
    FunctionKind,
    Operand,
    ScalarType,
    TensorType,
    Var,
)
from pypto.ir.typing_rules import show_type
from pypto.ir.view_rules import extent_fits
from pypto.language.parser.arrays import scalar_value
from pypto.language.parser.define import define_function
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.dynamic_axes import dynamic_axes
from pypto.language.parser.frame import Frame
from pypto.language.parser.liveness import live_after
from pypto.language.parser.partial import declared_shape
from pypto.language.parser.scalars import coerce, scalar_operand
from pypto.language.parser.signature import positional_count, read_signature
from pypto.language.parser.tasks import PLAIN_TASK, NoDep, TaskRequest
from pypto.language.parser.values import (
    Value,
    holds_runtime,
    is_number,
    is_scalar,
    is_tensor,
    is_tile,
    show_value,
)
from pypto.language.source import (
    Argument,
    ConstValue,
    FunctionSource,
    ParamAnnotation,
    ParamCategory,
)


def call_kernel_function(
    frame: Frame,
    callee: FunctionSource,
    node: ast.Call,
    args: Sequence[Value],
    keywords: dict[str, Value],
    hint: str,
    *,
    request: TaskRequest = PLAIN_TASK,
) -> Value:
    """The value of a call of a function decorated with one of ``pl.jit``'s decorators.

    ``request`` says how the task of a core function is scheduled.
    """
    if callee.kind is FunctionKind.ORCHESTRATION:
        raise frame.error(
            UnsupportedFeatureError,
            node,
            f"{callee.name!r} is an orchestration function, so it is entered from Python only; "
            "make it an incore, opaque or inline function to call it from a kernel",
        )
    if callee in frame.builder.active:
        raise frame.error(
            UnsupportedFeatureError, node, f"{callee.name!r} calls itself, which kernels cannot do"
        )
    bound = _bind(frame, callee, node, args, keywords)
    if callee.kind is FunctionKind.INLINE:
        _warn_of_directions(callee, bound)
        return _splice(frame, callee, node, bound)
    if frame.runs_blocks and callee.kind is FunctionKind.INCORE:
        return _splice(frame, callee, node, _on_core(frame, callee, node, bound))
    if frame.on_core:
        raise frame.error(
            InvalidOperationError,
            node,
            f"{callee.name!r} is a function of its own, so it cannot be called on a core; call it "
            "from the orchestration outside pl.at, or make it an inline function",
        )
    return _dispatch(frame, callee, node, bound, hint, request)


_Bound = list[tuple[ParamAnnotation, Value]]


def _bind(
    frame: Frame,
    callee: FunctionSource,
    node: ast.Call,
    args: Sequence[Value],
    keywords: dict[str, Value],
) -> _Bound:
    """Each parameter with its argument."""
    params = read_signature(callee)
    rest = dict(keywords)
    if len(args) > positional_count(callee):
        raise frame.error(
            ParserTypeError,
            node,
            f"{callee.name}: takes {positional_count(callee)} positional arguments, but got "
            f"{len(args)}",
        )
    bound: _Bound = []
    for index, param in enumerate(params):
        if index < len(args) and index < positional_count(callee):
            if param.name in rest:
                raise frame.error(
                    ParserTypeError, node, f"{callee.name}: {param.name!r} is given twice"
                )
            bound.append((param, args[index]))
        elif param.name in rest:
            bound.append((param, rest.pop(param.name)))
        elif param.has_default:
            bound.append((param, param.default))
        else:
            names = ", ".join(p.name for p in params)
            raise frame.error(
                ParserTypeError,
                node,
                f"{callee.name}: missing argument {param.name!r}; it takes ({names})",
            )
    if rest:
        raise frame.error(
            ParserTypeError, node, f"{callee.name}: has no parameter {next(iter(rest))!r}"
        )
    return bound


# --- inline functions ----------------------------------------------------------------------


def _warn_of_directions(callee: FunctionSource, bound: _Bound) -> None:
    if any(param.direction is not Direction.In for param, _ in bound):
        warnings.warn(
            f"{callee.name}: Direction annotations are deprecated on @pl.jit.inline functions; "
            "what the body writes goes to the caller's tensors",
            DeprecationWarning,
            stacklevel=2,
        )


def _on_core(frame: Frame, callee: FunctionSource, node: ast.Call, bound: _Bound) -> _Bound:
    """The arguments of a core function that becomes part of a block of ``pl.spmd``."""
    if callee.external is not None:
        raise frame.error(
            UnsupportedFeatureError,
            node,
            f"{callee.name!r} is a kernel in C++, so its call is the only statement of its "
            "'with pl.spmd(n):' block",
        )
    for param, value in bound:
        if isinstance(value, NoDep):
            raise frame.error(
                ParserTypeError,
                node,
                f"{callee.name}: argument {param.name!r}: pl.no_dep belongs to a task's own call; "
                "here name it in no_dep_args",
            )
    return bound


def _splice(frame: Frame, callee: FunctionSource, node: ast.Call, bound: _Bound) -> Value:
    inner = Frame(
        builder=frame.builder,
        source=callee,
        kind=frame.kind,
        values=frame.values,
        env={p.name: _inline_argument(frame, callee, node, p, v) for p, v in bound},
        live_after=live_after(callee.tree.body),
        body=frame.body,
        scope=frame.scope,
        inline=True,
    )
    frame.builder.parse_body(inner)
    return inner.returned


def _inline_argument(
    frame: Frame, callee: FunctionSource, node: ast.Call, param: ParamAnnotation, value: Value
) -> Value:
    what = f"{callee.name}: argument {param.name!r}"
    if param.category is ParamCategory.CONSTEXPR:
        _needs_static(frame, node, what, value)
    if param.category is ParamCategory.TENSOR:
        if not is_tensor(value):
            raise frame.error(
                ParserTypeError, node, f"{what} must be a tensor, not {show_value(value)}"
            )
        if param.type is not None:
            _tensor_argument(frame, node, what, param, value, {})
    if param.category is ParamCategory.SCALAR:
        assert isinstance(param.type, ScalarType)
        if param.type.dtype == TASK_ID:
            return scalar_value(frame, value, TASK_ID, node, what)
        scalar = scalar_operand(frame, value, node, what)
        if is_number(scalar):  # stays known, so that it may be a shape or a condition
            number = coerce(frame, scalar, param.type.dtype, node, what)
            assert not isinstance(number, Var)
            return number.value
        return coerce(frame, scalar, param.type.dtype, node, what)
    return value


def _needs_static(frame: Frame, node: ast.Call, what: str, value: Value) -> None:
    if holds_runtime(value):
        raise frame.error(
            ParserTypeError,
            node,
            f"{what} is pl.constexpr, so it must be known when the kernel is compiled, not "
            f"{show_value(value)}",
        )


# --- incore functions ----------------------------------------------------------------------


def _dispatch(
    frame: Frame,
    callee: FunctionSource,
    node: ast.Call,
    bound: _Bound,
    hint: str,
    request: TaskRequest,
) -> Value:
    hidden = tuple(("pl.no_dep", v.tensor) for _, v in bound if isinstance(v, NoDep))
    request = replace(request, no_deps=request.no_deps + hidden)
    bound = [(p, v.tensor if isinstance(v, NoDep) else v) for p, v in bound]
    extents: dict[str, Dim] = {}
    computed: dict[str, str] = {}
    dynamic = dynamic_axes(callee)
    arguments: dict[str, Argument] = {}
    declared: dict[str, tuple[int, ...]] = {}
    operands: list[Operand] = []
    for param, value in bound:
        what = f"{callee.name}: argument {param.name!r}"
        if param.category is ParamCategory.CONSTEXPR:
            _needs_static(frame, node, what, value)
            arguments[param.name] = ConstValue(value)
        elif param.category is ParamCategory.SCALAR:
            assert isinstance(param.type, ScalarType)
            scalar = scalar_operand(frame, value, node, what)
            operands.append(coerce(frame, scalar, param.type.dtype, node, what))
            arguments[param.name] = param.type
        elif is_tensor(value):
            type_ = _tensor_argument(frame, node, what, param, value, extents)
            asked = declared_shape(frame, value)
            if asked is not None and callee.external is None:
                assert isinstance(value.type, TensorType)
                type_, declared[param.name] = replace(type_, shape=value.type.shape), asked
            symbols = dynamic.get(param.name, {})
            shape = [DynDim(symbols[i]) if i in symbols else d for i, d in enumerate(type_.shape)]
            shape = [_own_extent(d, f"{param.name}.{i}", computed) for i, d in enumerate(shape)]
            # Where there are gaps is what the annotation says; passes find out the rest.
            adjacent = type_.adjacent if param.type is not None else None
            arguments[param.name] = replace(type_, shape=tuple(shape), adjacent=adjacent)
            operands.append(value)
        else:
            raise frame.error(ParserTypeError, node, _wrong_argument(what, param, value))
    name = define_function(frame.builder, callee, arguments, declared)
    return _emit_call(frame, name, node, operands, hint, request)


def _own_extent(dim: Dim, name: str, computed: dict[str, str]) -> Dim:
    """An extent that the caller computes, under a name that the callee has for it.

    Calls that differ in nothing but what they compute share one function.
    """
    if isinstance(dim, int) or dim.symbol.isidentifier():
        return dim
    return DynDim(computed.setdefault(dim.symbol, name), dim.limit)


def _wrong_argument(what: str, param: ParamAnnotation, value: Value) -> str:
    if param.category is ParamCategory.UNANNOTATED and is_scalar(value):
        return f"{what} needs an annotation, such as {param.name}: pl.Scalar[pl.INT32]"
    remedy = "; store it into a tensor first" if is_tile(value) else ""
    wrong = f"{what} must be a tensor, not {show_value(value)}{remedy}"
    if param.type is not None:
        return wrong
    return f"{wrong} (missing inferred tensor metadata for parameter {param.name!r})"


def _tensor_argument(
    frame: Frame,
    node: ast.Call,
    what: str,
    param: ParamAnnotation,
    value: Var,
    extents: dict[str, Dim],
) -> TensorType:
    """The parameter's type for this argument; ``extents`` holds what each symbol stands for."""
    given = value.type
    assert isinstance(given, TensorType)
    wanted = param.type
    if wanted is None:
        return given
    assert isinstance(wanted, TensorType)
    fits = len(given.shape) == len(wanted.shape) and given.dtype == wanted.dtype
    if fits:
        whole = declared_shape(frame, value) or given.shape
        for have, want in zip(whole, wanted.shape, strict=True):
            if isinstance(want, DynDim):
                # Whether two that are known at run time only are one, a run finds out.
                fits = fits and _agree(extents.setdefault(want.symbol, have), have)
            else:
                fits = fits and extent_fits(want, have)
    if not fits:
        raise frame.error(
            InvalidOperationError,
            node,
            f"{what} is a {show_type(given)}, but its annotation says {show_type(wanted)}",
        )
    return wanted


def _agree(one: Dim, other: Dim) -> bool:
    return one == other or not (isinstance(one, int) and isinstance(other, int))


def _emit_call(
    frame: Frame,
    name: str,
    node: ast.Call,
    operands: list[Operand],
    hint: str,
    request: TaskRequest,
) -> Value:
    schedule = request.schedule(frame, [operand for operand in operands if is_tensor(operand)])
    function = frame.builder.functions[name]
    results: dict[int, Var] = {}
    for index, (param, operand) in enumerate(zip(function.params, operands, strict=True)):
        if param.direction is Direction.In:
            continue
        assert isinstance(operand, Var)
        result = frame.new_var(hint or operand.name, operand.type)
        frame.values.record_write(result, operand)
        results[index] = result
    span = frame.source.span(node)
    frame.body.append(Call(name, tuple(operands), tuple(results.values()), span, schedule))
    values = tuple(results[index] for index in frame.builder.results[name])
    if not values:
        return None
    return values[0] if len(values) == 1 else values
