"""What a function's text says of the outside world: the names it uses, and their attributes.

The answer comes from the syntax tree alone. Bytecode would not do: it has no local annotations,
and the parser reads those. Scopes are those of the language: a comprehension's variable, a nested
function's local and a name that the function assigns anywhere are not the outside's. Where only
running the text could tell, a name is taken to be used; a name too many costs a key that is a
little too precise, a name too few a wrong answer.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

# Statements and patterns that bind a name without a Name node: the field that has it.
_BINDERS = {
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
_FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda})
_COMPREHENSIONS = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})
# Fields below a node that hold no names: contexts and operators are nodes too.
_WITHOUT_NAMES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "lineno", "type_comment"})

_COMPARISONS = ("__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__")
_CONVERSIONS = ("__format__", "__repr__", "__str__")
_ORDERING = frozenset({"max", "min"})

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name and the attribute paths used below it, both sorted; ``()`` is the name itself."""

    name: str
    paths: tuple[_Path, ...]


@dataclass(frozen=True, slots=True)
class TextFacts:
    """All that a function's text alone says of what it depends on; equal texts, equal facts.

    `names` are those that the body, the annotations or the defaults take from outside.
    `attributes` are those mentioned of anything, an element or a local name too, and the special
    methods that its comparisons and formatted strings would call.
    """

    names: tuple[NameUse, ...]
    attributes: tuple[str, ...]


def facts_of(function: ast.FunctionDef) -> TextFacts:
    """The facts of one function. Reads nothing but the tree.

    Decorators are left out: what they say is recorded by the decoration itself.
    """
    return TextFacts(_outside_names(function), _attribute_names(function))


def _attribute_names(function: ast.FunctionDef) -> tuple[str, ...]:
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Compare) or (isinstance(node, ast.Name) and node.id in _ORDERING):
            found.update(_COMPARISONS)
        elif isinstance(node, ast.JoinedStr):
            found.update(_CONVERSIONS)
    return tuple(sorted(found))


def _outside_names(function: ast.FunctionDef) -> tuple[NameUse, ...]:
    walk = _ScopeWalk()
    # Annotations and defaults are evaluated where the function is defined: its own parameters
    # hide nothing from them.
    outside = walk.scope(_Kind.OUTSIDE, None)
    walk.visit_header(function, outside)
    body = walk.scope(_Kind.FUNCTION, outside)
    walk.visit_function(function, body)
    used = walk.resolved()
    return tuple(NameUse(name, tuple(sorted(used[name]))) for name in sorted(used))


class _Kind(enum.Enum):
    OUTSIDE = "outside"
    FUNCTION = "function"
    CLASS = "class"
    COMPREHENSION = "comprehension"


class _Scope:
    """What one scope binds, declares and loads; `loads` and `inner` map names to paths."""

    __slots__ = (
        "declared_global",
        "declared_nonlocal",
        "inner",
        "kind",
        "loads",
        "outer",
        "stored",
    )

    def __init__(self, kind: _Kind, outer: _Scope | None) -> None:
        self.kind = kind
        self.outer = outer
        self.stored: set[str] = set()
        self.declared_global: set[str] = set()
        self.declared_nonlocal: set[str] = set()
        self.loads: dict[str, set[_Path]] = {}
        # What scopes inside this one do not find in themselves.
        self.inner: dict[str, set[_Path]] = {}


def _merge(into: dict[str, set[_Path]], name: str, paths: Iterable[_Path]) -> None:
    known = into.get(name)
    if known is None:
        into[name] = set(paths)
    else:
        known.update(paths)


class _ScopeWalk:
    """Visits a text without recursion, so that the depth of an expression does not matter."""

    __slots__ = ("_pending", "_scopes")

    def __init__(self) -> None:
        self._pending: list[tuple[ast.AST, _Scope]] = []
        # Outer scopes come before the ones inside them.
        self._scopes: list[_Scope] = []

    def scope(self, kind: _Kind, outer: _Scope | None) -> _Scope:
        """A new scope inside `outer`."""
        made = _Scope(kind, outer)
        self._scopes.append(made)
        return made

    def resolved(self) -> dict[str, set[_Path]]:
        """The names that no scope binds, after everything has been visited."""
        self._visit_all()
        outside: dict[str, set[_Path]] = {}
        for scope in reversed(self._scopes):
            outer = outside if scope.outer is None else scope.outer.inner
            for loads, own in ((scope.loads, True), (scope.inner, False)):
                for name, paths in loads.items():
                    if name in scope.declared_global:
                        _merge(outside, name, paths)
                    elif scope.kind is _Kind.CLASS:
                        # Functions in a class do not see its names. Its own statements do, from
                        # the moment they are bound; before that they are looked up as globals.
                        if own and name in scope.stored:
                            _merge(outside, name, paths)
                        _merge(outer, name, paths)
                    elif (
                        scope.kind is _Kind.OUTSIDE
                        or name not in scope.stored
                        or name in scope.declared_nonlocal
                    ):
                        _merge(outer, name, paths)
        return outside

    def visit_header(self, function: ast.AST, scope: _Scope) -> None:
        """Visit what of a function is evaluated where it is defined."""
        assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        arguments = function.args
        for parameter in _parameters(arguments):
            self._annotation(parameter.annotation, scope)
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self._pending.append((default, scope))
        if not isinstance(function, ast.Lambda):
            self._annotation(function.returns, scope)

    def visit_function(self, function: ast.AST, scope: _Scope) -> None:
        """Visit what of a function is its own: `scope` is that of its body."""
        assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        scope.stored.update(parameter.arg for parameter in _parameters(function.args))
        body = [function.body] if isinstance(function, ast.Lambda) else function.body
        self._pending.extend((statement, scope) for statement in body)

    def _annotation(self, node: ast.expr | None, scope: _Scope) -> None:
        """Visit an annotation; strings in it are expressions too."""
        if node is None:
            return
        self._pending.append((node, scope))
        for part in ast.walk(node):
            if type(part) is ast.Constant and type(part.value) is str:
                try:
                    parsed = ast.parse(part.value.strip(), mode="eval").body
                except (SyntaxError, ValueError):
                    continue
                self._pending.append((parsed, scope))

    def _visit_all(self) -> None:
        pending = self._pending
        while pending:
            node, scope = pending.pop()
            kind = type(node)
            if kind is ast.Name:
                name = cast("ast.Name", node)
                if type(name.ctx) is ast.Load:
                    _merge(scope.loads, name.id, ((),))
                else:
                    scope.stored.add(name.id)
            elif kind is ast.Constant:
                continue
            elif kind is ast.Attribute:
                base = self._attribute(node, scope)
                if base is not None:
                    pending.append((base, scope))
            elif kind in _FUNCTIONS:
                self._function(node, scope)
            elif kind in _COMPREHENSIONS:
                self._comprehension(node, scope)
            elif kind is ast.ClassDef:
                self._class(cast("ast.ClassDef", node), scope)
            elif kind is ast.NamedExpr:
                self._named(cast("ast.NamedExpr", node), scope)
            else:
                self._bind(node, scope)
                for field in kind._fields:
                    if field not in _WITHOUT_NAMES:
                        self._push(getattr(node, field, None), scope)

    def _push(self, value: object, scope: _Scope) -> None:
        if type(value) is list:
            self._pending.extend((item, scope) for item in value if isinstance(item, ast.AST))
        elif isinstance(value, ast.AST):
            self._pending.append((value, scope))

    def _attribute(self, node: ast.AST, scope: _Scope) -> ast.AST | None:
        """Record a path that starts at a name; otherwise give what it starts at."""
        path = []
        while isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            path.reverse()
            _merge(scope.loads, node.id, (tuple(path),))
            return None
        return node

    def _function(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            scope.stored.add(node.name)
            self._push(node.decorator_list, scope)
        self.visit_header(node, scope)
        self.visit_function(node, self.scope(_Kind.FUNCTION, scope))

    def _comprehension(self, node: ast.AST, scope: _Scope) -> None:
        assert isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
        inside = self.scope(_Kind.COMPREHENSION, scope)
        # The first sequence is evaluated before there is anything inside.
        self._pending.append((node.generators[0].iter, scope))
        for position, generator in enumerate(node.generators):
            self._pending.append((generator.target, inside))
            self._push(generator.ifs, inside)
            if position:
                self._pending.append((generator.iter, inside))
        if isinstance(node, ast.DictComp):
            self._pending += ((node.key, inside), (node.value, inside))
        else:
            self._pending.append((node.elt, inside))

    def _class(self, node: ast.ClassDef, scope: _Scope) -> None:
        scope.stored.add(node.name)
        for part in (node.decorator_list, node.bases, node.keywords):
            self._push(part, scope)
        self._push(node.body, self.scope(_Kind.CLASS, scope))

    def _named(self, node: ast.NamedExpr, scope: _Scope) -> None:
        self._pending.append((node.value, scope))
        # A comprehension has no names of its own but its variables.
        while scope.kind is _Kind.COMPREHENSION and scope.outer is not None:
            scope = scope.outer
        scope.stored.add(node.target.id)

    def _bind(self, node: ast.AST, scope: _Scope) -> None:
        field = _BINDERS.get(type(node))
        if field is not None:
            name = getattr(node, field)
            if name is not None:
                scope.stored.add(name)
        elif isinstance(node, ast.AnnAssign):
            self._annotation(node.annotation, scope)
        elif isinstance(node, ast.Global):
            scope.declared_global.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            scope.declared_nonlocal.update(node.names)
        elif isinstance(node, ast.alias):
            scope.stored.add((node.asname or node.name).partition(".")[0])


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    extras = (arguments.vararg, arguments.kwarg)
    return [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        *(extra for extra in extras if extra is not None),
    ]
