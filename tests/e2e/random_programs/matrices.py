"""Matrix products: of tensors, and of tiles by way of Mat, Left, Right and Acc."""

from __future__ import annotations

from choices import is_float
from program_text import AT, LETTERS, ProgramText

# The element types of factors, and that of their product.
FACTORS = {"FP32": "FP32", "FP16": "FP32", "BF16": "FP32", "INT8": "INT32", "UINT8": "INT32",
           "INT16": "INT32", "INT32": "INT32"}  # fmt: skip


class Matrices:
    """Writes products of two tiles' rows, [R, C] by [C, R], into `square`, and [C, R] by
    [R, C] into `corner`."""

    def __init__(self, text: ProgramText) -> None:
        self.text = text

    def fits(self) -> list[str]:
        """Element types whose products `square` can hold."""
        t = self.text
        return [d for d in t.dtypes if FACTORS.get(d) == t.dtypes[0]]

    def tensors(self, depth: int, counters: list[str]) -> None:
        """Factors that are transposed, accumulated and narrowed."""
        t, (r, c) = self.text, self.text.shape
        dtype = t.pick(self.fits())
        t.line(depth, AT)
        for name, letter in zip(("a", "b"), LETTERS, strict=True):
            part = f"pl.slice({letter}_{dtype}, [{r}, {c}], [{t.offset(counters)}, 0])"
            t.line(depth + 1, f"{name} = {part}")
        if is_float(dtype) and t.chance(30):
            narrow = t.pick(["FP16", "BF16"])
            product = f"pl.matmul(a, b, b_trans=True, out_dtype=pl.{narrow})"
            t.line(depth + 1, f"c = pl.cast({product}, pl.FP32)")
        else:
            t.line(depth + 1, "c = pl.matmul(a, b, b_trans=True)")
            for _ in range(t.number(0, 2)):
                init = t.pick(["", "", ", init_cond=n > 1", ", init_cond=m == 1"])
                factors = t.pick(["a, b", "b, a", "b, b"])
                t.line(depth + 1, f"c = pl.matmul_acc(c, {factors}, b_trans=True{init})")
        if t.chance(30):
            t.line(depth + 1, "d = pl.matmul(b, a, a_trans=True)")
            t.line(depth + 1, "corner[:] = d")
        t.line(depth + 1, "square[:] = c")

    def tiles(self, depth: int, counters: list[str]) -> None:
        """Factors that are loaded into Mat and moved, and products that leave Acc."""
        t, (r, c) = self.text, self.text.shape
        dtype = t.pick(self.fits())
        t.line(depth, AT)
        for name, letter in zip(("a", "b"), LETTERS, strict=True):
            place = f"[{t.offset(counters)}, 0], [{r}, {c}], target_memory=pl.Mem.Mat"
            t.line(depth + 1, f"{name} = pl.load({letter}_{dtype}, {place})")
        t.line(depth + 1, "b = pl.tile.transpose_view(b)")
        if t.chance(60):
            t.line(depth + 1, "a = pl.move(a, pl.Mem.Left)")
            t.line(depth + 1, "b = pl.move(b, pl.Mem.Right)")
        t.line(depth + 1, "c = pl.matmul(a, b)")
        if t.chance(50):
            counter = f"k{depth}"
            t.line(depth + 1, f"for {counter} in pl.range({t.pick(['2', 'n', 'm % 3'])}):")
            init = t.pick(["", "", f", init_cond={counter} == 1"])
            t.line(depth + 2, f"c = pl.matmul_acc(c, a, b{init})")
        kind = t.pick(["store", "store", "vec", "add"])
        if kind == "vec":
            t.line(depth + 1, "d = pl.move(c, pl.Mem.Vec)")
            t.line(depth + 1, "square = pl.store(pl.abs(d), [0, 0], square)")
            return
        atomic = ", atomic=pl.AtomicType.Add" if kind == "add" else ""
        t.line(depth + 1, f"square = pl.store(c, [0, 0], square{atomic})")
