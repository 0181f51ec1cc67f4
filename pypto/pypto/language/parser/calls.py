"""Call expressions: language functions, other kernel functions, and pure Python functions."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType, MappingProxyType

from pypto.ir.dtypes import FP32, INDEX
from pypto.ir.nodes import Const, Var
from pypto.language import array, markers, scheduling, shaping
from pypto.language import functions as language
from pypto.language.parser.arrays import ARRAYS
from pypto.language.parser.assigning import ASSIGNING
from pypto.language.parser.compile_time import COMPILE_TIME
from pypto.language.parser.compute import COMPUTE
from pypto.language.parser.diagnostics.exceptions import (
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.elements import ELEMENTS
from pypto.language.parser.expressions import evaluate
from pypto.language.parser.folding import is_pure
from pypto.language.parser.frame import Frame, did_you_mean
from pypto.language.parser.invoke import call_kernel_function
from pypto.language.parser.masks import MASKS
from pypto.language.parser.matrices import MATRICES
from pypto.language.parser.movement import MOVEMENT
from pypto.language.parser.partial import on_core
from pypto.language.parser.scalars import absolute_scalar, fold, named_scalar, scalar_operand
from pypto.language.parser.scheduling import SCHEDULING, kernel_of
from pypto.language.parser.signature import marker_value
from pypto.language.parser.site import CallSite, Handler
from pypto.language.parser.tasks import PLAIN_TASK
from pypto.language.parser.values import Value, holds_runtime, is_tensor, show_value
from pypto.language.parser.windows import WINDOWS

HANDLERS: Mapping[object, Handler] = MappingProxyType(
    {
        **ASSIGNING,
        **WINDOWS,
        **MOVEMENT,
        **ELEMENTS,
        **COMPUTE,
        **MASKS,
        **MATRICES,
        **COMPILE_TIME,
        **SCHEDULING,
        **ARRAYS,
    }
)

# Those that compute with whole tensors.
_COMPUTING = frozenset(callee for calls in (COMPUTE, MASKS, MATRICES) for callee in calls) | {
    shaping.reshape,
    language.assign,
}


def call(frame: Frame, node: ast.Call, hint: str = "") -> Value:
    """The value of a call expression."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "bind_dynamic":
        if is_tensor(evaluate(frame, node.func.value)):
            return None  # read with the signature
    callee = evaluate(frame, node.func)
    if (kernel := kernel_of(callee)) is not None:
        args, keywords = _arguments(frame, node)
        request = PLAIN_TASK
        if frame.scheduled is not None and frame.scheduled[0] is node:
            request, frame.scheduled = frame.scheduled[1], None
        return call_kernel_function(frame, kernel, node, args, keywords, hint, request=request)
    if isinstance(callee, FunctionType) and callee in HANDLERS:
        site = call_site(frame, node, callee, hint)
        if callee in _COMPUTING:
            values = {k: on_core(frame, v, site.at(k)) for k, v in site.values.items()}
            site = replace(site, values=values)
        return HANDLERS[callee](site)
    if is_pure(callee):
        return _call_pure(frame, node, callee, hint)
    if any(callee is value for value in markers.VALUES):
        return marker_value(frame, node, callee)
    raise frame.error(UnsupportedFeatureError, node, _not_callable(node, callee))


_NAMES: Mapping[object, str] = MappingProxyType(
    {
        language.assign: "pl.tensor.assign",
        language.dim: "pl.tensor.dim",
        language.full_tensor: "pl.tensor.full",
        language.full_tile: "pl.tile.full",
        scheduling.get_block_idx: "pl.tile.get_block_idx",
        scheduling.get_block_num: "pl.tile.get_block_num",
        array.create: "pl.array.create",
        array.read: "pl.array.read",
        array.write: "pl.array.write",
    }
)


def call_site(frame: Frame, node: ast.Call, callee: FunctionType, hint: str) -> CallSite:
    """A call of a language function with its arguments bound and evaluated."""
    name = _NAMES.get(callee, f"pl.{callee.__name__}")
    args, keywords = _arguments(frame, node)
    signature = _signature(callee)
    others = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    unknown = [word for word in keywords if word not in signature.parameters and not others]
    if unknown:
        close = did_you_mean(unknown[0], signature.parameters)
        takes = close or f"; it takes {', '.join(signature.parameters)}"
        raise frame.error(ParserTypeError, node, f"{name}: has no parameter {unknown[0]!r}{takes}")
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError as error:
        raise frame.error(
            ParserTypeError,
            node,
            f"{name}: {error}; it takes ({', '.join(signature.parameters)})",
        ) from None
    places = signature.bind(*node.args, **{k.arg or "": k.value for k in node.keywords}).arguments
    bound.apply_defaults()
    nodes = {k: v for k, v in places.items() if isinstance(v, ast.AST)}
    return CallSite(frame, node, name, hint, bound.arguments, nodes)


@functools.cache
def _signature(callee: FunctionType) -> inspect.Signature:
    return inspect.signature(callee)


def _arguments(frame: Frame, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
    args = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            raise frame.error(
                UnsupportedFeatureError, argument, "arguments cannot be unpacked with *"
            )
        args.append(evaluate(frame, argument))
    keywords = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise frame.error(
                UnsupportedFeatureError, keyword.value, "arguments cannot be unpacked with **"
            )
        keywords[keyword.arg] = evaluate(frame, keyword.value)
    return args, keywords


def _not_callable(node: ast.Call, callee: Value) -> str:
    written = ast.unparse(node.func)
    if callee is builtins.print:
        return "print does not exist in a kernel; pl.static_print shows values while compiling"
    if callee is builtins.range:
        return "range does not exist in a kernel; use pl.range, as 'for i in pl.range(n):'"
    if isinstance(callee, FunctionType):
        return (
            f"{written!r} is a plain Python function, which a kernel cannot call; decorate it "
            "with @pl.jit.inline or @pl.jit.incore"
        )
    if callable(callee):
        return f"{written!r} cannot be called in a kernel"
    return f"{written!r} is {show_value(callee)}, which cannot be called"


def _call_pure(frame: Frame, node: ast.Call, callee: object, hint: str) -> Value:
    name = ast.unparse(node.func)
    args, keywords = _arguments(frame, node)
    if keywords:
        raise frame.error(UnsupportedFeatureError, node, f"{name}: takes no keywords in a kernel")
    if callee is builtins.len and len(args) == 1 and isinstance(args[0], list | tuple):
        return len(args[0])
    if not holds_runtime(args):
        return fold(frame, callee, tuple(args), node, name)
    scalars = [scalar_operand(frame, value, node, f"argument of {name}") for value in args]
    if callee in (builtins.min, builtins.max) and len(scalars) > 1:
        result = scalars[0]
        for scalar in scalars[1:]:
            result = named_scalar(frame, name, result, scalar, node, name, hint)
        return result
    if callee is builtins.abs and len(scalars) == 1:
        return absolute_scalar(frame, scalars[0], node, name, hint)
    if callee in (builtins.int, builtins.float) and len(scalars) == 1:
        scalar, dtype = scalars[0], INDEX if callee is builtins.int else FP32
        assert isinstance(scalar, Var | Const)  # a number would have been folded
        return frame.emit("scalar.cast", [scalar], node, hint=hint, attrs={"dtype": dtype})
    raise frame.error(
        UnsupportedFeatureError,
        node,
        f"{name}: its arguments must be known when the kernel is compiled",
    )
