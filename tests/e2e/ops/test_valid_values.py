"""Tensor-level values of which a part is valid, against torch: in scopes that fit and that do not.

What is computed of a slice with ``valid_shape`` has its valid region. Padding fills the rest,
reductions count what is valid, and a store writes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from pypto.backend import BackendType
from pypto.ir.dtypes import FP32, INDEX
from pypto.ir.errors import CompileError

Tensor = torch.Tensor
TARGETS = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}
ROWS, COLS = 16, 64
UNTOUCHED = 77.0

# Another computation in the scope, of tensors that do not fit on chip.
LARGE = "        far[:] = pl.add(big, 1.0)"
BIG = (600, 512)


@dataclass(frozen=True)
class Chain:
    """Statements on ``k``, a slice of ``x`` with [m, n] valid; ``y`` is a whole tensor.

    ``reference`` takes the valid part of ``x`` and of ``y``, and gives what is written; the rest of
    the output is ``outside``.
    """

    statements: str
    reference: Callable[[Tensor, Tensor], Tensor]
    outside: float = UNTOUCHED
    shape: tuple[int, int] = (ROWS, COLS)


LOWEST = torch.finfo(torch.float32).min
CHAINS = {
    "scaled then lowest": Chain(
        "out[:] = pl.fillpad(pl.mul(k, -2.0), pl.PadValue.min)", lambda x, y: x * -2, LOWEST
    ),
    "scaled then largest": Chain(
        "out[:] = pl.fillpad(pl.add(k, 3.0), pl.PadValue.max)", lambda x, y: x + 3, -LOWEST
    ),
    "exponentials then zero": Chain(
        "out[:] = pl.fillpad(pl.exp(k), pl.PadValue.zero)", lambda x, y: x.exp(), 0.0
    ),
    "with a tensor": Chain(
        "out[:] = pl.fillpad(pl.add(pl.mul(k, y), 1.0), pl.PadValue.min)",
        lambda x, y: x * y + 1,
        LOWEST,
    ),
    "a tensor first": Chain(
        "out[:] = pl.fillpad(pl.sub(y, k), pl.PadValue.max)", lambda x, y: y - x, -LOWEST
    ),
    "written": Chain("out[:] = pl.add(pl.exp(k), y)", lambda x, y: x.exp() + y),
    "assembled": Chain("out = pl.assemble(out, pl.add(k, 1.0), [0, 0])", lambda x, y: x + 1),
    "softmax": Chain(
        "e = pl.exp(pl.row_expand_sub(k, pl.row_max(k)))\n"
        "        out[:] = pl.row_expand_div(e, pl.row_sum(e))",
        lambda x, y: x.softmax(1),
    ),
    "padded, then reduced": Chain(
        "out[:] = pl.row_max(pl.fillpad(pl.mul(k, y), pl.PadValue.min))",
        lambda x, y: (x * y).amax(1, keepdim=True),
        LOWEST,
        (ROWS, 1),
    ),
    "row maxima": Chain(
        "out[:] = pl.row_max(pl.sub(k, 9.0))",
        lambda x, y: (x - 9).amax(1, keepdim=True),
        shape=(ROWS, 1),
    ),
    "row sums": Chain(
        "out[:] = pl.row_sum(pl.exp(k))",
        lambda x, y: x.exp().sum(1, keepdim=True),
        shape=(ROWS, 1),
    ),
    "column sums": Chain(
        "out[:] = pl.col_sum(pl.add(k, y))",
        lambda x, y: (x + y).sum(0, keepdim=True),
        shape=(1, COLS),
    ),
    "column sums added to rows": Chain(
        "out[:] = pl.col_expand_mul(k, pl.col_sum(pl.exp(k)))",
        lambda x, y: x * x.exp().sum(0, keepdim=True),
    ),
    "transposed": Chain(
        "out[:] = pl.fillpad(pl.transpose(pl.mul(k, y), 0, 1), pl.PadValue.max)",
        lambda x, y: (x * y).T,
        -LOWEST,
        (COLS, ROWS),
    ),
    "a factor": Chain(
        "out[:] = pl.matmul(pl.exp(k), pl.transpose(y, 0, 1))",
        lambda x, y: x.exp() @ Y[:, : x.shape[1]].T,
        shape=(ROWS, ROWS),
    ),
    "two regions": Chain(
        "o = pl.set_validshape(y, m, 9)\n"
        "        out[:] = pl.fillpad(pl.maximum(k, o), pl.PadValue.min)",
        lambda x, y: torch.maximum(x, y)[:11, :9],
        LOWEST,
    ),
    "a mask": Chain(
        "mask = pl.cmp(k, y, cmp_type=2)\n"
        "        out[:] = pl.fillpad(pl.sel(mask, pl.mul(k, 3.0), y), pl.PadValue.max)",
        lambda x, y: torch.where(x < y, x * 3, y),
        -LOWEST,
    ),
    "a mask, reduced": Chain(
        "mask = pl.cmps(k, 0.0, cmp_type=4)\n        out[:] = pl.row_sum(pl.sel(mask, k, y))",
        lambda x, y: torch.where(x > 0, x, y).sum(1, keepdim=True),
        shape=(ROWS, 1),
    ),
}
torch.manual_seed(3)
X = torch.randn(ROWS + 4, COLS + 8)
Y = torch.randn(ROWS, COLS)


# Valid regions as the kernel has them, and whether something else in the scope does not fit.
CASES = {
    "constants": ("[11, 37]", False),
    "run-time values": ("[m, n]", False),
    "all rows": (f"[{ROWS}, n]", False),
    "all columns": (f"[m, {COLS}]", False),
    "in a scope that does not fit": ("[m, n]", True),
    "all rows in a scope that does not fit": (f"[{ROWS}, n]", True),
}


def _text(valid: str, large: bool) -> str:
    """A scope for each chain, which writes its own output."""
    big = BIG if large else (4, 8)
    names = [f"out{position}" for position in range(len(CHAINS))]
    outputs = ", ".join(f"{name}: pl.Out[pl.Tensor]" for name in (*names, "far"))
    lines = [
        "def part(x: pl.Tensor, y: pl.Tensor, big: pl.Tensor, m: pl.INDEX, n: pl.INDEX, "
        f"{outputs}):"
    ]
    for name, chain in zip(names, CHAINS.values(), strict=True):
        body = chain.statements.replace("out", name).splitlines()
        slice_ = f"k = pl.slice(x, [{ROWS}, {COLS}], [2, 5], valid_shape={valid})"
        lines.append("    with pl.at(level=pl.Level.CORE_GROUP):")
        lines += [f"        {line.strip()}" for line in (slice_, *body)]
        if large:
            lines.append(f"        far[:] = pl.add(big, 1.0)  # {big}")
    if not large:
        lines += ["    with pl.at(level=pl.Level.CORE_GROUP):", "        far[:] = pl.add(big, 1.0)"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_computed_of_a_part_is_valid_in_part(
    target: str, case: str, compile_text: Any
) -> None:
    valid, large = CASES[case]
    big = BIG if large else (4, 8)
    rows = ROWS if str(ROWS) in valid else 11
    cols = COLS if str(COLS) in valid else 37
    types: dict[str, object] = {
        "x": (tuple(X.shape), FP32),
        "y": (tuple(Y.shape), FP32),
        "big": (big, FP32),
        "m": INDEX,
        "n": INDEX,
    }
    types |= {f"out{i}": (chain.shape, FP32) for i, chain in enumerate(CHAINS.values())}
    compiled = compile_text(
        _text(valid, large), {**types, "far": (big, FP32)}, backend_type=TARGETS[target]
    )
    wide, far = torch.rand(big), torch.zeros(big)
    outputs = [torch.full(chain.shape, UNTOUCHED) for chain in CHAINS.values()]
    compiled(X, Y, wide, 11, 37, *outputs, far)
    for (name, chain), out in zip(CHAINS.items(), outputs, strict=True):
        inside = chain.reference(X[2 : 2 + rows, 5 : 5 + cols], Y[:rows, :cols])
        wanted = torch.full(chain.shape, chain.outside)
        wanted[: inside.shape[0], : inside.shape[1]] = inside
        torch.testing.assert_close(
            out, wanted, rtol=2e-5, atol=2e-5, msg=lambda text, name=name: f"{name}: {text}"
        )
    assert torch.equal(far, wide + 1)


LOST = {
    "through a loop": (
        """
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.slice(x, [16, 64], [0, 0], valid_shape=[16, n])
        for i in pl.range(m):
            acc = pl.add(acc, y)
        out[:] = pl.fillpad(acc, pl.PadValue.min)
""",
        "out[:] = pl.fillpad(acc",
    ),
    "to another scope": (
        """
    with pl.at(level=pl.Level.CORE_GROUP):
        k = pl.mul(pl.slice(x, [16, 64], [0, 0], valid_shape=[16, n]), 2.0)
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.row_expand_sub(k, pl.row_max(k))
""",
        "pl.row_max(k)",
    ),
    "by a slice of it": (
        """
    with pl.at(level=pl.Level.CORE_GROUP):
        k = pl.mul(pl.slice(x, [16, 64], [0, 0], valid_shape=[16, n]), 2.0)
        part = pl.slice(k, [8, 8], [m, 0])
        out = pl.assemble(out, part, [0, 0])
""",
        "pl.assemble(out, part",
    ),
    "where memory has to hold it": (
        """
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.slice(x, [16, 64], [0, 0], valid_shape=[16, n])
        for i in pl.range(m):
            acc = pl.add(acc, y)
        out[:] = pl.fillpad(pl.set_validshape(acc, m, n), pl.PadValue.min)
        far[:] = pl.add(big, 1.0)
""",
        "for i in pl.range(m)",
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_a_valid_region_that_gets_lost_is_an_error(name: str, compile_text: Any) -> None:
    body, line = LOST[name]
    text = (
        "def part(x: pl.Tensor, y: pl.Tensor, big: pl.Tensor, m: pl.INDEX, n: pl.INDEX,\n"
        f"         out: pl.Out[pl.Tensor], far: pl.Out[pl.Tensor]):{body}"
    )
    types: dict[str, object] = {
        **dict.fromkeys(("x", "y", "out"), ((ROWS, COLS), FP32)),
        **dict.fromkeys(("big", "far"), (BIG, FP32)),
        **{"m": INDEX, "n": INDEX},
    }
    with pytest.raises(CompileError, match=r"valid in part.*pl\.fillpad") as caught:
        compile_text(text, types)
    number = next(i for i, found in enumerate(text.splitlines(), 1) if line in found)
    assert caught.value.span.line == number
