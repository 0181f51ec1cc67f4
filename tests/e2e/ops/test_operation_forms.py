"""Operations on whole tensors, on run-time extents, on both targets, and on extreme values."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import FP16, FP32, INDEX, INT32
from pypto.runtime.errors import KernelFault

Tensor = torch.Tensor

TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}

ROWS, COLS = 12, 40

# Over x [ROWS, COLS], y like it, r [ROWS, 1] and c [1, COLS]; torch says the same in other words.
FLOATS = {
    "row_prod": ("pl.row_prod({x})", "x.prod(1, keepdim=True)"),
    "col_sum": ("pl.col_sum({x})", "x.sum(0, keepdim=True)"),
    "col_max": ("pl.col_max({x})", "x.amax(0, keepdim=True)"),
    "col_min": ("pl.col_min({x})", "x.amin(0, keepdim=True)"),
    "col_prod": ("pl.col_prod({x})", "x.prod(0, keepdim=True)"),
    "fmod": ("pl.fmod({x}, {y})", "torch.fmod(x, y)"),
    "lrelu": ("pl.lrelu({x}, 0.25)", "torch.nn.functional.leaky_relu(x, 0.25)"),
    "prelu": ("pl.prelu({x}, {y})", "torch.where(x > 0, x, x * y)"),
    "row_expand": ("pl.row_expand({x}, {r})", "r.expand_as(x)"),
    "expdif": ("pl.row_expand_expdif({x}, {r})", "torch.exp(x - r)"),
    "row_max": ("pl.maximum({x}, {r})", "torch.maximum(x, r)"),
    "col_min_of": ("pl.minimum({c}, {x})", "torch.minimum(x, c)"),
    "first": ("{c} / {x}", "c / x"),
}


def extents(name: str) -> tuple[int, int]:
    if name.startswith("col_") and name != "col_min_of":
        return 1, COLS
    return (ROWS, 1) if name == "row_prod" else (ROWS, COLS)


def whole_tensors() -> str:
    """Every operation on tensors as a whole."""
    names = {"x": "x", "y": "y", "r": "r", "c": "c"}
    lines = [f"        {o}[:] = {form.format(**names)}" for o, (form, _) in FLOATS.items()]
    return _kernel(lines)


def run_time_extents() -> str:
    """Every operation on tiles of which the first m rows and k columns are valid."""
    shapes = {"x": ("m", "k"), "y": ("m", "k"), "r": ("m", 1), "c": (1, "k")}
    lines = []
    for name, (rows, cols) in shapes.items():
        shape = [ROWS if rows == "m" else 1, COLS if cols == "k" else 1]
        lines.append(
            f"        {name}_t = pl.load({name}, [0, 0], {shape}, valid_shape=[{rows}, {cols}])"
        )
    lines.append(f"        tmp = pl.create_tile([{ROWS}, {COLS}], dtype=pl.FP32)")
    names = {name: f"{name}_t" for name in shapes}
    for output, (form, _) in FLOATS.items():
        expression = form.format(**names).replace("row_prod(x_t)", "row_prod(x_t, tmp)")
        lines.append(f"        {output} = pl.store({expression}, [0, 0], {output})")
    return _kernel(lines)


def _kernel(lines: list[str]) -> str:
    params = ["m: pl.INDEX", "k: pl.INDEX", *(f"{n}: pl.Tensor" for n in "xyrc")]
    params += [f"{o}: pl.Out[pl.Tensor]" for o in FLOATS]
    head = f"def forms({', '.join(params)}):\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
    return head + "\n".join(lines)


@pytest.mark.conforms("language.138", "language.139", "language.153")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", [whole_tensors, run_time_extents], ids=lambda f: f.__name__)
def test_forms_of_operations(text: Any, target: str, compile_text: Any) -> None:
    shapes = {"x": (ROWS, COLS), "y": (ROWS, COLS), "r": (ROWS, 1), "c": (1, COLS)}
    types: dict[str, object] = {"m": INDEX, "k": INDEX}
    types |= {name: (shape, FP32) for name, shape in shapes.items()}
    types |= {name: (extents(name), FP32) for name in FLOATS}
    compiled = compile_text(text(), types, backend_type=TARGETS[target])
    generator = torch.Generator().manual_seed(4)
    given = {}
    for name, shape in shapes.items():
        values = torch.rand(shape, generator=generator) + 0.5
        given[name] = torch.where(torch.rand(shape, generator=generator) < 0.5, -values, values)
    rows, cols = (ROWS, COLS) if text is whole_tensors else (9, 33)
    outputs = {name: torch.full(extents(name), 77.0) for name in FLOATS}
    compiled(rows, cols, *given.values(), *outputs.values())
    valid = {n: v[: rows if v.shape[0] > 1 else 1, : cols if v.shape[1] > 1 else 1]
             for n, v in given.items()}  # fmt: skip
    for name, (_, reference) in FLOATS.items():
        inside = eval(reference, {"torch": torch}, valid)
        expected = torch.full(extents(name), 77.0)
        expected[: inside.shape[0], : inside.shape[1]] = inside
        torch.testing.assert_close(outputs[name], expected, rtol=2e-6, atol=1e-6, msg=name)


SPECIAL = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e-45, 3.4e38, -7.25, 2.5e-39, 0.1]


def exact_remainder(a: Tensor, b: Tensor) -> Tensor:
    """By the C library: torch's own is off where the quotient is large."""

    def one(x: float, y: float) -> float:
        return math.nan if math.isinf(x) or y == 0 else math.fmod(x, y)

    pairs = zip(a.flatten().tolist(), b.flatten().tolist(), strict=True)
    return torch.tensor([one(x, y) for x, y in pairs]).reshape(a.shape)


@pytest.mark.parametrize("dtype", [FP32, FP16], ids=str)
def test_special_values(dtype: Any, compile_text: Any) -> None:
    size, name = len(SPECIAL), dtype.constant_name
    cases = {
        "fmod": ("pl.fmod(a, b)", exact_remainder),
        "lrelu": ("pl.lrelu(a, -0.5)", lambda a, b: torch.where(a > 0, a, a * -0.5)),
        "prelu": ("pl.prelu(a, b)", lambda a, b: torch.where(a > 0, a, a * b)),
        "expdif": ("pl.row_expand_expdif(a, v)", lambda a, b: torch.exp(a - a.diag()[:, None])),
        "largest": ("pl.row_expand_max(a, v)", lambda a, b: torch.maximum(a, a.diag()[:, None])),
        "smallest": ("pl.row_expand_min(a, v)", lambda a, b: torch.minimum(a, a.diag()[:, None])),
        "col_max": ("pl.col_max(b)", lambda a, b: b.amax(0, keepdim=True)),
        "col_min": ("pl.col_min(b)", lambda a, b: b.amin(0, keepdim=True)),
        "col_sum": ("pl.col_sum(b)", lambda a, b: b.sum(0, keepdim=True)),
        "col_prod": ("pl.col_prod(b)", lambda a, b: b.prod(0, keepdim=True)),
    }
    shapes = {o: (1 if o.startswith("col_") else size, size) for o in cases}
    types: dict[str, object] = {"x": ((size, size), dtype), "y": ((size, size), dtype)}
    types |= {"u": ((size, 1), dtype)} | {o: (shape, dtype) for o, shape in shapes.items()}
    params = [f"{n}: pl.Tensor" for n in "xyu"] + [f"{o}: pl.Out[pl.Tensor]" for o in cases]
    lines = [f"        {o} = pl.store({e}, [0, 0], {o})" for o, (e, _) in cases.items()]
    loads = [f"        {t} = pl.load({n}, [0, 0], [{size}, {1 if t == 'v' else size}])"
             for t, n in (("a", "x"), ("b", "y"), ("v", "u"))]  # fmt: skip
    text = (
        f"def special_{name.lower()}({', '.join(params)}):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n" + "\n".join(loads + lines)
    )
    compiled = compile_text(text, types)
    kind = getattr(torch, dtype.torch_name)
    line = torch.tensor(SPECIAL, dtype=kind)
    a, b = line[:, None].repeat(1, size), line[None].repeat(size, 1)
    outputs = {o: torch.zeros(shape, dtype=kind) for o, shape in shapes.items()}
    compiled(a, b, line[:, None].clone(), *outputs.values())
    for output, (_, reference) in cases.items():
        expected = reference(a.float(), b.float()).to(kind)
        torch.testing.assert_close(outputs[output], expected, equal_nan=True, msg=output)
    # The remainder is exact, and keeps the sign of zeros.
    exact = exact_remainder(a.float(), b.float()).to(kind)
    torch.testing.assert_close(outputs["fmod"], exact, rtol=0, atol=0, equal_nan=True)
    zeros = exact == 0
    assert torch.equal(outputs["fmod"][zeros].signbit(), a[zeros].signbit())


def test_integer_remainders(compile_text: Any) -> None:
    text = """
    def remainders(x: pl.Tensor, y: pl.Tensor, z: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            z[:] = pl.fmod(x, y)
    """
    compiled = compile_text(text, dict.fromkeys("xyz", ((4, 5), INT32)))
    low = torch.iinfo(torch.int32).min
    x = torch.tensor([low, low, 7, -7, 0], dtype=torch.int32).repeat(4, 1)
    y = torch.tensor([[-1], [3], [-4], [low]], dtype=torch.int32).repeat(1, 5)
    z = torch.zeros((4, 5), dtype=torch.int32)
    compiled(x, y, z)
    assert z.tolist() == [[math.fmod(a, b) for a, b in zip(*r, strict=True)]
                          for r in zip(x.tolist(), y.tolist(), strict=True)]  # fmt: skip
    y[2, 2] = 0
    with pytest.raises(KernelFault, match="integer division by zero"):
        compiled(x, y, z)
