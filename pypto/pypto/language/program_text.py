"""``pl.parse`` and ``pl.loads``: programs and functions that are given as text."""

from __future__ import annotations

import itertools
import linecache
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType

from pypto.ir.nodes import Function, Program

_COUNT = itertools.count(1)

_KEPT_AFTER_ERRORS = 32
# By what name each is in linecache, the oldest first.
_FAILED: deque[str] = deque()


def parse(code: str, filename: str | None = None) -> Program | Function:
    """The program, or the function, that a text defines; what ``as_python`` prints, for one.

    The text is a Python module and is executed like one: it imports what it uses and decorates one
    class with ``pl.program``, or functions with ``pl.function``, of which the last is given.
    ``filename`` is how errors call it. Raises what executing it raises, ParserError among it;
    ValueError where it defines no program.
    """
    if not isinstance(code, str):
        raise TypeError(f"pl.parse takes the text of a program, not {type(code).__name__}")
    shown = f"<pl.parse {next(_COUNT)}>" if filename is None else filename
    return _executed(compile(code, shown, "exec", dont_inherit=True), code, shown)


def loads(path: str | os.PathLike[str]) -> Program | Function:
    """The program, or the function, that the file ``path`` defines, as `parse` reads it.

    Raises OSError for a file that cannot be read.
    """
    file = Path(path)
    return parse(file.read_text(encoding="utf-8"), str(file))


@contextmanager
def _shown_lines(code: str, shown: str) -> Iterator[None]:
    """Have the text where decorators look for what they decorate, as tracebacks do.

    It is taken back when all is decorated: whoever parses text after text keeps none of them. After
    an error it stays for the traceback, until as many more have failed as are kept.
    """
    before = linecache.cache.get(shown)
    entry = (len(code), None, code.splitlines(keepends=True), shown)
    linecache.cache[shown] = entry
    try:
        yield
    except BaseException:
        _FAILED.append(shown)
        if len(_FAILED) > _KEPT_AFTER_ERRORS:
            linecache.cache.pop(_FAILED.popleft(), None)
        raise
    # Another thread may have put another text under the name.
    if linecache.cache.get(shown) is entry:
        if before is None:
            del linecache.cache[shown]
        else:
            linecache.cache[shown] = before


def _executed(module: CodeType, code: str, shown: str) -> Program | Function:
    from pypto.language.program_style import InlineFunction

    names: dict[str, object] = {"__name__": "pypto_parsed", "__file__": shown}
    with _shown_lines(code, shown):
        exec(module, names)  # noqa: S102 - a program's text is a module of the user's
    # One program may have several names.
    programs = list({id(v): v for v in names.values() if isinstance(v, Program)}.values())
    if len(programs) == 1:
        return programs[0]
    if len(programs) > 1:
        found = ", ".join(program.name for program in programs)
        raise ValueError(f"{shown} defines more than one program: {found}; parse one at a time")
    functions = [value for value in names.values() if isinstance(value, Function)]
    if functions:
        return functions[-1]
    inline = any(isinstance(value, InlineFunction) for value in names.values())
    raise ValueError(
        f"{shown} defines no program: decorate a class with @pl.program or a function with "
        "@pl.function" + (", other than an inline one" if inline else "")
    )
