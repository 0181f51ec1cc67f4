"""docs/reference/operators.md is what the table of operations says."""

from __future__ import annotations

import runpy
from pathlib import Path

from pypto.ir.ops import OPS

WRITER = runpy.run_path(str(Path(__file__).with_name("write_operators.py")))
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "operators.md"


def test_the_page_is_that_of_the_table() -> None:
    command = "run python tests/integration/docs/write_operators.py"
    assert WRITER["page"]() == PAGE.read_text(encoding="utf-8"), command


def test_every_operation_on_tiles_and_tensors_is_on_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    others = {"tile.get_block_idx", "tile.get_block_num", "tensor.assign", "tensor.view"}
    for name in OPS:
        if name.split(".")[0] in ("tile", "tensor") and name not in others:
            assert f"| `{name}` |" in text, name
