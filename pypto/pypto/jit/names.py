"""Which names of the outside world a function's text uses, and through which attributes.

The answer comes from the syntax tree. Bytecode would not do: it has no local annotations, and
the parser reads those. Where scoping is in doubt a name is taken to be used; a name too many
costs a key that is a little too precise, a name too few a wrong answer.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

_NESTED = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name and the attribute paths used below it, both sorted; ``()`` is the name itself."""

    name: str
    paths: tuple[tuple[str, ...], ...]


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
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
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
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    self._load(node.id, ())
                elif not nested:
                    self.stored.add(node.id)
                continue
            if isinstance(node, ast.Attribute):
                path = [node.attr]
                base = node.value
                while isinstance(base, ast.Attribute):
                    path.append(base.attr)
                    base = base.value
                if isinstance(base, ast.Name) and isinstance(base.ctx, ast.Load):
                    self._load(base.id, tuple(reversed(path)))
                else:
                    pending.append((base, nested))
                continue
            if isinstance(node, ast.AnnAssign):
                self.annotation(node.annotation)
            elif isinstance(node, ast.Global | ast.Nonlocal):
                self.declared_outside.update(node.names)
            else:
                self._bind(node, nested)
            below = nested or isinstance(node, _NESTED)
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    pending.extend((item, below) for item in value if isinstance(item, ast.AST))
                elif isinstance(value, ast.AST):
                    pending.append((value, below))

    def _load(self, name: str, path: tuple[str, ...]) -> None:
        paths = self.loaded.get(name)
        if paths is None:
            paths = self.loaded[name] = set()
        paths.add(path)

    def _bind(self, node: ast.AST, nested: bool) -> None:
        """Statements that bind a name without a Name node."""
        if nested:
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.stored.add(node.name)
        elif isinstance(node, ast.alias):
            self.stored.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            if node.name is not None:
                self.stored.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            self.stored.add(node.rest)
