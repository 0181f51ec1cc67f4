"""Functions and classes whose annotations say every type: parsed when they are decorated."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from types import MappingProxyType

from pypto.ir.nodes import DynDim, Function, FunctionKind, Program, ScalarType, TensorType
from pypto.language.parser.calls import call
from pypto.language.parser.define import define_function
from pypto.language.parser.diagnostics.exceptions import (
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.dynamic_axes import dynamic_axes
from pypto.language.parser.frame import Builder
from pypto.language.parser.signature import annotation_frame, read_signature
from pypto.language.parser.statements import block
from pypto.language.program_style import SourceFunction
from pypto.language.source import (
    NO_ATTRIBUTES,
    Argument,
    ConstValue,
    FunctionSource,
    ParamCategory,
)


class Methods:
    """What ``self`` is in a method: the functions of its program, by name."""

    def __init__(self, sources: Mapping[str, FunctionSource]) -> None:
        self._sources = sources

    def __getattr__(self, name: str) -> FunctionSource:
        try:
            return self._sources[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return list(self._sources)


def parse_class(name: str, methods: Sequence[FunctionSource], *, strict_ssa: bool) -> Program:
    """The program of a class's methods, each with ``self`` taken off.

    Raises a :class:`ParserError` that points into the user's file.
    """
    sources: dict[str, FunctionSource] = {}
    siblings = Methods(sources)
    for method in methods:
        sources[method.name] = replace(
            method,
            namespace=MappingProxyType({**method.namespace, "self": siblings}),
            strict_ssa=method.strict_ssa or strict_ssa,
        )
    with _builder() as builder:
        for source in sources.values():
            if source.kind is FunctionKind.INLINE or _open_constants(source):
                check_signature(source)
            else:
                _define(builder, source)
    functions = MappingProxyType(dict(builder.functions))
    if not functions:
        only = next(iter(sources.values()))
        raise annotation_frame(only).error(
            ParserSyntaxError,
            only.tree,
            f"the program {name!r} has inline functions only, which leave nothing behind; "
            "decorate one with @pl.function(type=pl.FunctionType.Orchestration)",
        )
    return Program(name, functions, _entry(functions), MappingProxyType(builder.sources))


def _entry(functions: Mapping[str, Function]) -> str:
    """What is run: an orchestration, an opaque function that was called by none, the last."""
    kinds = {name: function.func_type for name, function in functions.items()}
    for name, kind in kinds.items():
        if kind is FunctionKind.ORCHESTRATION:
            return name
    # Callers stand after their callees.
    opaque = [name for name, kind in kinds.items() if kind is FunctionKind.OPAQUE]
    return opaque[-1] if opaque else list(kinds)[-1]


def parse_function(source: FunctionSource) -> SourceFunction:
    """A function that stands alone, with those that it calls checked on the way."""
    constants = _open_constants(source)
    if constants:
        raise annotation_frame(source).error(
            ParserTypeError,
            _parameters(source)[constants[0]],
            f"parameter {constants[0]!r} of {source.name!r} is pl.constexpr and has no default, so "
            "nothing can be parsed before a call says its value; make it a method of the program "
            "that calls it, or an inline function",
        )
    with _builder() as builder:
        name = _define(builder, source)
    function = builder.functions[name]
    values = {field.name: getattr(function, field.name) for field in fields(function)}
    return SourceFunction(**values, source=source)


def check_signature(source: FunctionSource) -> None:
    """Looks at what can be seen of a function that is parsed for each call of it."""
    read_signature(source)


def _open_constants(source: FunctionSource) -> list[str]:
    """The ``pl.constexpr`` parameters that only a call gives a value."""
    return [
        param.name
        for param in read_signature(source)
        if param.category is ParamCategory.CONSTEXPR and not param.has_default
    ]


def _parameters(source: FunctionSource) -> dict[str, ast.arg]:
    return {node.arg: node for node in ast.walk(source.tree.args) if isinstance(node, ast.arg)}


@contextmanager
def _builder() -> Iterator[Builder]:
    builder = Builder(call, block, NO_ATTRIBUTES)
    try:
        yield builder
    finally:
        if builder.prints and sys.stdout is not None:  # a service may have closed it
            sys.stdout.write("".join(line + "\n" for line in builder.prints))


def _define(builder: Builder, source: FunctionSource) -> str:
    arguments = _declared(source)
    try:
        return define_function(builder, source, arguments)
    except RecursionError:
        raise annotation_frame(source).error(
            UnsupportedFeatureError,
            source.tree,
            f"the body of {source.name} is nested too deeply",
        ) from None


def _declared(source: FunctionSource) -> dict[str, Argument]:
    """What the annotations say of each parameter."""
    frame, dynamic = annotation_frame(source), dynamic_axes(source)
    arguments: dict[str, Argument] = {}
    for param in read_signature(source):
        if param.category is ParamCategory.CONSTEXPR:
            arguments[param.name] = ConstValue(param.default)
        elif isinstance(param.type, ScalarType):
            arguments[param.name] = param.type
        elif isinstance(param.type, TensorType):
            symbols = dynamic.get(param.name, {})
            dims = enumerate(param.type.shape)
            shape = [DynDim(symbols[i]) if i in symbols else dim for i, dim in dims]
            arguments[param.name] = replace(param.type, shape=tuple(shape))
        else:
            raise frame.error(
                ParserTypeError,
                _parameters(source)[param.name],
                f"parameter {param.name!r} of {source.name!r} needs a complete annotation, such as "
                f"{param.name}: pl.Tensor[[16, 64], pl.FP32]: a function of a program is compiled "
                "as it is declared",
            )
    return arguments
