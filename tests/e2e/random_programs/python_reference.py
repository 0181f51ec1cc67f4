"""What a program of the language means, told by Python and torch alone.

The text is rewritten into plain Python: loops with carried values become assignments around `for`
and `while`, blocks become loops, and `pl` is a stand-in whose functions work on torch tensors.
Tiles and tensor-level values are torch tensors that are never written; tensors in global memory
carry the attribute `memory` and are written in place. A value with a valid region is just that
region.
"""

from __future__ import annotations

import ast
import contextlib
import operator
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

Tensor = torch.Tensor
Memory = Any

DTYPES = {
    "FP32": torch.float32,
    "FP16": torch.float16,
    "BF16": torch.bfloat16,
    "INT32": torch.int32,
    "INT16": torch.int16,
    "INT8": torch.int8,
}
# By `cmp_type`.
COMPARE = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def memory(tensor: Tensor) -> Memory:
    """`tensor`, as one that lies in global memory."""
    tensor.memory = True  # type: ignore[attr-defined]
    return tensor


def program(text: str) -> Callable[..., None]:
    """The method `main` of the class that `text` defines, as a function of torch tensors."""
    tree = ast.parse(text)
    tree.body = [s for s in tree.body if isinstance(s, ast.ClassDef | ast.FunctionDef)]
    tree = ast.fix_missing_locations(_Rewriter().visit(tree))
    scope: dict[str, Any] = {"pl": _language()}
    exec(compile(tree, "<reference>", "exec"), scope)
    main = scope["Random"]().main

    def run(*arguments: object) -> None:
        main(*(memory(a) if isinstance(a, Tensor) else a for a in arguments))

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


def _language() -> SimpleNamespace:
    """`pl` for the interpreter."""
    state = SimpleNamespace(on_core=False, block=0)

    @contextlib.contextmanager
    def at(**_: object) -> Iterator[None]:
        before, state.on_core = state.on_core, True
        yield
        state.on_core = before

    def spmd(blocks: int, **_: object) -> Iterator[int]:
        before, state.on_core = state.on_core, True
        for state.block in range(blocks):
            yield state.block
        state.on_core, state.block = before, 0

    @contextlib.contextmanager
    def manual_scope() -> Iterator[None]:
        yield

    def part(x: Tensor, index: tuple[Any, ...]) -> Any:
        found = x[index]
        if found.ndim == 0:
            return found.item()
        return found.clone() if state.on_core or not hasattr(x, "memory") else memory(found)

    def put(x: Tensor, index: tuple[Any, ...], value: Any) -> Tensor:
        if not hasattr(x, "memory"):
            x = x.clone()
        x[index] = value
        return x

    def window(x: Tensor, offset: list[int], shape: list[int]) -> Tensor:
        (r, c), (rows, cols) = offset, shape
        assert 0 <= r <= x.shape[0] - rows and 0 <= c <= x.shape[1] - cols
        return x[r : r + rows, c : c + cols]

    def load(
        x: Tensor, offset: list[int], shape: list[int], valid_shape: Any = None, **_: Any
    ) -> Tensor:
        found = window(x, offset, valid_shape or shape).clone()
        found.whole = tuple(shape)  # type: ignore[attr-defined]
        return found

    def slice_(x: Tensor, shape: list[int], offset: list[int]) -> Tensor:
        found = window(x, offset, shape)
        return found.clone() if state.on_core else memory(found)

    def assemble(x: Tensor, source: Tensor, offset: list[int]) -> Tensor:
        if not hasattr(x, "memory"):
            x = x.clone()
        window(x, offset, list(source.shape)).copy_(source)
        return x

    def store(tile: Tensor, offset: list[int], x: Tensor, atomic: bool = False) -> Tensor:
        place = window(x, offset, list(tile.shape))
        place.copy_(place + tile if atomic else tile)
        return x

    def fillpad(x: Any, pad_value: str) -> Tensor:
        limits = torch.finfo(x.dtype) if x.dtype.is_floating_point else torch.iinfo(x.dtype)
        fill = 0 if pad_value == "zero" else getattr(limits, pad_value)
        whole = torch.full(x.whole, fill, dtype=x.dtype)
        whole[: x.shape[0], : x.shape[1]] = x
        return whole

    def full(shape: list[int], dtype: torch.dtype, value: float = 0) -> Tensor:
        return torch.full(shape, value, dtype=dtype)

    def matmul(a: Tensor, b: Tensor, a_trans: bool = False, b_trans: bool = False) -> Tensor:
        wide = torch.int32 if a.dtype == torch.int8 else torch.float32
        a, b = a.to(wide), b.to(wide)
        return (a.t() if a_trans else a) @ (b.t() if b_trans else b)

    def like(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Results have the type of the first operand."""
        return lambda x, *rest: f(x, *rest).to(x.dtype)

    def number(x: Tensor, value: Any) -> Tensor:
        return value if isinstance(value, Tensor) else torch.full_like(x, value)

    def sel(mask: Tensor, x: Any, y: Any) -> Tensor:
        dtype = x.dtype if isinstance(x, Tensor) else y.dtype
        return torch.where(mask, x, y).to(dtype)

    binary: dict[str, Callable[..., Tensor]] = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "maximum": lambda x, y: torch.maximum(*torch.broadcast_tensors(x, number(x, y))),
        "minimum": lambda x, y: torch.minimum(*torch.broadcast_tensors(x, number(x, y))),
        "fmod": torch.fmod,
        "and_": lambda x, y: x & y,
        "or_": lambda x, y: x | y,
        "xor": lambda x, y: x ^ y,
        "shl": lambda x, y: x << y,
        "shr": lambda x, y: x >> y,
    }
    functions: dict[str, Any] = {name: like(f) for name, f in binary.items()}
    for axis in ("row", "col"):
        for short, name in (
            ("add",) * 2,
            ("sub",) * 2,
            ("mul",) * 2,
            ("max", "maximum"),
            ("min", "minimum"),
        ):
            functions[f"{axis}_expand_{short}"] = functions[name]
        dim = 1 if axis == "row" else 0
        functions[f"{axis}_sum"] = like(lambda x, scratch=None, dim=dim: x.sum(dim, keepdim=True))
        functions[f"{axis}_max"] = like(lambda x, scratch=None, dim=dim: x.amax(dim, keepdim=True))
        functions[f"{axis}_min"] = like(lambda x, scratch=None, dim=dim: x.amin(dim, keepdim=True))
        functions[f"{axis}_expand"] = lambda x, y: y.expand_as(x).clone()
    return SimpleNamespace(
        **functions,
        **DTYPES,
        Level=SimpleNamespace(CORE_GROUP=0),
        Mem=SimpleNamespace(Mat=0, Left=0, Right=0, Vec=0),
        PadValue=SimpleNamespace(zero="zero", min="min", max="max"),
        AtomicType=SimpleNamespace(Add=True),
        tile=SimpleNamespace(get_block_idx=lambda: state.block),
        tensor=SimpleNamespace(full=full),
        full=full,
        create_tile=full,
        range=range,
        parallel=range,
        unroll=range,
        pipeline=lambda *bounds, stage: range(*bounds),
        at=at,
        spmd=spmd,
        manual_scope=manual_scope,
        part=part,
        put=put,
        load=load,
        slice=slice_,
        assemble=assemble,
        store=store,
        fillpad=fillpad,
        matmul=matmul,
        move=lambda x, space: x,
        read=lambda x, offset: x[tuple(offset)].item(),
        min=min,
        max=max,
        neg=lambda x: -x,
        abs=torch.abs,
        relu=torch.relu,
        cmp=lambda x, y, cmp_type: COMPARE[cmp_type](x, y),
        sel=sel,
        not_=torch.bitwise_not,
        cast=lambda x, dtype, mode="round": x.to(dtype),
        reshape=lambda x, shape: x.reshape(shape),
        transpose=lambda x, a, b: x.transpose(a, b),
        concat=lambda x, y: torch.cat((x, y), 1),
        create_tensor=lambda shape, dtype, init_value: memory(
            torch.full(shape, init_value, dtype=dtype)
        ),
    )
