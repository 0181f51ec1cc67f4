"""What a snapshot of a kernel is: its text, its helpers, and the digest and guards of both.

:mod:`pypto.jit.source` takes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pypto.ir.external import ExternalKernel
from pypto.jit.captures import Guards
from pypto.jit.declaration import Declaration
from pypto.jit.module_text import ModuleText, read_again
from pypto.jit.parsed import ParsedFunction, compiles_to
from pypto.language.source import FunctionSource
from pypto_store.digest import Digest


@dataclass(frozen=True, slots=True, eq=False)
class SourceSnapshot:
    """A kernel and all it depends on, at one moment.

    `digest` is None where something has no identity across processes; `bypass` then says what.
    `functions` are the entry and its helpers, each with what it was parsed from; `fields` is what
    the digest covers of each, in the same order. `defaults` are the entry's own, by parameter.
    """

    entry: FunctionSource
    digest: Digest | None
    bypass: str | None
    guards: Guards
    functions: tuple[tuple[Declaration, ParsedFunction], ...]
    fields: tuple[tuple[str | bytes | bool, ...], ...]
    defaults: Mapping[str, object]

    def source_map(self) -> Mapping[str, tuple[str, int]]:
        """From unit to the file that holds the function and the line of its ``def``."""
        return MappingProxyType(
            {
                declaration.unit: (declaration.function.__code__.co_filename, parsed.first_line)
                for declaration, parsed in self.functions
            }
        )

    @property
    def assumed(self) -> frozenset[str]:
        """The versions of this package that parsed what this process did not parse itself."""
        return assumed_by(parsed for _, parsed in self.functions)

    @property
    def externs(self) -> tuple[ExternalKernel, ...]:
        """The extern kernels among the functions, whose files `digest` does not cover."""
        return tuple(d.external for d, _ in self.functions if d.external is not None)

    def mismatch(self) -> str | None:
        """Why the texts are not what was imported, or None. Compiles them: for misses only."""
        for declaration, _ in self.functions:
            code = declaration.function.__code__
            if declaration.text is None or not compiles_to(declaration.text, code):
                return f"source changed since import: {code.co_filename}, {code.co_name}"
        return None

    def attributes(self) -> tuple[str, ...]:
        """Every attribute that one of the functions mentions."""
        return tuple(
            sorted({name for _, parsed in self.functions for name in parsed.facts.attributes})
        )

    def texts(self) -> tuple[ModuleText, ...]:
        """The distinct files the functions were cut from."""
        found = {
            declaration.text.filename: declaration.text
            for declaration, _ in self.functions
            if declaration.text is not None
        }
        return tuple(found.values())


def assumed_by(functions: Iterable[ParsedFunction]) -> frozenset[str]:
    """The versions of this package that parsed those that this process did not parse itself."""
    return frozenset([parsed.assumed for parsed in functions if parsed.assumed is not None])


def texts_now(texts: tuple[ModuleText, ...]) -> tuple[ModuleText | None, ...]:
    """The files of `texts` as they are on disk now."""
    return tuple(read_again(text) for text in texts)
