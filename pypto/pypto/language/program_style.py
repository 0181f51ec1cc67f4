"""``pl.program`` and ``pl.function``: programs that are parsed where they are written.

Unlike ``pl.jit``, whose kernels take their types from the tensors of a call, these functions say
every type themselves, so decorating one gives its representation, and errors in it, at once.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, FunctionType, MappingProxyType
from typing import Any, overload

from pypto.ir.external import ExternalKernel
from pypto.ir.nodes import AttrValue, Function, FunctionKind, Program
from pypto.language.markers import Level
from pypto.language.program_source import enclosing_names, in_class_body, read_source
from pypto.language.source import FunctionSource

Decorated = Callable[..., object]


@dataclass(frozen=True, slots=True, eq=False)
class SourceFunction(Function):
    """A function as ``@pl.function`` gives it: its representation, and what it was parsed from."""

    source: FunctionSource | None = None


@dataclass(frozen=True, slots=True, eq=False)
class InlineFunction:
    """A function whose body becomes part of each function that calls it."""

    source: FunctionSource

    @property
    def name(self) -> str:
        """Its name."""
        return self.source.name


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A decorated method of a class that ``pl.program`` has yet to see."""

    source: FunctionSource


def function(
    decorated: Decorated | None = None,
    *,
    type: FunctionKind = FunctionKind.OPAQUE,
    level: Level | None = None,
    role: object = None,
    attrs: Mapping[str, object] | None = None,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external_source: object = None,
) -> object:
    """``@pl.function(type=pl.FunctionType.InCore)``: a function of a program.

    Alone it gives an ``ir.Function``; on a method, a part of the class that ``pl.program``
    decorates. Parameters have complete annotations, such as ``pl.Tensor[[16, 64], pl.FP32]``; only
    an inline function may leave them out. With ``strict_ssa`` a name is bound once.
    ``external_source`` makes an InCore function whose body is ``...`` a kernel in C++: the path of
    a file for vector cores, or a mapping with the arguments of ``pl.jit.extern``.

    Raises ParserError at the user's line; TypeError for an argument of this decorator.
    """
    options = _Options(type, level, role, attrs, auto_scope, strict_ssa, external_source)
    if decorated is None:
        return lambda late: _declare("pl.function", late, options, sys._getframe(1))
    return _declare("pl.function", decorated, options, sys._getframe(1))


def inline(decorated: Decorated) -> object:
    """``@pl.inline``: a function whose body becomes part of each function that calls it."""
    options = _Options(FunctionKind.INLINE, None, None, None, True, False, None)
    return _declare("pl.inline", decorated, options, sys._getframe(1))


@overload
def program(decorated: type) -> Program: ...
@overload
def program(*, strict_ssa: bool = False) -> Callable[[type], Program]: ...
def program(
    decorated: type | None = None, *, strict_ssa: bool = False
) -> Program | Callable[[type], Program]:
    """``@pl.program`` on a class: its methods as one ``ir.Program``, named like the class.

    Methods are decorated with ``pl.function`` or ``pl.inline``, take ``self``, and call each other
    as ``self.other(...)``. Functions outside that they call by name become part of the program.
    With ``strict_ssa`` every method is strict. Raises ParserError at the user's line.
    """
    if not isinstance(strict_ssa, bool):
        raise TypeError(f"strict_ssa must be True or False, not {strict_ssa!r}")
    if decorated is None:
        return lambda late: _program(late, strict_ssa)
    return _program(decorated, strict_ssa)


def _program(decorated: type, strict_ssa: bool) -> Program:
    from pypto.language.parser.declared import parse_class

    if not isinstance(decorated, type):
        raise TypeError(f"pl.program decorates a class, not {decorated!r}")
    name = decorated.__name__
    methods: list[FunctionSource] = []
    for key, value in vars(decorated).items():
        if isinstance(value, Method):
            methods.append(value.source)
        elif isinstance(value, FunctionType | staticmethod | classmethod):
            raise TypeError(
                f"method {key!r} of the program {name!r} is not decorated: put @pl.function above "
                "it, with type=pl.FunctionType.InCore, Orchestration or Opaque"
            )
    if not methods:
        raise TypeError(
            f"the program {name!r} has no function: decorate its methods with @pl.function"
        )
    return parse_class(name, methods, strict_ssa=strict_ssa)


@dataclass(frozen=True, slots=True)
class _Options:
    """The arguments of ``pl.function``, checked."""

    kind: FunctionKind
    level: Level | None
    role: object
    attrs: Mapping[str, object] | None
    auto_scope: bool
    strict_ssa: bool
    external_source: object

    def __post_init__(self) -> None:
        if not isinstance(self.kind, FunctionKind):
            raise TypeError(
                f"pl.function: type must be a pl.FunctionType such as pl.FunctionType.InCore, not "
                f"{self.kind!r}"
            )
        if self.level is not None and self.level is not Level.CORE_GROUP:
            raise TypeError(
                f"pl.function: level must be pl.Level.CORE_GROUP or be left out, not {self.level!r}"
            )
        if self.role is not None:
            raise TypeError(
                f"pl.function: role must be left out, not {self.role!r}: functions above one chip "
                "are not supported"
            )
        if self.attrs is not None and not isinstance(self.attrs, Mapping):
            raise TypeError(f"pl.function: attrs must be a dict, not {self.attrs!r}")
        for name in ("auto_scope", "strict_ssa"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise TypeError(f"pl.function: {name} must be True or False, not {value!r}")
        if self.external_source is not None and self.kind is not FunctionKind.INCORE:
            raise TypeError(
                "pl.function: external_source goes with type=pl.FunctionType.InCore alone"
            )


def _declare(what: str, decorated: object, options: _Options, frame: FrameType) -> object:
    from pypto.language.parser.declared import check_signature, parse_function

    if not isinstance(decorated, FunctionType):
        raise TypeError(f"{what} decorates functions defined with def, not {decorated!r}")
    code = decorated.__code__
    if decorated.__name__ == "<lambda>" or code.co_flags & _NOT_PLAIN:
        where = f"{code.co_filename}:{code.co_firstlineno}"
        found = "a lambda" if decorated.__name__ == "<lambda>" else "an async function"
        raise TypeError(f"{what} decorates functions defined with def, not {found}: {where}")
    method = in_class_body(frame)
    if method and code.co_varnames[: code.co_argcount][:1] != ("self",):
        raise TypeError(
            f"method {decorated.__qualname__!r} must take self as its first parameter: "
            f"{code.co_filename}:{code.co_firstlineno}"
        )
    source = read_source(
        decorated,
        options.kind,
        scopes=enclosing_names(frame),
        method=method,
        auto_scope=options.auto_scope,
        strict_ssa=options.strict_ssa,
        external=_external(options.external_source, decorated),
        attrs=_attributes(options.attrs),
    )
    if method:
        return Method(source)
    if options.kind is FunctionKind.INLINE:
        check_signature(source)
        return InlineFunction(source)
    return parse_function(source)


_NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _attributes(given: Mapping[str, object] | None) -> Mapping[str, AttrValue]:
    """``attrs`` of a function: notes for whoever reads the program, kept and printed."""
    for name, value in (given or {}).items():
        if not isinstance(name, str) or not isinstance(value, bool | int | float | str):
            raise TypeError(
                "pl.function: attrs maps names to numbers, truth values and strings, but has "
                f"{name!r}: {value!r}"
            )
    return MappingProxyType(dict(sorted((given or {}).items())))  # type: ignore[arg-type]


def _external(given: object, decorated: FunctionType) -> ExternalKernel | None:
    from pypto.language.extern import external_kernel

    if given is None:
        return None
    if isinstance(given, str | os.PathLike):
        given = {"core_type": "aiv", "source": given}
    if not isinstance(given, Mapping) or not set(given) <= set(_EXTERN_DEFAULTS):
        raise TypeError(
            "pl.function: external_source must be a path, or a mapping with the arguments of "
            f"pl.jit.extern ({', '.join(_EXTERN_DEFAULTS)}), not {given!r}"
        )
    code = decorated.__code__
    file = Path(code.co_filename).absolute()
    arguments: dict[str, Any] = {**_EXTERN_DEFAULTS, **given}
    return external_kernel(
        **arguments,
        stub=str(file) if file.is_file() else None,
        where=f"{code.co_filename}:{code.co_firstlineno}",
    )


_EXTERN_DEFAULTS: Mapping[str, object] = MappingProxyType(
    {
        "core_type": "aiv",
        "source": None,
        "aic_source": None,
        "aiv_source": None,
        "dual_aiv_dispatch": False,
        "include_dirs": (),
    }
)
