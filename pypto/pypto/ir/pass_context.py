"""Who watches the passes: instruments, active while a :class:`PassContext` is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from types import TracebackType

from pypto.ir.nodes import Program

PassCallback = Callable[[str, Program], None]


class PassInstrument:
    """Sees the program before and after every pass; a subclass overrides what it wants to see.

    ``name`` is the pass's. What an instrument raises ends the compilation.
    """

    def before_pass(self, name: str, program: Program) -> None:
        """The pass is about to run on ``program``."""

    def after_pass(self, name: str, program: Program) -> None:
        """The pass gave ``program``."""


class CallbackInstrument(PassInstrument):
    """Calls functions with the pass's name and the program."""

    def __init__(
        self, *, before_pass: PassCallback | None = None, after_pass: PassCallback | None = None
    ) -> None:
        self._before = before_pass
        self._after = after_pass

    def before_pass(self, name: str, program: Program) -> None:
        if self._before is not None:
            self._before(name, program)

    def after_pass(self, name: str, program: Program) -> None:
        if self._after is not None:
            self._after(name, program)


_ACTIVE: ContextVar[tuple[PassInstrument, ...]] = ContextVar("pypto.ir.instruments", default=())


def active_instruments() -> tuple[PassInstrument, ...]:
    """The instruments of the innermost open context; none where there is no context."""
    return _ACTIVE.get()


class PassContext:
    """``with ir.PassContext([instrument]):`` has instruments watch what is compiled inside.

    It holds for this thread, and one that is opened inside takes its place while it is open. A JIT
    request inside is a diagnostic one: it compiles anew, and stores nothing.
    """

    def __init__(self, instruments: Sequence[PassInstrument] = ()) -> None:
        for instrument in instruments:
            if not isinstance(instrument, PassInstrument):
                raise TypeError(
                    f"ir.PassContext takes ir.PassInstrument objects, not {instrument!r}"
                )
        self.instruments = tuple(instruments)
        self._tokens: list[Token[tuple[PassInstrument, ...]]] = []

    def __enter__(self) -> PassContext:
        self._tokens.append(_ACTIVE.set(self.instruments))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _ACTIVE.reset(self._tokens.pop())
