"""``pl.jit`` and its kinds: functions whose body is compiled and never executed."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pypto.ir.nodes import FunctionKind
from pypto.ir.nodes import Program as IrProgram
from pypto.ir.pass_context import active_instruments
from pypto.jit.binding import Bound, Signature
from pypto.jit.building import Recipe
from pypto.jit.declaration import Declaration, Declared, enclosing_values
from pypto.jit.live import LiveCalls
from pypto.jit.objects import ObjectTable
from pypto.jit.parsed import SourceChanged, SourceMissing
from pypto.jit.policy import CachePolicy
from pypto.jit.remembered import KnownSignature, RootMemory, StaleFacts
from pypto.jit.resolve import Answer
from pypto.jit.session import LEVELS, MEMORY, RESOLVER, STATISTICS, TEXTS
from pypto.jit.snapshot import SourceSnapshot
from pypto.jit.source import SourceCapture
from pypto.jit.specialization import Specialization
from pypto.jit.statistics import Counter
from pypto.jit.surroundings import Surroundings, read_surroundings
from pypto.language.source import FunctionSource, KernelFunction
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.config_argument import run_config
from pypto.runtime.run_config import RunConfig

if TYPE_CHECKING:
    from pypto.ir.external import ExternalKernel
    from pypto.language.extern import StrPath
    from pypto_store import ArtifactKey, CacheConfig

_Values = TypeVar("_Values")

_DEFAULT_CONFIG = RunConfig()
_NOT_PLAIN = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class JITFunction(Declared, KernelFunction):
    """A decorated function.

    Calling an entry (``pl.jit``) with tensors compiles what is not compiled yet and runs it in
    place. `compile`, `warmup`, `lower` and `specialize` go as far as their names say. Without a
    tensor among the arguments they take all tensors from complete annotations; otherwise they
    take one argument a parameter, and tensors may be meta tensors.

    ``config=`` is a RunConfig for the request and reaches no kernel. Nothing is parsed before the
    first request. Errors in the kernel are ParserError or CompileError and name file and line.
    """

    __name__: str
    __qualname__: str
    __wrapped__: FunctionType

    def __init__(self, declaration: Declaration) -> None:
        functools.update_wrapper(self, declaration.function)
        self.declaration = declaration
        self._func = declaration.function
        self._func_type = declaration.kind
        self._level = declaration.level
        self._auto_scope = declaration.auto_scope
        self._cache: ObjectTable[CompiledProgram] = ObjectTable()
        self._capture = SourceCapture(declaration)
        self._current: tuple[SourceSnapshot, Signature] | None = None
        self._live = LiveCalls(STATISTICS, LEVELS)

    def __repr__(self) -> str:
        kind = self._func_type.value
        return f"JITFunction({self.__name__!r}, func_type={kind!r})"

    def __call__(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> None:
        """Run once, in place. All arguments are needed; defaults count."""
        if not kwargs and not active_instruments():
            run = self._live.find(args, config)
            if run is not None:
                run(args)
                return
        STATISTICS.add(Counter.REQUESTS)
        self._entry()
        configured, world = LEVELS.configured, read_surroundings()

        def bind(signature: Signature) -> tuple[Bound, tuple[object, ...]]:
            values = signature.positional(args, kwargs)
            return signature.bind_samples(values), values

        (snapshot, signature), values, answer = self._answered(bind, config, world)
        answer.compiled(*signature.run_time(values), config=config)
        if answer.repeatable:
            self._live.remember(
                signature, values, config, snapshot, answer.compiled, configured, world
            )

    def compile(
        self, *args: Any, config: RunConfig | None = None, **kwargs: Any
    ) -> CompiledProgram:
        """The compiled program; its binaries may not be built yet, and nothing is run."""
        STATISTICS.add(Counter.REQUESTS)
        self._entry()

        def bind(signature: Signature) -> tuple[Bound, None]:
            return _bind(signature, args, kwargs), None

        return self._answered(bind, config, read_surroundings())[2].compiled

    def warmup(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> CompiledProgram:
        """`compile`, and every binary built; no worker is started and no kernel is run."""
        compiled = self.compile(*args, config=config, **kwargs)
        compiled.complete()
        return compiled

    def specialize(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> IrProgram:
        """The program as it is parsed, before any pass. Touches no cache and no counter."""
        return self._recipe(args, kwargs, config).parse()

    def lower(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> IrProgram:
        """The program after every pass. Touches no cache and no counter."""
        return self._recipe(args, kwargs, config).lower()

    def kernel_source(self) -> FunctionSource:
        """The function as a program that calls it sees it. Touches no cache and no counter."""
        return self._source()[0].entry

    @property
    def param_names(self) -> tuple[str, ...]:
        """The parameters in the order they are declared."""
        code = self._func.__code__
        return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @property
    def output_param_names(self) -> tuple[str, ...]:
        """The parameters that are only written, in the order they are declared."""
        return self._source()[1].outputs

    def check_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Bind keyword arguments as `compile` would, and do nothing with them.

        Raises what `compile` would for arguments that do not fit the declaration. Touches no cache
        and no counter.
        """
        from pypto.language.parser.program import bind_arguments

        self._entry()
        snapshot, signature = self._source()
        bind_arguments(snapshot.entry, _bind(signature, (), arguments).arguments)

    def identify(
        self, config: RunConfig, cache: CacheConfig, arguments: Mapping[str, Any]
    ) -> tuple[ArtifactKey, Recipe] | str:
        """The key that `compile` has under the enabled `cache`, and how to build it anew.

        Or why it has none. Touches no counter, and nothing of the cache but to read in it.
        """
        recipe = self._recipe((), arguments, config)
        return RESOLVER.identify(recipe.snapshot, recipe.specialization, cache, read_surroundings())

    def _recipe(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], config: RunConfig | None
    ) -> Recipe:
        self._entry()
        snapshot, signature = self._source()
        options = _effective(config).compile_options()
        specialization = Specialization.of(_bind(signature, args, kwargs), options)
        return Recipe(snapshot, specialization, os.environ, None)

    def _entry(self) -> None:
        if self._func_type is not FunctionKind.ORCHESTRATION:
            raise TypeError(
                f"{self.__name__!r} is an {self._func_type.value} function: call it from a "
                "@pl.jit function, which is what can be compiled and run"
            )

    def _answered(
        self,
        bind: Callable[[Signature], tuple[Bound, _Values]],
        config: RunConfig | None,
        world: Surroundings,
    ) -> tuple[tuple[SourceSnapshot, Signature], _Values, Answer]:
        """One request: the source it is about, what `bind` made of its arguments, its answer."""
        capture = self._capture
        try:
            return self._answered_once(bind, config, world, capture, assuming=True)
        except Exception as error:
            if not isinstance(error, StaleFacts) and MEMORY.trusts(capture.assumed):
                raise
        # What went wrong may have come of what was assumed, and if not, it will again. Other
        # threads may be assuming still, so this capture is not theirs before it is filled.
        capture = SourceCapture(self.declaration)
        return self._answered_once(bind, config, world, capture, assuming=False)

    def _answered_once(
        self,
        bind: Callable[[Signature], tuple[Bound, _Values]],
        config: RunConfig | None,
        world: Surroundings,
        capture: SourceCapture,
        *,
        assuming: bool,
    ) -> tuple[tuple[SourceSnapshot, Signature], _Values, Answer]:
        current, policy = self._current if assuming else None, None
        if current is None or not current[0].guards.hold():
            known = None
            if assuming:
                policy, known = RESOLVER.anticipate(_effective(config), world)
            try:
                current = self._taken(capture, known)
            except (SourceMissing, SourceChanged) as error:
                if MEMORY.trusts(capture.assumed):  # else it is asked once more, and counted then
                    RESOLVER.unreadable(self.__name__, str(error), _effective(config), world)
                raise
        snapshot, signature = current
        bound, values = bind(signature)
        return current, values, self._resolve(snapshot, bound, config, world, policy)

    def _source(self) -> tuple[SourceSnapshot, Signature]:
        """The current snapshot; taken again when something captured has changed."""
        current, capture = self._current, self._capture
        if not MEMORY.trusts(capture.assumed):
            current, capture = None, SourceCapture(self.declaration)
        if current is None or not current[0].guards.hold():
            current = self._taken(capture, None)
        return current

    def _taken(
        self, capture: SourceCapture, known: RootMemory | None
    ) -> tuple[SourceSnapshot, Signature]:
        snapshot = capture.take(known)
        found = None
        if known is not None and snapshot.digest is not None:
            found = known.signature(snapshot.digest, snapshot.assumed)
        if found is None:
            # What the facts of the text answer needs no parser.
            from pypto.language.parser.dynamic_axes import dynamic_axes
            from pypto.language.parser.signature import read_signature

            found = KnownSignature(read_signature(snapshot.entry), dynamic_axes(snapshot.entry))
        signature = Signature(
            self.__name__, found.params, snapshot.defaults, found.dynamic, snapshot.attributes()
        )
        self._capture, self._current = capture, (snapshot, signature)
        return snapshot, signature

    def _resolve(
        self,
        snapshot: SourceSnapshot,
        bound: Bound,
        config: RunConfig | None,
        world: Surroundings,
        policy: CachePolicy | None,
    ) -> Answer:
        effective = _effective(config)
        specialization = Specialization.of(bound, effective.compile_options())
        return RESOLVER.obtain(snapshot, specialization, effective, self._cache, world, policy)


def _effective(config: RunConfig | None) -> RunConfig:
    return _DEFAULT_CONFIG if config is None else run_config(config)


def _bind(signature: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
    if signature.is_signature_request(args, kwargs):
        return signature.bind_signature(kwargs)
    return signature.bind_samples(signature.positional(args, kwargs))


class JitDecorator:
    """The type of ``pl.jit``."""

    @overload
    def __call__(self, function: Callable[..., Any]) -> JITFunction: ...
    @overload
    def __call__(
        self, *, auto_scope: bool = True
    ) -> Callable[[Callable[..., Any]], JITFunction]: ...
    def __call__(
        self, function: Callable[..., Any] | None = None, *, auto_scope: bool = True
    ) -> JITFunction | Callable[[Callable[..., Any]], JITFunction]:
        """``@pl.jit`` or ``@pl.jit(auto_scope=False)``: an entry, which starts kernels."""
        kind = FunctionKind.ORCHESTRATION
        if function is None:
            return lambda decorated: _declare(decorated, kind, None, auto_scope, sys._getframe(1))
        return _declare(function, kind, None, auto_scope, sys._getframe(1))

    def incore(
        self, function: Callable[..., Any] | None = None, *, level: object = None
    ) -> JITFunction | Callable[[Callable[..., Any]], JITFunction]:
        """``@pl.jit.incore`` or ``@pl.jit.incore(level=...)``: a kernel of its own."""
        kind = FunctionKind.INCORE
        if function is None:
            return lambda decorated: _declare(decorated, kind, level, True, sys._getframe(1))
        return _declare(function, kind, level, True, sys._getframe(1))

    def opaque(
        self, function: Callable[..., Any] | None = None
    ) -> JITFunction | Callable[[Callable[..., Any]], JITFunction]:
        """``@pl.jit.opaque``: a function of its own that may hold ``pl.at`` blocks and loops."""
        kind = FunctionKind.OPAQUE
        if function is None:
            return lambda decorated: _declare(decorated, kind, None, True, sys._getframe(1))
        return _declare(function, kind, None, True, sys._getframe(1))

    def inline(
        self, function: Callable[..., Any] | None = None, *, auto_scope: bool = True
    ) -> JITFunction | Callable[[Callable[..., Any]], JITFunction]:
        """``@pl.jit.inline`` or ``@pl.jit.inline(auto_scope=False)``: spliced into its callers."""
        kind = FunctionKind.INLINE
        if function is None:
            return lambda decorated: _declare(decorated, kind, None, auto_scope, sys._getframe(1))
        return _declare(function, kind, None, auto_scope, sys._getframe(1))

    def extern(
        self,
        *,
        core_type: str,
        source: StrPath | None = None,
        aic_source: StrPath | None = None,
        aiv_source: StrPath | None = None,
        dual_aiv_dispatch: bool = False,
        include_dirs: Sequence[StrPath] = (),
    ) -> Callable[[Callable[..., Any]], JITFunction]:
        """``@pl.jit.extern(core_type="aiv", source="kernel.cpp")``: a kernel written in C++.

        The body of the decorated function is ``...``; its annotations are what ``kernel_entry`` of
        the source is given: every tensor, then every scalar. With ``core_type="mixed"`` a task is
        ``aic_source`` on a matrix core and ``aiv_source`` on a vector core at the same time, on
        two vector cores with ``dual_aiv_dispatch``. Relative paths count from the directory of the
        file that declares the kernel. Raises ValueError for what is missing or does not go
        together.
        """
        from pypto.language.extern import external_kernel

        def declare(decorated: Callable[..., Any]) -> JITFunction:
            code = _plain_function(decorated).__code__
            kernel = external_kernel(
                core_type=core_type,
                source=source,
                aic_source=aic_source,
                aiv_source=aiv_source,
                dual_aiv_dispatch=dual_aiv_dispatch,
                include_dirs=include_dirs,
                stub=_file_of(code),
                where=f"{code.co_filename}:{code.co_firstlineno}",
            )
            return _declare(
                decorated, FunctionKind.INCORE, None, True, sys._getframe(1), external=kernel
            )

        return declare


jit = JitDecorator()


def _declare(
    function: object,
    kind: FunctionKind,
    level: object,
    auto_scope: bool,
    frame: FrameType,
    external: ExternalKernel | None = None,
) -> JITFunction:
    if not isinstance(auto_scope, bool):
        raise TypeError(f"auto_scope must be True or False, not {auto_scope!r}")
    function = _plain_function(function)
    text = TEXTS.of(function.__code__, function.__globals__)
    enclosing = enclosing_values(function, text, frame)
    return JITFunction(Declaration(function, kind, level, auto_scope, text, enclosing, external))


def _plain_function(function: object) -> FunctionType:
    """`function`; TypeError unless it was defined with def."""
    if not isinstance(function, FunctionType):
        raise TypeError(f"pl.jit decorates functions defined with def, not {function!r}")
    if function.__name__ == "<lambda>" or function.__code__.co_flags & _NOT_PLAIN:
        what = "a lambda" if function.__name__ == "<lambda>" else "an async function"
        raise TypeError(
            f"pl.jit decorates functions defined with def, not {what}: "
            f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
        )
    return function


def _file_of(code: CodeType) -> str | None:
    """The absolute path of the file that holds `code`, None if it is in none."""
    path = os.path.abspath(code.co_filename)
    return path if os.path.isfile(path) else None
