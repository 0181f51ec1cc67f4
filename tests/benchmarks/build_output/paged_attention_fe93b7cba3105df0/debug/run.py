"""Runs this build directory again: python debug/run.py --help

Kernels edited under kernels/ and ptoas/ are built first. Edit the inputs and the comparison below
as you like; a compile into this directory writes the file anew.
"""

from pathlib import Path

import torch
from pypto.runtime.debug import replay

WORK_DIR = Path(__file__).resolve().parent.parent


def _inline_inputs():
    """The arguments, one a parameter, for a directory without a golden.py."""
    torch.manual_seed(0)
    extent_ROWS = 128
    extent_POOL = 128
    extent_TABLE = 128
    extent_BATCH = 128
    return [
        torch.randn([extent_ROWS, 64]).to(torch.bfloat16),  # query
        torch.randn([extent_POOL, 64]).to(torch.bfloat16),  # keys
        torch.randn([extent_POOL, 64]).to(torch.bfloat16),  # values
        torch.randint(-8, 8, [extent_TABLE]).to(torch.int32),  # block_table
        torch.randint(-8, 8, [extent_BATCH]).to(torch.int32),  # lengths
        torch.zeros([extent_ROWS, 64], dtype=torch.float32),  # out
    ]


def _user_compare(query, keys, values, block_table, lengths, out):
    """Is called with the arguments after the run; say with assert what the outputs must be."""


if __name__ == "__main__":
    raise SystemExit(replay._main(work_dir=WORK_DIR, inputs=_inline_inputs, compare=_user_compare))
