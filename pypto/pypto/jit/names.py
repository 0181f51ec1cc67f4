"""Which names of the outside world a function's text uses, and through which attributes.

The answer comes from the syntax tree. Bytecode would not do: it has no local annotations, and
the parser reads those. Where scoping is in doubt a name is taken to be used; a name too many
costs a key that is a little too precise, a name too few a wrong answer.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

_NESTED = frozenset(
    {
        ast.Lambda,
        ast.ListComp,
        ast.SetComp,
        ast.DictComp,
        ast.GeneratorExp,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
    }
)
# Statements and patterns that bind a name without a Name node: the field that has it.
_BINDERS = {
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
_OUTWARD = frozenset({ast.Global, ast.Nonlocal})
# What is below a node of each class: the fields that can hold nodes. Contexts and operators are
# nodes too, but hold no names.
_WITHOUT_NAMES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "lineno", "type_comment"})


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name and the attribute paths used below it, both sorted; ``()`` is the name itself."""

    name: str
    paths: tuple[tuple[str, ...], ...]


def attribute_names(function: ast.FunctionDef) -> tuple[str, ...]:
    """Every attribute that `function` mentions, of whatever: an element or a local name, too."""
    found = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    return tuple(sorted(found))


def outside_names(function: ast.FunctionDef) -> tuple[NameUse, ...]:
    """Every name that the body, the annotations or the defaults of `function` take from outside.

    Decorators are left out: what they say is recorded by the decoration itself.
    """
    arguments = function.args
    parameters = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        *(extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None),
    ]
    header = _Uses()
    for parameter in parameters:
        header.annotation(parameter.annotation)
    header.annotation(function.returns)
    for default in (*arguments.defaults, *arguments.kw_defaults):
        if default is not None:
            header.visit(default)
    body = _Uses()
    for statement in function.body:
        body.visit(statement)
    inside = body.stored.union(parameter.arg for parameter in parameters) - body.declared_outside
    used = header.loaded
    for name, paths in body.loaded.items():
        if name not in inside:
            used.setdefault(name, set()).update(paths)
    return tuple(NameUse(name, tuple(sorted(used[name]))) for name in sorted(used))


class _Uses:
    """Collects what is loaded anywhere, and what the function's own scope stores."""

    __slots__ = ("declared_outside", "loaded", "stored")

    def __init__(self) -> None:
        self.loaded: dict[str, set[tuple[str, ...]]] = {}
        self.stored: set[str] = set()
        self.declared_outside: set[str] = set()

    def annotation(self, node: ast.expr | None) -> None:
        """Visit an annotation; strings in it are expressions too."""
        if node is None:
            return
        self.visit(node)
        for part in ast.walk(node):
            if type(part) is ast.Constant and type(part.value) is str:
                try:
                    self.visit(ast.parse(part.value.strip(), mode="eval").body)
                except (SyntaxError, ValueError):
                    continue

    def visit(self, root: ast.AST) -> None:
        """Visit `root` and everything below it."""
        # Pairs of a node and whether it lies in a nested scope, whose stores are its own.
        pending: list[tuple[ast.AST, bool]] = [(root, False)]
        while pending:
            node, nested = pending.pop()
            kind = type(node)
            if kind is ast.Name:
                if type(node.ctx) is ast.Load:  # type: ignore[attr-defined]
                    self._load(node.id, ())  # type: ignore[attr-defined]
                elif not nested:
                    self.stored.add(node.id)  # type: ignore[attr-defined]
            elif kind is ast.Constant:
                continue
            elif kind is ast.Attribute:
                base = self._attribute(node)
                if base is not None:
                    pending.append((base, nested))
            else:
                if not nested:
                    self._bind(kind, node)
                below = nested or kind in _NESTED
                for name in kind._fields:
                    if name in _WITHOUT_NAMES:
                        continue
                    value = getattr(node, name, None)
                    if type(value) is list:
                        for item in value:
                            if isinstance(item, ast.AST):
                                pending.append((item, below))
                    elif isinstance(value, ast.AST):
                        pending.append((value, below))

    def _attribute(self, node: ast.AST) -> ast.AST | None:
        """Record a path that starts at a name; otherwise give what it starts at."""
        path = []
        while isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            path.reverse()
            self._load(node.id, tuple(path))
            return None
        return node

    def _load(self, name: str, path: tuple[str, ...]) -> None:
        paths = self.loaded.get(name)
        if paths is None:
            paths = self.loaded[name] = set()
        paths.add(path)

    def _bind(self, kind: type[ast.AST], node: ast.AST) -> None:
        field = _BINDERS.get(kind)
        if field is not None:
            name = getattr(node, field)
            if name is not None:
                self.stored.add(name)
        elif kind is ast.AnnAssign:
            self.annotation(node.annotation)  # type: ignore[attr-defined]
        elif kind in _OUTWARD:
            self.declared_outside.update(node.names)  # type: ignore[attr-defined]
        elif isinstance(node, ast.alias):
            self.stored.add((node.asname or node.name).partition(".")[0])
