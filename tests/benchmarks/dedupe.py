"""How many bytes of disk a store saves by keeping equal files once.

    python tests/benchmarks/dedupe.py --kernels 50 --json

Compiles a corpus of kernels to READY in an empty store: element-wise operations over extents and
element types, reductions over band sizes, and programs that share helpers. Then it publishes the
same corpus again as a new revision of the application (another key for each, nothing else
changed), which is what a team's cache sees after each release. Measured are the files of all
entries: what they would take apart from each other, and what their inodes take.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KERNELS = 50
_BLOCK = 512  # bytes of one st_blocks, whatever the file system

_HEAD = '''
"""Kernels of the corpus."""
import pypto.language as pl


@pl.jit.incore
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], [32, 64])
    out = pl.store(pl.add(tile, tile), [0, 0], out)
    return out
'''

_ELEMENT_WISE = """
    @pl.jit
    def {name}(
        a: pl.Tensor[[{rows}, {columns}], pl.{dtype}],
        b: pl.Tensor[[{rows}, {columns}], pl.{dtype}],
        out: pl.Out[pl.Tensor[[{rows}, {columns}], pl.{dtype}]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            left = pl.load(a, [0, 0], [{rows}, {columns}])
            right = pl.load(b, [0, 0], [{rows}, {columns}])
            out = pl.store(pl.{operation}(left, right), [0, 0], out)
        return out
"""

_SOFTMAX = """
    @pl.jit
    def {name}(
        x: pl.Tensor[[64, {columns}], pl.FP32], out: pl.Out[pl.Tensor[[64, {columns}], pl.FP32]]
    ):
        for row in pl.range(0, 64, {rows}):
            with pl.at(level=pl.Level.CORE_GROUP):
                band = pl.load(x, [row, 0], [{rows}, {columns}])
                scratch = pl.create_tile(
                    [{rows}, {columns}], dtype=pl.FP32, target_memory=pl.Mem.Vec
                )
                weights = pl.exp(pl.row_expand_sub(band, pl.row_max(band, scratch)))
                total = pl.row_sum(weights, scratch)
                out = pl.store(pl.row_expand_div(weights, total), [row, 0], out)
        return out
"""

# All of these run `double`, and each a second kernel of its own.
_CHAIN = """
    @pl.jit.incore
    def {name}_step(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        tile = pl.load(x, [0, 0], [32, 64])
        out = pl.store(pl.mul(tile, {factor}), [0, 0], out)
        return out


    @pl.jit
    def {name}(
        x: pl.Tensor[[32, 64], pl.FP32],
        middle: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ):
        middle = double(x, middle)
        out = {name}_step(middle, out)
        return middle, out
"""


def corpus(count: int) -> Iterator[tuple[str, str]]:
    """Names and texts of `count` kernels, kinds in turn so that each count has some of all."""
    operations = ("add", "sub", "mul", "maximum", "minimum")
    extents = ((32, 64), (64, 64), (16, 128))
    dtypes = ("FP32", "FP16", "INT32")
    for number in range(count):
        kind, turn = number % 4, number // 4
        if kind in (0, 1):
            pick = 2 * turn + kind
            rows, columns = extents[pick // 5 % 3]
            operation, dtype = operations[pick % 5], dtypes[pick // 15 % 3]
            name = f"{operation}_{rows}_{columns}_{dtype.lower()}"
            text = _ELEMENT_WISE.format(
                name=name, rows=rows, columns=columns, dtype=dtype, operation=operation
            )
        elif kind == 2:
            rows, columns = (8, 16, 32)[turn % 3], 32 * (1 + turn // 3)
            name = f"softmax_{rows}_{columns}"
            text = _SOFTMAX.format(name=name, rows=rows, columns=columns)
        else:
            name = f"chain_{turn}"
            text = _CHAIN.format(name=name, factor=f"{turn + 1}.5")
        yield name, textwrap.dedent(text)


@dataclass(frozen=True, slots=True)
class Usage:
    """The files of a set of entries. Sizes in bytes.

    apparent: sizes added up; blocks: what the file system would allocate if none were shared.
    kept, kept_blocks: the same, counting each inode once.
    """

    what: str
    entries: int
    files: int
    inodes: int
    apparent: int
    kept: int
    blocks: int
    kept_blocks: int

    @property
    def saved(self) -> int:
        """Bytes of content that are not stored a second time."""
        return self.apparent - self.kept

    @property
    def ratio(self) -> float:
        """How often a stored byte is used."""
        return self.apparent / self.kept


def measure(root: Path, what: str, states: tuple[str, ...]) -> Usage:
    """The use of disk by the entries of some states, manifests included."""
    slots = []
    for state in states:
        depth = "*/*/generated" if state == "generated" else "*/*/ready/*"
        slots += list((root / "artifacts" / "v1").glob(depth))
    files = apparent = blocks = 0
    inodes: dict[tuple[int, int], tuple[int, int]] = {}
    for slot in slots:
        for parent, _, names in os.walk(slot):
            for name in names:
                status = os.lstat(os.path.join(parent, name))
                files += 1
                apparent += status.st_size
                blocks += status.st_blocks * _BLOCK
                inodes[status.st_dev, status.st_ino] = (status.st_size, status.st_blocks * _BLOCK)
    kept = sum(size for size, _ in inodes.values())
    kept_blocks = sum(taken for _, taken in inodes.values())
    return Usage(what, len(slots), files, len(inodes), apparent, kept, blocks, kept_blocks)


def fill(root: Path, count: int, revision: str) -> None:
    """Compile the corpus to READY as one revision of the application."""
    import pypto
    from pypto.backend import BackendType, ExecutionMode
    from pypto.runtime import RunConfig

    corpus_module: Any = importlib.import_module("dedupe_corpus")
    config = RunConfig(
        arch=BackendType.Ascend910B,
        execution_mode=ExecutionMode.SIM,
        cache_config=pypto.CacheConfig(enabled=True, root=root, extra_fingerprint=revision),
    )
    before = pypto.cache_stats()
    for number, (name, _) in enumerate(corpus(count), 1):
        getattr(corpus_module, name).warmup(config=config)
        sys.stderr.write(f"\r{revision}: {number} of {count} kernels")
    sys.stderr.write("\n")
    after = pypto.cache_stats()
    built = after.binary_builds - before.binary_builds
    if built != count or after.bypasses or after.storage_errors or after.invalid_entries:
        raise SystemExit(f"{built} of {count} kernels were built and published: {after}")


def run(count: int) -> list[Usage]:
    """Fill a store and measure it on the way."""
    with tempfile.TemporaryDirectory(prefix="pypto-dedupe-") as scratch:
        modules, root = Path(scratch, "modules"), Path(scratch, "root")
        modules.mkdir()
        texts = "\n".join(text for _, text in corpus(count))
        Path(modules, "dedupe_corpus.py").write_text(f"{_HEAD}\n{texts}", encoding="utf-8")
        sys.path.insert(0, str(modules))
        os.chdir(scratch)
        both = ("generated", "ready")
        fill(root, count, "first revision")
        usages = [
            measure(root, f"{count} kernels, GENERATED", ("generated",)),
            measure(root, f"{count} kernels, READY", ("ready",)),
            measure(root, f"{count} kernels, both", both),
        ]
        fill(root, count, "second revision")
        return [*usages, measure(root, "two revisions of them", both)]


def table(usages: list[Usage]) -> str:
    """A table of at most 100 columns; sizes in KiB."""
    heads = ("entries", "files", "inodes", "apparent", "stored", "saved", "ratio", "on disk")
    lines = [f"{'what':<26}" + "".join(f"{head:>9}" for head in heads)]
    for usage in usages:
        sizes = (usage.apparent, usage.kept, usage.saved)
        lines.append(
            f"{usage.what[:26]:<26}{usage.entries:>9}{usage.files:>9}{usage.inodes:>9}"
            + "".join(f"{size / 1024:>9.0f}" for size in sizes)
            + f"{usage.ratio:>9.2f}{usage.kept_blocks / 1024:>9.0f}"
        )
    last = usages[-1]
    lines.append(
        f"{last.saved} bytes saved of {last.apparent}; on disk "
        f"{last.kept_blocks} bytes instead of {last.blocks}"
    )
    return "\n".join(lines)


def main() -> None:
    """Run as a script."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--kernels", type=int, default=KERNELS, help="how many (%(default)s)")
    options.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options.add_argument("--output", type=Path, help="also write the JSON to this file")
    chosen = options.parse_args()
    output = chosen.output and chosen.output.absolute()
    usages = run(chosen.kernels)
    document = json.dumps(
        [asdict(usage) | {"saved": usage.saved, "ratio": usage.ratio} for usage in usages],
        indent=1,
    )
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(document + "\n", encoding="utf-8")
    sys.stdout.write((document if chosen.json else table(usages)) + "\n")


if __name__ == "__main__":
    main()
