"""One function's own text: cut out of its file, parsed, and checked against its code object."""

from __future__ import annotations
import __future__

import ast
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Protocol

from pypto.jit.declaration import Declaration
from pypto.jit.module_text import ModuleText
from pypto.jit.names import TextFacts, facts_of

# The part of co_flags that changed how the text was compiled; `nested_scopes` is what every code
# object of a nested function carries and no choice of the file's.
_FUTURE_FLAGS = 0
for _feature in set(__future__.all_feature_names) - {"nested_scopes"}:
    _FUTURE_FLAGS |= getattr(__future__, _feature).compiler_flag
_BLOCK = "if 1:"


class SourceMissing(OSError):
    """There is no text to compile a kernel from."""


class SourceChanged(Exception):
    """The text at a function's place is another one than what was imported."""


@dataclass(frozen=True, slots=True)
class KnownText:
    """What parsing a text gave before: the line of its ``def`` in it, and its facts.

    `version` is that of the package that parsed it.
    """

    def_line: int
    facts: TextFacts
    version: str


class KnownTexts(Protocol):
    """Texts that were parsed before."""

    def text(self, name: str, lines: tuple[str, ...]) -> KnownText | None:
        """What is known of the function `name` whose text is `lines`."""
        ...


@dataclass(frozen=True, eq=False)
class ParsedFunction:
    """The text of a function and what it says.

    `code` is the function's own. `def_line` is the line of its ``def`` within `lines`, and
    `first_line` that in the file. Lines keep their indentation: an indented function is preceded
    by one line that opens a block. `assumed` is the version of the package that said so, None if
    the text was parsed here.
    """

    code: CodeType
    lines: tuple[str, ...]
    def_line: int
    facts: TextFacts
    assumed: str | None

    @property
    def first_line(self) -> int:
        """The line of the ``def`` in the file."""
        offset = 2 if self.lines[0] == _BLOCK else 1
        return self.code.co_firstlineno + self.def_line - offset

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """What `lines` joined parse to; a hit never asks."""
        tree = _parse_definition(self.lines, self.code.co_name)
        assert tree is not None, "these lines parsed before"
        return tree

    @property
    def text(self) -> bytes:
        """What was parsed, for a digest."""
        return "\n".join(self.lines).encode("utf-8", "surrogatepass")


def parse(declaration: Declaration, known: KnownTexts | None = None) -> ParsedFunction:
    """The text of a declared function, not parsed again if it is `known`.

    Raises SourceMissing if there is none, SourceChanged if what is there is not that function.
    """
    name = declaration.function.__name__
    text = declaration.text
    if text is None:
        raise SourceMissing(
            f"the source of kernel {name!r} is not available: {_where(declaration)}; "
            "define kernels in a file"
        )
    code = declaration.function.__code__
    lines = _cut(text, code)
    before = None if known is None else known.text(code.co_name, lines)
    if before is not None:
        return ParsedFunction(code, lines, before.def_line, before.facts, before.version)
    tree = _parse_definition(lines, code.co_name)
    if tree is None:
        # A string or a bracket that reaches further left than its function: ask the whole file.
        lines = _cut_by_tree(text, code)
        tree = _parse_definition(lines, code.co_name)
    if tree is None:
        raise SourceChanged(
            f"source of kernel {name!r} changed since import: {_where(declaration)} "
            "holds another text; restart the process"
        )
    parsed = ParsedFunction(code, lines, tree.lineno, facts_of(tree), assumed=None)
    vars(parsed)["tree"] = tree
    return parsed


def compiles_to(text: ModuleText, code: CodeType) -> bool:
    """Whether `text` means what was imported: whether it compiles to `code`, at its place.

    The whole file is compiled, because the code of a function depends on more than its own lines:
    on captured names, the class around it, and which globals the file imports.
    """
    try:
        module = compile(
            "\n".join(text.lines) + "\n",
            code.co_filename,
            "exec",
            flags=code.co_flags & _FUTURE_FLAGS,
            dont_inherit=True,
        )
    except (SyntaxError, ValueError):
        return False
    pending = [module]
    while pending:
        found = pending.pop()
        if found.co_firstlineno == code.co_firstlineno and found.co_name == code.co_name:
            if _same_code(found, code):
                return True
        pending.extend(item for item in found.co_consts if isinstance(item, CodeType))
    return False


def _where(declaration: Declaration) -> str:
    code = declaration.function.__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def _same_code(one: CodeType, other: CodeType) -> bool:
    if (
        one.co_code != other.co_code
        or one.co_names != other.co_names
        or one.co_varnames != other.co_varnames
        or one.co_freevars != other.co_freevars
        or one.co_cellvars != other.co_cellvars
        or one.co_argcount != other.co_argcount
        or one.co_posonlyargcount != other.co_posonlyargcount
        or one.co_kwonlyargcount != other.co_kwonlyargcount
        or one.co_flags != other.co_flags
        or len(one.co_consts) != len(other.co_consts)
    ):
        return False
    return all(map(_same_constant, one.co_consts, other.co_consts))


def _same_constant(one: object, other: object) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return _same_code(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same_constant, one, other))
    # repr tells apart what == does not: signed zeros, and it makes NaN equal to itself.
    return one == other if isinstance(one, str | bytes | frozenset) else repr(one) == repr(other)


def _cut(text: ModuleText, code: CodeType) -> tuple[str, ...]:
    """The lines of a function by its code object's lines and its indentation."""
    first = code.co_firstlineno - 1
    if not 0 <= first < len(text.lines):
        return ()
    indent = _indent_of(text.lines[first])
    end = max(_last_line(code), first + 1)
    width = len(indent)
    position = end
    while position < len(text.lines):
        line = text.lines[position]
        stripped = line.lstrip()
        position += 1
        if not stripped or stripped[0] == "#":
            continue
        if len(line) - len(stripped) <= width:
            break
        end = position
    return _block(text.lines[first:end], indent)


def _cut_by_tree(text: ModuleText, code: CodeType) -> tuple[str, ...]:
    try:
        module = ast.parse("\n".join(text.lines))
    except (SyntaxError, ValueError):
        return ()
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            if first == code.co_firstlineno and node.end_lineno is not None:
                lines = text.lines[first - 1 : node.end_lineno]
                return _block(lines, _indent_of(lines[0]))
    return ()


def _block(lines: tuple[str, ...], indent: str) -> tuple[str, ...]:
    return (_BLOCK, *lines) if indent else lines


def _indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _last_line(code: CodeType) -> int:
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            last = max(last, _last_line(constant))
    return last


def _parse_definition(lines: tuple[str, ...], name: str) -> ast.FunctionDef | None:
    if not lines:
        return None
    try:
        module = ast.parse("\n".join(lines) + "\n")
    except (SyntaxError, ValueError):
        return None
    body = module.body
    if lines[0] == _BLOCK and len(body) == 1 and isinstance(body[0], ast.If):
        body = body[0].body
    if len(body) == 1 and isinstance(body[0], ast.FunctionDef) and body[0].name == name:
        return body[0]
    return None
