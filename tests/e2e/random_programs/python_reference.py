"""What a program of the language means, told by Python and torch alone.

The text is rewritten into plain Python: loops with carried values become assignments around `for`
and `while`, blocks become loops, and `pl` is the stand-in of `reference_language.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from approximate import Ball
from reference_language import language, memory
from torch import Tensor

# Operators that work on tiles and tensor-level values too.
OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}


def program(text: str) -> Callable[..., None]:
    """The function or method `main` of `text`, as a function of what its tensors hold."""
    tree = ast.parse(text)
    tree.body = [s for s in tree.body if isinstance(s, ast.ClassDef | ast.FunctionDef)]
    tree = ast.fix_missing_locations(_Rewriter().visit(tree))
    scope: dict[str, Any] = {"pl": language()}
    exec(compile(tree, "<reference>", "exec"), scope)
    main = scope["main"] if "main" in scope else scope["Random"]().main

    def run(*arguments: object) -> None:
        main(*(memory(a) if isinstance(a, Tensor | Ball) else a for a in arguments))

    return run


class _Rewriter(ast.NodeTransformer):
    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return _call("part", node.value, _index(node.slice))

    def visit_Assign(self, node: ast.Assign) -> Any:
        (target,) = node.targets
        if isinstance(target, ast.Subscript):
            value = self.visit(node.value)
            return self._put(target, value)
        node.value = self.visit(node.value)
        if _is_call(node.value, "yield_"):
            node.value = ast.Tuple(node.value.args, ast.Load())  # type: ignore[attr-defined]
            if not isinstance(target, ast.Tuple):
                node.targets = [ast.Tuple([target], ast.Store())]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        assert node.value is not None
        return self.visit_Assign(ast.Assign([node.target], node.value))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = OPERATORS.get(type(node.op))
        return node if name is None else _call(f"operator_{name}", node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if not isinstance(node.target, ast.Subscript):
            return self.generic_visit(node)
        place = node.target
        old = _call("part", place.value, self.visit(_index(place.slice)))
        return self._put(place, ast.BinOp(old, node.op, self.visit(node.value)))

    def _put(self, place: ast.Subscript, value: ast.expr) -> ast.stmt:
        assert isinstance(place.value, ast.Name)
        target = ast.Name(place.value.id, ast.Store())
        return ast.Assign(
            [target], _call("put", place.value, self.visit(_index(place.slice)), value)
        )

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        call = node.items[0].context_expr
        if _is_call(call, "spmd"):
            return ast.For(ast.Name("_", ast.Store()), call, node.body, [])
        return node

    def visit_For(self, node: ast.For) -> Any:
        call = node.iter
        assert isinstance(call, ast.Call)
        initial = next((k.value for k in call.keywords if k.arg == "init_values"), None)
        call.keywords = [k for k in call.keywords if k.arg != "init_values"]
        if initial is None:
            return self.generic_visit(node)
        last = node.body[-1]
        assert isinstance(last, ast.Assign)
        (results,) = last.targets
        if not isinstance(results, ast.Tuple):
            results = ast.Tuple([results], ast.Store())
        read = ast.Tuple([ast.Name(e.id, ast.Load()) for e in results.elts], ast.Load())  # type: ignore[attr-defined]
        start = ast.Assign([results], self.visit(initial))
        if _is_call(call, "while_"):
            body = self._block(node.body)
            return [
                start,
                ast.While(ast.Constant(True), [ast.Assign([node.target], read), *body], []),
            ]
        assert isinstance(node.target, ast.Tuple)
        counter, carried = node.target.elts
        body = [ast.Assign([carried], read), *self._block(node.body)]
        return [start, ast.For(counter, self.visit(call), body, [])]

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        rewritten: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            rewritten += new if isinstance(new, list) else [new]
        return rewritten

    def visit_Expr(self, node: ast.Expr) -> Any:
        self.generic_visit(node)
        if _is_call(node.value, "bind_dynamic"):
            return ast.Pass()
        if _is_call(node.value, "cond"):
            (condition,) = node.value.args  # type: ignore[attr-defined]
            return ast.If(ast.UnaryOp(ast.Not(), condition), [ast.Break()], [])
        return node


def _is_call(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
    )


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(
        ast.Attribute(ast.Name("pl", ast.Load()), name, ast.Load()), list(arguments), []
    )


def _index(index: ast.expr) -> ast.expr:
    """A subscript as a tuple of ints and slices."""
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    parts: list[ast.expr] = []
    for item in items:
        if isinstance(item, ast.Slice):
            ends = [e or ast.Constant(None) for e in (item.lower, item.upper)]
            item = ast.Call(ast.Name("slice", ast.Load()), ends, [])
        parts.append(item)
    return ast.Tuple(parts, ast.Load())
