"""What a decorator records of a function. Nothing is parsed yet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType, FunctionType, MappingProxyType

from pypto.ir.external import ExternalKernel
from pypto.ir.nodes import FunctionKind
from pypto.jit.module_text import ModuleText

_NOTHING: Mapping[str, object] = MappingProxyType({})
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """A decorated function, compared by identity.

    `text` is the file it was defined in, None if there is none. `enclosing` are the values of
    names that only the enclosing function has: annotations use them without capturing them.
    `external` has the C++ files of an extern kernel.
    """

    function: FunctionType
    kind: FunctionKind
    level: object
    auto_scope: bool
    text: ModuleText | None
    enclosing: Mapping[str, object]
    external: ExternalKernel | None = None

    @property
    def unit(self) -> str:
        """``"module:qualname"``, by which a position names this function."""
        return f"{self.function.__module__}:{self.function.__qualname__}"


class Declared:
    """An object that stands for a declared function, such as what ``pl.jit`` returns."""

    __slots__ = ("declaration",)

    declaration: Declaration


def enclosing_values(
    function: FunctionType, text: ModuleText | None, frame: FrameType | None
) -> Mapping[str, object]:
    """The locals of `frame`, which decorates `function`, that its text mentions.

    Empty for a function that is not nested: its names are globals. Only mentioned names are
    kept, so that a kernel does not hold on to its factory's tensors.
    """
    if frame is None or text is None or "<locals>" not in function.__qualname__:
        return _NOTHING
    code = function.__code__
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    mentioned = set(
        _IDENTIFIER.findall("\n".join(text.lines[code.co_firstlineno - 1 : last]))
    ).difference(code.co_varnames, code.co_freevars)
    visible = frame.f_locals
    return MappingProxyType({name: visible[name] for name in mentioned if name in visible})
