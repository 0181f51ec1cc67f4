"""Tensors larger than on-chip memory, used whole: the compiler cuts them into blocks."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DataType

Tensor = torch.Tensor
TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}

pytestmark = pytest.mark.parametrize("target", TARGETS)


def kernel(body: str, params: dict[str, str], *, indent: int = 8) -> str:
    """A kernel with one scope."""
    text = textwrap.indent(textwrap.dedent(body).strip(), " " * indent)
    given = ", ".join(f"{name}: {direction}" for name, direction in params.items())
    return f"def tiled({given}):\n    with pl.at(level=pl.Level.CORE_GROUP):\n{text}\n"


def values(shape: tuple[int, ...], dtype: DataType, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype.torch_name)
    if dtype.is_float:
        return (torch.rand(shape, generator=generator) - 0.5).to(kind)
    return torch.randint(-6, 7, shape, generator=generator).to(kind)


class Run:
    """Compiles a scope over whole tensors and holds what it writes against torch."""

    def __init__(self, compile_text: Any, target: str) -> None:
        self._compile = compile_text
        self._target = target

    def __call__(
        self,
        body: str,
        reference: Callable[..., Any],
        *,
        rtol: float = 1e-5,
        atol: float = 1e-5,
        **shapes: Any,
    ) -> None:
        """`reference` takes the inputs and gives the outputs, whose names begin with `out`.

        A shape is a tuple, or a tuple and an element type; `io` names are read and written.
        """
        kinds = {n: (s if isinstance(s[0], tuple) else (s, FP32)) for n, s in shapes.items()}
        direction = {
            name: "pl.Out[pl.Tensor]"
            if name.startswith("out")
            else "pl.InOut[pl.Tensor]"
            if name.startswith("io")
            else "pl.Tensor"
            for name in kinds
        }
        compiled = self._compile(
            kernel(body, direction), dict(kinds), backend_type=TARGETS[self._target]
        )
        given = {
            name: torch.zeros(shape, dtype=getattr(torch, dtype.torch_name))
            if name.startswith("out")
            else values(shape, dtype, seed)
            for seed, (name, (shape, dtype)) in enumerate(kinds.items())
        }
        inputs = {n: t.clone() for n, t in given.items() if not n.startswith("out")}
        wanted = reference(**inputs)
        compiled(*given.values())
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        written = [t for n, t in given.items() if n.startswith(("out", "io"))]
        for actual, expected in zip(written, wanted, strict=True):
            torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=True)


@pytest.fixture
def run(compile_text: Any, target: str) -> Run:
    return Run(compile_text, target)


# Exactly as many blocks as fit, a smaller last block, one column, primes, one axis, three axes.
SHAPES = [(512, 512), (1000, 333), (70001, 1), (1, 100003), (100003,), (7, 31, 997), (3, 60000)]


@pytest.mark.conforms("language.67")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_chain_of_elementwise_operations(run: Run, shape: tuple[int, ...]) -> None:
    run(
        """
        t = pl.add(pl.mul(a, b), a)
        u = pl.maximum(t, 0.1)
        out[:] = pl.sub(pl.exp(u), b)
        """,
        lambda a, b: torch.exp((a * b + a).clamp(min=0.1)) - b,
        a=shape,
        b=shape,
        out=shape,
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_copies(run: Run, shape: tuple[int, ...]) -> None:
    run("out[:] = a", lambda a: a, a=shape, out=shape)


@pytest.mark.parametrize("shape", [(1000, 333), (5, 60001)], ids=str)
def test_rows_and_columns_are_broadcast(run: Run, shape: tuple[int, int]) -> None:
    rows, cols = shape
    run(
        """
        t = pl.row_expand_mul(a, pl.add(r, 1.0))
        out[:] = pl.col_expand_add(t, pl.exp(c))
        """,
        lambda a, r, c: a * (r + 1.0) + torch.exp(c),
        a=shape,
        r=(rows, 1),
        c=(1, cols),
        out=shape,
    )


@pytest.mark.parametrize("kind", ["FP16", "BF16", "INT32"])
def test_element_types_are_cast_in_blocks(run: Run, kind: str) -> None:
    dtype = {"FP16": FP16, "BF16": BF16, "INT32": INT32}[kind]
    torch_type = getattr(torch, dtype.torch_name)
    run(
        f"out[:] = pl.cast(pl.mul(pl.cast(a, pl.FP32), 2.0), pl.{kind}, mode='rint')",
        lambda a: (a.float() * 2.0).to(torch_type),
        a=((777, 257), dtype),
        out=((777, 257), dtype),
    )


@pytest.mark.parametrize("shape", [(1000, 333), (3, 100003), (9, 65536)], ids=str)
def test_softmax_over_rows(run: Run, shape: tuple[int, int]) -> None:
    run(
        """
        m = pl.row_max(a)
        e = pl.exp(pl.row_expand_sub(a, m))
        out[:] = pl.row_expand_div(e, pl.row_sum(e))
        """,
        lambda a: torch.softmax(a, dim=1),
        a=shape,
        out=shape,
    )


@pytest.mark.parametrize("shape", [(1000, 333), (70001, 3)], ids=str)
def test_softmax_over_columns(run: Run, shape: tuple[int, int]) -> None:
    run(
        """
        e = pl.exp(pl.col_expand_sub(a, pl.col_max(a)))
        out[:] = pl.col_expand_div(e, pl.col_sum(e))
        """,
        lambda a: torch.softmax(a, dim=0),
        a=shape,
        out=shape,
    )


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("axis", ["row", "col"])
def test_reductions_of_extents_that_do_not_fit(run: Run, axis: str, name: str) -> None:
    shape, result = ((5, 70001), (5, 1)) if axis == "row" else ((70001, 5), (1, 5))
    dim = 1 if axis == "row" else 0
    torch_name = {"max": "amax", "min": "amin"}.get(name, name)
    shift = "pl.add(pl.mul(a, 0.00001), 1.0)" if name == "prod" else "a"

    def reference(a: Tensor) -> Tensor:
        x = a * 0.00001 + 1.0 if name == "prod" else a
        return getattr(x.double(), torch_name)(dim, keepdim=True).float()

    run(f"out[:] = pl.{axis}_{name}({shift})", reference, rtol=1e-3, atol=1e-3, a=shape, out=result)


@pytest.mark.parametrize("shape", [(512, 512), (1000, 333)], ids=str)
def test_constant_tensors_take_no_memory(run: Run, shape: tuple[int, int]) -> None:
    run(
        f"""
        ones = pl.tensor.full({list(shape)}, dtype=pl.FP32, value=1.5)
        out1[:] = ones
        out2[:] = pl.sub(ones, a)
        """,
        lambda a: (torch.full(shape, 1.5), 1.5 - a),
        a=shape,
        out1=shape,
        out2=shape,
    )


def test_several_outputs_of_one_loop(run: Run) -> None:
    run(
        """
        t = pl.add(a, b)
        out1[:] = t
        s = pl.row_sum(t)
        out2[:] = s
        out3[:] = pl.row_expand_mul(t, s)
        """,
        lambda a, b: (
            a + b,
            (a + b).sum(1, keepdim=True),
            (a + b) * (a + b).sum(1, keepdim=True),
        ),
        rtol=1e-4,
        atol=1e-4,
        a=(600, 300),
        b=(600, 300),
        out1=(600, 300),
        out2=(600, 1),
        out3=(600, 300),
    )


def test_a_tensor_is_changed_in_place(run: Run) -> None:
    run(
        """
        io[:] = pl.add(io, a)
        io[:] = pl.mul(io, io)
        out[:] = pl.sub(io, a)
        """,
        lambda io, a: ((io + a) ** 2, (io + a) ** 2 - a),
        io=(600, 300),
        a=(600, 300),
        out=(600, 300),
    )


@pytest.mark.parametrize("shape", [(600, 300), (2, 70001)], ids=str)
def test_a_tensor_is_normalised_in_place(run: Run, shape: tuple[int, int]) -> None:
    # Nothing of a row may be written before all of it was read.
    run(
        "io[:] = pl.row_expand_sub(io, pl.row_max(io))",
        lambda io: io - io.amax(1, keepdim=True),
        io=shape,
    )


def test_rows_that_change_in_place_are_changed_once(run: Run) -> None:
    run(
        """
        io[:] = pl.add(io, 1.0)
        out[:] = pl.row_expand_add(a, io)
        """,
        lambda io, a: (io + 1, a + io + 1),
        io=(9, 1),
        a=(9, 70001),
        out=(9, 70001),
    )


def test_a_row_that_changes_in_place_is_changed_once(run: Run) -> None:
    run(
        """
        io[:] = pl.add(io, 1.0)
        out[:] = pl.col_expand_add(a, io)
        """,
        lambda io, a: (io + 1, a + io + 1),
        io=(1, 300),
        a=(1000, 300),
        out=(1000, 300),
    )


def test_reductions_along_both_axes_go_through_memory(run: Run) -> None:
    run(
        """
        e = pl.exp(a)
        n = pl.row_expand_div(e, pl.row_sum(e))
        out[:] = pl.col_expand_div(n, pl.col_sum(n))
        """,
        lambda a: torch.softmax(a, 1) / torch.softmax(a, 1).sum(0, keepdim=True),
        a=(700, 300),
        out=(700, 300),
    )


PRODUCTS = [
    (300, 500, 257),
    (512, 512, 512),
    (1, 4096, 513),
    (1031, 64, 7),
    (130, 1, 300),
    (33, 5000, 1),
]


@pytest.mark.conforms("language.67")
@pytest.mark.parametrize("kind", ["FP32", "FP16", "BF16", "INT8"])
@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_products_of_any_size(run: Run, sizes: tuple[int, int, int], kind: str) -> None:
    m, k, n = sizes
    dtype = {"FP32": FP32, "FP16": FP16, "BF16": BF16, "INT8": INT8}[kind]
    exact = torch.float64 if dtype.is_float else torch.int32
    result = FP32 if dtype.is_float else INT32
    run(
        "out[:] = pl.matmul(a, b)",
        lambda a, b: (a.to(exact) @ b.to(exact)).to(getattr(torch, result.torch_name)),
        rtol=1e-3,
        atol=1e-3,
        a=((m, k), dtype),
        b=((k, n), dtype),
        out=((m, n), result),
    )


def test_a_product_is_followed_by_elementwise_operations(run: Run) -> None:
    run(
        "out[:] = pl.relu(pl.col_expand_add(pl.matmul(a, b), c))",
        lambda a, b, c: torch.relu(a @ b + c),
        rtol=1e-4,
        atol=1e-4,
        a=(300, 400),
        b=(400, 700),
        c=(1, 700),
        out=(300, 700),
    )


def test_products_one_after_the_other(run: Run) -> None:
    run(
        """
        h = pl.relu(pl.matmul(a, b))
        out[:] = pl.matmul_acc(a, h, c)
        """,
        lambda a, b, c: a + torch.relu(a @ b) @ c,
        rtol=1e-3,
        atol=1e-3,
        a=(200, 300),
        b=(300, 500),
        c=(500, 300),
        out=(200, 300),
    )


def test_a_product_and_its_softmax(run: Run) -> None:
    run(
        """
        s = pl.mul(pl.matmul(q, k), 0.125)
        e = pl.exp(pl.row_expand_sub(s, pl.row_max(s)))
        out[:] = pl.matmul(pl.row_expand_div(e, pl.row_sum(e)), v)
        """,
        lambda q, k, v: torch.softmax(q @ k * 0.125, 1) @ v,
        rtol=1e-3,
        atol=1e-3,
        q=(256, 64),
        k=(64, 600),
        v=(600, 64),
        out=(256, 64),
    )


def test_products_that_accumulate_in_a_loop(run: Run) -> None:
    run(
        """
        acc = pl.matmul(a[:, 0:128], b[0:128, :])
        for i in pl.range(1, 4):
            acc = pl.matmul_acc(acc, a[:, i * 128 : i * 128 + 128], b[i * 128 : i * 128 + 128, :])
        out[:] = acc
        """,
        lambda a, b: a @ b,
        rtol=1e-3,
        atol=1e-3,
        a=(300, 512),
        b=(512, 400),
        out=(300, 400),
    )


def test_values_that_a_loop_exchanges(run: Run) -> None:
    run(
        """
        x = pl.add(a, 1.0)
        y = pl.mul(a, 2.0)
        for i in pl.range(3):
            x, y = y, pl.add(x, y)
        out[:] = pl.sub(x, y)
        """,
        lambda a: _exchanged(a),
        a=(600, 300),
        out=(600, 300),
    )


def _exchanged(a: Tensor) -> Tensor:
    x, y = a + 1, a * 2
    for _ in range(3):
        x, y = y, x + y
    return x - y


def test_values_that_a_branch_makes(run: Run) -> None:
    run(
        """
        t = pl.add(a, 1.0)
        for i in pl.range(3):
            if i % 2 == 0:
                t = pl.mul(t, 2.0)
            else:
                t = pl.sub(t, a)
        out[:] = t
        """,
        lambda a: ((a + 1) * 2 - a) * 2,
        a=(600, 300),
        out=(600, 300),
    )


def test_slices_are_read_and_regions_written_in_blocks(run: Run) -> None:
    def reference(io: Tensor, a: Tensor) -> Tensor:
        io[100:700, 50:350] = a[1:601, 7:307] * 2
        io[0:100, 0:400] = a[500:600, 0:400]
        return io

    run(
        """
        io[100:700, 50:350] = pl.mul(a[1:601, 7:307], 2.0)
        io[0:100, 0:400] = a[500:600, 0:400]
        """,
        reference,
        io=(800, 400),
        a=(610, 401),
    )


def test_a_region_moves_within_its_tensor(run: Run) -> None:
    def reference(io: Tensor) -> Tensor:
        io[1:800, :] = io[0:799, :].clone()
        return io

    run("io[1:800, :] = io[0:799, :]", reference, io=(800, 400))


RUN_TIME = {
    "elementwise": ("out[:] = pl.exp(pl.add(a, 1.0))", lambda a: torch.exp(a + 1)),
    "softmax": (
        "e = pl.exp(pl.row_expand_sub(a, pl.row_max(a)))\n"
        "out[:] = pl.row_expand_div(e, pl.row_sum(e))",
        lambda a: torch.softmax(a, 1),
    ),
    "columns": ("out[:] = pl.col_expand_sub(a, pl.col_max(a))", lambda a: a - a.amax(0)),
    "both ways": (
        "t = pl.row_expand_sub(a, pl.row_max(a))\nout[:] = pl.col_expand_sub(t, pl.col_max(t))",
        lambda a: _both_ways(a),
    ),
}


def _both_ways(a: Tensor) -> Tensor:
    t = a - a.amax(1, keepdim=True)
    return t - t.amax(0)


@pytest.mark.parametrize("dynamic", [("M", 300), (300, "N"), ("M", "N")], ids=str)
@pytest.mark.parametrize("name", RUN_TIME)
def test_extents_that_are_known_at_run_time_only(
    compile_text: Any, target: str, name: str, dynamic: tuple[int | str, int | str]
) -> None:
    body, reference = RUN_TIME[name]
    text = kernel(body, {"a": "pl.Tensor", "out": "pl.Out[pl.Tensor]"})
    types = {"a": (dynamic, FP32), "out": (dynamic, FP32)}
    compiled = compile_text(text, types, backend_type=TARGETS[target])
    for extents in ((1, 1), (3, 5000), (1025, 300), (700, 2)):
        shape = tuple(
            known if isinstance(known, int) else given
            for known, given in zip(dynamic, extents, strict=True)
        )
        a, out = values(shape, FP32, 1), torch.zeros(shape)
        compiled(a, out)
        torch.testing.assert_close(out, reference(a), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dynamic", ["M", "K", "N", "MKN"])
def test_products_of_run_time_extents(compile_text: Any, target: str, dynamic: str) -> None:
    def shape(names: str, sizes: dict[str, int]) -> tuple[int | str, ...]:
        return tuple(n if n in dynamic else sizes[n] for n in names)

    text = kernel(
        "out[:] = pl.relu(pl.matmul(a, b))",
        {"a": "pl.Tensor", "b": "pl.Tensor", "out": "pl.Out[pl.Tensor]"},
    )
    fixed = {"M": 70, "K": 200, "N": 90}
    types = {n: (shape(s, fixed), FP32) for n, s in (("a", "MK"), ("b", "KN"), ("out", "MN"))}
    compiled = compile_text(text, types, backend_type=TARGETS[target])
    for m, k, n in ((70, 200, 90), (1, 1, 1), (300, 77, 513)):
        given = {"M": m, "K": k, "N": n}
        sizes = {name: given[name] if name in dynamic else fixed[name] for name in "MKN"}
        a = values((sizes["M"], sizes["K"]), FP32, 1)
        b = values((sizes["K"], sizes["N"]), FP32, 2)
        out = torch.zeros(sizes["M"], sizes["N"])
        compiled(a, b, out)
        torch.testing.assert_close(out, torch.relu(a @ b), rtol=1e-4, atol=1e-4)


ATTENTION = """
def attend(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    s = pl.mul(pl.matmul(q, k), 0.125)
    e = pl.exp(pl.row_expand_sub(s, pl.row_max(s)))
    out[:] = pl.matmul(pl.row_expand_div(e, pl.row_sum(e)), v)
    return out
"""


@pytest.mark.parametrize("sizes", [(32, 48), (700, 600), ("M", "N")], ids=str)
def test_callers_create_what_an_incore_function_keeps_in_memory(
    compile_text: Any, target: str, sizes: tuple[int | str, int | str]
) -> None:
    rows, cols = sizes
    text = """
    def calling(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.range(2):
            out = attend(q, k, v, out)
        return out
    """
    types = {"q": (rows, 64), "k": (64, cols), "v": (cols, 64), "out": (rows, 64)}
    compiled = compile_text(
        text,
        {name: (shape, FP32) for name, shape in types.items()},
        helpers=(ATTENTION,),
        backend_type=TARGETS[target],
    )
    m, n = (given if isinstance(given, int) else 300 for given in sizes)
    q, k, v = (values(s, FP32, i) for i, s in enumerate([(m, 64), (64, n), (n, 64)]))
    out = torch.zeros(m, 64)
    compiled(q, k, v, out)
    torch.testing.assert_close(out, torch.softmax(q @ k * 0.125, 1) @ v, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(512, 384), (1009, 333), (3, 30011)], ids=str)
def test_large_tensors_are_transposed_in_blocks(run: Run, shape: tuple[int, int]) -> None:
    run(
        "out[:] = pl.exp(pl.transpose(pl.mul(a, 2.0), 0, 1))",
        lambda a: torch.exp(a.t() * 2),
        a=shape,
        out=(shape[1], shape[0]),
    )


@pytest.mark.parametrize("kind", ["FP32", "BF16"])
def test_factors_are_transposed(run: Run, kind: str) -> None:
    dtype = {"FP32": FP32, "BF16": BF16}[kind]
    run(
        f"out[:] = pl.matmul(a, b, out_dtype=pl.{kind}, a_trans=True, b_trans=True)",
        lambda a, b: (a.t().double() @ b.t().double()).to(getattr(torch, dtype.torch_name)),
        rtol=1e-2,
        atol=1e-2,
        a=((300, 257), dtype),
        b=((500, 300), dtype),
        out=((257, 500), dtype),
    )


@pytest.mark.conforms("language.148")
def test_large_tensors_stand_side_by_side(run: Run) -> None:
    run(
        "out[:] = pl.neg(pl.concat(pl.add(a, 1.0), b))",
        lambda a, b: -torch.cat((a + 1, b), dim=1),
        a=(600, 300),
        b=(600, 129),
        out=(600, 429),
    )


def test_a_row_is_added_to_memory_once(run: Run) -> None:
    def reference(io: Tensor, a: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
        return io + r + 1, a + r + 1

    run(
        """
        t = pl.add(r, 1.0)
        io = pl.assemble(io, t, [0, 0], atomic=pl.AtomicType.Add)
        out[:] = pl.col_expand_add(a, t)
        """,
        reference,
        io=(1, 300),
        a=(1000, 300),
        r=(1, 300),
        out=(1000, 300),
    )


def test_elements_of_large_values_are_read_and_written(run: Run) -> None:
    def reference(a: Tensor) -> Tensor:
        t = a * 2
        t[3, 5] = t[599, 299] + 1
        return t - a

    run(
        """
        t = pl.mul(a, 2.0)
        last = pl.read(t, [599, 299])
        t[3, 5] = last + 1.0
        out[:] = pl.sub(t, a)
        """,
        reference,
        a=(600, 300),
        out=(600, 300),
    )


@pytest.mark.parametrize(("to", "start"), [(1, 0), (0, 1), (300, 0)])
def test_a_part_is_copied_over_another(compile_text: Any, target: str, to: int, start: int) -> None:
    text = f"""
    def moved(io: pl.InOut[pl.Tensor]):
        io[{to} : {to} + 300, :] = io[{start} : {start} + 300, :]
        return io
    """
    compiled = compile_text(text, {"io": ((600, 300), FP32)}, backend_type=TARGETS[target])
    io = values((600, 300), FP32, 1)
    expected = io.clone()
    expected[to : to + 300] = io[start : start + 300]
    compiled(io)
    torch.testing.assert_close(io, expected)


def test_parts_of_one_tensor_overlap(compile_text: Any, target: str) -> None:
    # All of one part is read before any of the other is written, though they share rows.
    text = """
    def shifted(io: pl.InOut[pl.Tensor]):
        low = io[0:400, :]
        high = io[200:600, :]
        with pl.at(level=pl.Level.CORE_GROUP):
            high[:] = pl.add(low, 1.0)
        return io
    """
    compiled = compile_text(text, {"io": ((600, 300), FP32)}, backend_type=TARGETS[target])
    io = values((600, 300), FP32, 1)
    expected = io.clone()
    expected[200:600] = io[0:400] + 1
    compiled(io)
    torch.testing.assert_close(io, expected)
