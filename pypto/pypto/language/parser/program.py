"""The way in: a function's source and the types of its arguments give a program."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType

from pypto.ir.nodes import DynDim, Program, ScalarType, TensorType
from pypto.ir.typing_rules import MAX_RANK, show_type
from pypto.language.parser.calls import call
from pypto.language.parser.define import define_function
from pypto.language.parser.diagnostics.exceptions import ParserTypeError, UnsupportedFeatureError
from pypto.language.parser.dynamic_axes import dynamic_axes
from pypto.language.parser.frame import Builder, Frame
from pypto.language.parser.signature import annotation_frame, read_signature
from pypto.language.parser.statements import block
from pypto.language.source import (
    Argument,
    CapturedAttributes,
    ConstValue,
    FunctionSource,
    ParamAnnotation,
    ParamCategory,
)


def parse_program(
    entry: FunctionSource, arguments: Mapping[str, Argument], *, name: str
) -> Program:
    """The frontend form of the program whose entry is called with ``arguments``.

    ``arguments`` maps every parameter without a default to its type, or to its value where it is
    ``pl.constexpr``. Raises a :class:`ParserError` that points into the user's file. The body is
    never executed.
    """
    frame = annotation_frame(entry)
    bound = _bound(frame, entry, arguments)
    builder = Builder(call, block, _attributes(entry, bound))
    try:
        defined = define_function(builder, entry, bound)
    except RecursionError:
        raise frame.error(
            UnsupportedFeatureError, entry.tree, f"the body of {entry.name} is nested too deeply"
        ) from None
    finally:
        if builder.prints and sys.stdout is not None:  # a service may have closed it
            sys.stdout.write("".join(line + "\n" for line in builder.prints))
    # Callees were finished before their callers, so insertion order is callees first.
    functions = MappingProxyType(dict(builder.functions))
    return Program(name, functions, defined, MappingProxyType(builder.sources))


def _attributes(entry: FunctionSource, bound: Mapping[str, Argument]) -> CapturedAttributes:
    """What was captured of the entry's outside and of its constants."""
    constants = [item.attributes.values for item in bound.values() if isinstance(item, ConstValue)]
    if not any(constants):
        return entry.attributes
    merged = dict(entry.attributes.values)
    for values in constants:
        merged.update(values)
    return CapturedAttributes(merged)


def bind_arguments(entry: FunctionSource, arguments: Mapping[str, Argument]) -> dict[str, Argument]:
    """What every parameter of the entry is, in the order they are declared.

    Takes what `parse_program` takes and raises what that does for arguments that do not fit the
    declaration; the body is not looked at.
    """
    return _bound(annotation_frame(entry), entry, arguments)


def _bound(
    frame: Frame, entry: FunctionSource, arguments: Mapping[str, Argument]
) -> dict[str, Argument]:
    dynamic = dynamic_axes(entry)
    bound: dict[str, Argument] = {}
    for param in read_signature(entry):
        bound[param.name] = _argument(frame, param, arguments.get(param.name), dynamic)
    unknown = [key for key in arguments if key not in bound]
    if unknown:
        raise frame.error(
            ParserTypeError, entry.tree, f"{entry.name} has no parameter {unknown[0]!r}"
        )
    _check_symbols(frame, arguments, bound)
    return bound


def _check_symbols(
    frame: Frame, given: Mapping[str, Argument], bound: Mapping[str, Argument]
) -> None:
    """Axes that have one symbol have one extent, where arguments say which."""
    known: dict[str, tuple[str, int, int]] = {}
    for name, argument in bound.items():
        sample = given.get(name)
        if not isinstance(argument, TensorType) or not isinstance(sample, TensorType):
            continue
        for axis, (dim, extent) in enumerate(zip(argument.shape, sample.shape, strict=True)):
            if not isinstance(dim, DynDim) or not isinstance(extent, int):
                continue
            other, at, first = known.setdefault(dim.symbol, (name, axis, extent))
            if first != extent:
                raise frame.error(
                    ParserTypeError,
                    frame.source.tree,
                    f"parameters {other!r} and {name!r} share the extent {dim.symbol}, but axis "
                    f"{at} of {other!r} has {first} elements and axis {axis} of {name!r} {extent}",
                )


def _argument(
    frame: Frame,
    param: ParamAnnotation,
    given: Argument | None,
    dynamic: Mapping[str, Mapping[int, str]],
) -> Argument:
    what = f"parameter {param.name!r}"
    node = frame.source.tree
    if given is None and param.category is ParamCategory.CONSTEXPR and param.has_default:
        return ConstValue(param.default)
    if given is None and isinstance(param.type, ScalarType | TensorType):
        given = param.type
    if given is None:
        raise frame.error(ParserTypeError, node, f"{what} of {frame.source.name} has no argument")
    wanted_const = param.category is ParamCategory.CONSTEXPR
    if isinstance(given, ConstValue) != wanted_const:
        shown = "a constant" if isinstance(given, ConstValue) else f"a {show_type(given)}"
        raise frame.error(ParserTypeError, node, f"{what} cannot be {shown}")
    if isinstance(given, ConstValue):
        return given
    if isinstance(given, ScalarType) or isinstance(param.type, ScalarType):
        if param.type is not None and param.type != given:
            raise frame.error(
                ParserTypeError,
                node,
                f"{what} is declared a {show_type(param.type)}, but the argument is a "
                f"{show_type(given)}",
            )
        return given
    return _tensor(frame, param, given, dynamic.get(param.name, {}))


def _tensor(
    frame: Frame, param: ParamAnnotation, given: TensorType, symbols: Mapping[int, str]
) -> TensorType:
    shape = list(given.shape)
    if not 1 <= len(shape) <= MAX_RANK:
        raise frame.error(
            ParserTypeError,
            frame.source.tree,
            f"parameter {param.name!r} must have 1 to {MAX_RANK} dimensions, but the argument is "
            f"a {show_type(given)}; pass a reshaped view",
        )
    if isinstance(param.type, TensorType):
        wanted = param.type
        fits = len(wanted.shape) == len(shape) and wanted.dtype == given.dtype
        for axis, want in enumerate(wanted.shape if fits else ()):
            if isinstance(want, DynDim):
                shape[axis] = want
            else:
                fits = fits and shape[axis] == want
        if not fits:
            raise frame.error(
                ParserTypeError,
                frame.source.tree,
                f"parameter {param.name!r} is declared a {show_type(wanted)}, but the argument "
                f"is a {show_type(given)}",
            )
    for axis, symbol in symbols.items():
        if axis >= len(shape):
            raise frame.error(
                ParserTypeError,
                frame.source.tree,
                f"bind_dynamic: axis {axis} is out of range for {param.name!r}, a "
                f"{show_type(given)}",
            )
        shape[axis] = DynDim(symbol)
    layout = param.type.layout if isinstance(param.type, TensorType) else given.layout
    return TensorType(tuple(shape), given.dtype, layout)
