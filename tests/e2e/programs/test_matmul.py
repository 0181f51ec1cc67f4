"""Matrix products: fused with a bias, split over the inner extent, chained in bf16."""

from __future__ import annotations

import pypto.language as pl
import torch

M, K, N = 64, 256, 128
K_PART = 64
MODEL, HIDDEN = 128, 256


@pl.jit
def fused_linear(
    x: pl.Tensor[[M, K], pl.FP32],
    weight: pl.Tensor[[K, N], pl.FP32],
    bias: pl.Tensor[[1, N], pl.FP32],
    out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    """relu(x @ weight + bias): a product on the matrix core, the rest on a vector core."""
    product = pl.create_tensor([M, N], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="linear_product"):
        left = pl.load(x, [0, 0], [M, K_PART], target_memory=pl.Mem.Mat)
        right = pl.load(weight, [0, 0], [K_PART, N], target_memory=pl.Mem.Mat)
        acc = pl.matmul(left, right)
        for k in pl.range(K_PART, K, K_PART):
            left = pl.load(x, [0, k], [M, K_PART], target_memory=pl.Mem.Mat)
            right = pl.load(weight, [k, 0], [K_PART, N], target_memory=pl.Mem.Mat)
            acc = pl.matmul_acc(acc, left, right)
        product = pl.store(acc, [0, 0], product)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="linear_bias"):
        biased = pl.col_expand_add(pl.load(product, [0, 0], [M, N]), pl.load(bias, [0, 0], [1, N]))
        out = pl.store(pl.relu(biased), [0, 0], out)
    return out


@pl.jit
def split_k(
    a: pl.Tensor[[M, K], pl.FP32],
    b: pl.Tensor[[K, N], pl.FP32],
    out: pl.InOut[pl.Tensor[[M, N], pl.FP32]],
):
    """Each part of the inner extent is a task; all of them add to one output."""
    for k in pl.parallel(0, K, K_PART):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="split_k_part"):
            left = pl.load(a, [0, k], [M, K_PART], target_memory=pl.Mem.Mat)
            right = pl.load(b, [k, 0], [K_PART, N], target_memory=pl.Mem.Mat)
            out = pl.store(pl.matmul(left, right), [0, 0], out, atomic=pl.AtomicType.Add)
    return out


@pl.jit
def split_k_tensors(
    a: pl.Tensor[[M, K], pl.BF16],
    b: pl.Tensor[[K, N], pl.BF16],
    out: pl.InOut[pl.Tensor[[M, N], pl.FP32]],
):
    """The same on tensors: slices of operands, an output that is assembled."""
    for k in pl.parallel(0, K, K_PART):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="split_k_slice"):
            part = pl.matmul(a[:, k : k + K_PART], b[k : k + K_PART, :], out_dtype=pl.FP32)
            out = pl.assemble(out, part, [0, 0], atomic=pl.AtomicType.Add)
    return out


@pl.jit
def chained_bf16(
    a: pl.Tensor[[M, MODEL], pl.BF16],
    b: pl.Tensor[[MODEL, HIDDEN], pl.BF16],
    c: pl.Tensor[[HIDDEN, MODEL], pl.BF16],
    out: pl.Out[pl.Tensor[[M, MODEL], pl.BF16]],
):
    """(a @ b) @ c; the product in the middle is rounded to bf16 on its way to memory."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="first_product"):
        hidden = pl.matmul(a, b, out_dtype=pl.BF16)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="second_product"):
        out[:] = pl.matmul(hidden, c, out_dtype=pl.BF16)
    return out


@pl.jit
def transposed(
    a: pl.Tensor[[K, M], pl.FP32],
    b: pl.Tensor[[N, K], pl.FP32],
    out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    """Both operands lie the other way round in memory."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="transposed_product"):
        out[:] = pl.matmul(a, b, a_trans=True, b_trans=True)
    return out


def test_fused_linear(launch, normal):
    x, weight, bias = normal(M, K), normal(K, N), normal(1, N)
    out = torch.empty(M, N)
    launch(fused_linear, x, weight, bias, out)
    torch.testing.assert_close(out, torch.relu(x @ weight + bias), rtol=1e-4, atol=1e-4)


def test_split_k(launch, normal):
    a, b, start = normal(M, K), normal(K, N), normal(M, N)
    out = start.clone()
    launch(split_k, a, b, out)
    torch.testing.assert_close(out, start + a @ b, rtol=1e-4, atol=1e-4)


def test_split_k_of_tensors(launch, normal):
    a, b = normal(M, K, dtype=torch.bfloat16), normal(K, N, dtype=torch.bfloat16)
    out = torch.zeros(M, N)
    launch(split_k_tensors, a, b, out)
    torch.testing.assert_close(out, a.float() @ b.float(), rtol=1e-4, atol=1e-4)


def test_chained_bf16(launch, normal):
    a = normal(M, MODEL, dtype=torch.bfloat16)
    b = normal(MODEL, HIDDEN, dtype=torch.bfloat16, scale=MODEL**-0.5)
    c = normal(HIDDEN, MODEL, dtype=torch.bfloat16, scale=HIDDEN**-0.5)
    out = torch.empty(M, MODEL, dtype=torch.bfloat16)
    launch(chained_bf16, a, b, c, out)
    hidden = (a.float() @ b.float()).bfloat16()
    expected = (hidden.float() @ c.float()).bfloat16()
    torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-2)


def test_transposed(launch, normal):
    a, b, out = normal(K, M), normal(N, K), torch.empty(M, N)
    launch(transposed, a, b, out)
    torch.testing.assert_close(out, a.T @ b.T, rtol=1e-4, atol=1e-4)
