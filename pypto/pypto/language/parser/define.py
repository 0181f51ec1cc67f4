"""A function of the program: its parameters, its body, and what it turns out to write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from pypto.ir.nodes import (
    Direction,
    Function,
    Operand,
    Param,
    Return,
    TensorType,
    Var,
)
from pypto.ir.typing_rules import type_of
from pypto.language.parser.external import declare_external
from pypto.language.parser.frame import Builder, Frame, Values
from pypto.language.parser.liveness import live_after
from pypto.language.parser.signature import annotation_frame, read_signature
from pypto.language.parser.single_assignment import check_single_assignment
from pypto.language.parser.unread import without_unread_tasks
from pypto.language.source import Argument, ConstValue, FunctionSource


def define_function(
    builder: Builder,
    source: FunctionSource,
    arguments: Mapping[str, Argument],
    declared: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> str:
    """The name, in the program, of a function for the given argument types.

    Equal types and constants share one function. ``declared`` gives, for arguments that are valid
    in part, the extents that they were asked for with.
    """
    types = ((name, _key(argument)) for name, argument in arguments.items())
    key = (source, *types, tuple(declared.items()))
    if key in builder.specializations:
        return builder.specializations[key]
    name, count = source.name, 0
    while name in builder.functions:
        count += 1
        name = f"{source.name}_{count}"
    if source.external is not None:
        function = declare_external(builder, source, name, arguments)
    else:
        function = _parse(builder, source, name, arguments, declared)
    builder.specializations[key] = name
    builder.functions[name] = function
    return name


def _key(argument: Argument) -> object:
    # The type tells 1 from 1.0 and True, which are equal in Python.
    if isinstance(argument, ConstValue):
        return type(argument.value).__name__, repr(argument.value)
    return argument


def _parse(
    builder: Builder,
    source: FunctionSource,
    name: str,
    arguments: Mapping[str, Argument],
    declared: Mapping[str, tuple[int, ...]],
) -> Function:
    values = Values()
    env: dict[str, object] = {}
    for param in read_signature(source):
        argument = arguments[param.name]
        if isinstance(argument, ConstValue):
            env[param.name] = argument.value
            continue
        var = Var(param.name, argument)
        env[param.name] = var
        values.params.append(Param(var, param.direction))
        if isinstance(argument, TensorType):
            values.memory.add(var)
        if param.name in declared:
            values.declared[var] = declared[param.name]
    if source.strict_ssa:
        check_single_assignment(annotation_frame(source))
    frame = Frame(
        builder=builder,
        source=source,
        kind=source.kind,
        values=values,
        env=env,
        live_after=live_after(source.tree.body),
        body=[],
    )
    builder.parse_body(frame)
    if not frame.has_returned:
        frame.body.append(Return((), source.span(source.tree)))
    written = {values.whole(var) for var in values.written}
    params = tuple(_upgraded(param, written) for param in values.params)
    last = frame.body[-1]
    assert isinstance(last, Return)
    builder.results[name] = _results(values.params, last.values, frame.has_returned)
    types = tuple(type_of(value) for value in last.values)
    return Function(
        name,
        source.kind,
        params,
        without_unread_tasks(frame.body),
        types,
        source.span(source.tree),
        attrs=source.attrs,
    )


def _upgraded(param: Param, written: set[Var]) -> Param:
    """A tensor that the function writes is an output, whatever the signature says."""
    if param.direction is Direction.In and param.var in written:
        return replace(param, direction=Direction.InOut)
    return param


def _results(
    params: list[Param], returned: tuple[Operand, ...], has_returned: bool
) -> tuple[int, ...]:
    """The parameters that a call of the function evaluates to."""
    if has_returned:
        places = {param.var: index for index, param in enumerate(params)}
        return tuple(places[value] for value in returned if isinstance(value, Var))
    return tuple(i for i, param in enumerate(params) if param.direction is not Direction.In)
