"""``debug/run.py``: the script in an output directory that runs it again.

Its text follows from how the program is called, so equal programs have equal scripts; it finds its
directory from its own place. It is meant to be edited: the inputs are plain lines, one a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto.ir.dtypes import DataType
from pypto.ir.param_info import DYNAMIC, ParamInfo
from pypto.runtime.specs import SAMPLE_EXTENT

RUN_SCRIPT = "debug/run.py"

_TEXT = '''\
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
    random = torch.Generator().manual_seed(0)
{extents}    return [
{inputs}
    ]


def _user_compare({names}):
    """Is called with the arguments after the run; say with assert what the outputs must be."""


if __name__ == "__main__":
    raise SystemExit(
        replay._main(work_dir=WORK_DIR, inputs=_inline_inputs, compare=_user_compare)
    )
'''


def run_script(params: Sequence[ParamInfo]) -> str:
    """The script for a program with these parameters."""
    symbols = {symbol: None for param in params for symbol in param.symbols if symbol is not None}
    # A name of the user's may mean something else in the script.
    names = {symbol: f"extent_{symbol}" for symbol in symbols}
    extents = "".join(f"    {name} = {SAMPLE_EXTENT}\n" for name in names.values())
    inputs = [f"        {_input(param, names)},  # {param.name}" for param in params]
    arguments = ", ".join(param.name for param in params)
    return _TEXT.format(extents=extents, inputs="\n".join(inputs), names=arguments)


def _input(param: ParamInfo, names: Mapping[str, str]) -> str:
    dtype = param.dtype
    if param.shape is None:
        return "True" if dtype.name == "bool" else "1.0" if dtype.is_float else "1"
    extents = [
        str(extent)
        if extent != DYNAMIC
        else (str(SAMPLE_EXTENT) if symbol is None else names[symbol])
        for extent, symbol in zip(param.shape, param.symbols, strict=True)
    ]
    shape = f"[{', '.join(extents)}]"
    if param.direction.value == "Out":
        return f"torch.zeros({shape}, dtype=torch.{dtype.torch_name})"
    return _filled(shape, dtype)


def _filled(shape: str, dtype: DataType) -> str:
    if dtype.is_float:
        return f"torch.randn({shape}, generator=random).to(torch.{dtype.torch_name})"
    if dtype.name == "bool":
        return f"torch.randint(0, 2, {shape}, generator=random).to(torch.bool)"
    low = 0 if dtype.is_unsigned else -8
    return f"torch.randint({low}, 8, {shape}, generator=random).to(torch.{dtype.torch_name})"
