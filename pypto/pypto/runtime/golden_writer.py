"""Writing a ``golden.py`` for arguments and results that are known.

::

    golden.py              loads the two below
    data/in/<name>.pt      every tensor argument as the run begins
    data/out/<name>.pt     every tensor that the program writes, as it must be after the run

A compilation writes none of them: what a program should compute is known to who tests it.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.ir.nodes import Direction
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.golden_file import FILE_NAME
from pypto.runtime.whole_file import replace_file

if TYPE_CHECKING:
    import torch

INPUTS, OUTPUTS = "data/in", "data/out"

_TEXT = '''\
"""The arguments of a run and what it must compute, from the files in data/."""

from pathlib import Path

import torch

RTOL = {rtol!r}
ATOL = {atol!r}

_DATA = Path(__file__).resolve().parent / "data"


def _load(kind, name):
    return torch.load(_DATA / kind / f"{{name}}.pt", weights_only=True)


def generate_inputs():
    """The arguments, in the order of the parameters."""
    return [
{arguments}
    ]


def compute_golden(tensors):
    """What the written tensors must be."""
    return {{
{results}
    }}
'''


def write_golden(
    directory: str | os.PathLike[str],
    arguments: Mapping[str, Any],
    expected: Mapping[str, torch.Tensor],
    *,
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> Path:
    """Put a ``golden.py`` and its data into a program's directory; gives its path.

    ``arguments`` has every parameter by name (pure outputs may be left out), ``expected`` every
    tensor that the program writes. Raises ValueError that names what is missing or too much.
    """
    root = Path(directory)
    params = CompiledMeta.load(root).params
    written = [param.name for param in params if param.direction is not Direction.In]
    needed = {param.name for param in params if param.direction is not Direction.Out}
    _check("arguments", arguments, needed, {param.name for param in params})
    _check("expected", expected, set(written), set(written))
    lines = []
    for param in params:
        if param.shape is None:
            value = _number(arguments[param.name])
        elif param.name in arguments:
            _save(root / INPUTS / f"{param.name}.pt", arguments[param.name])
            value = f'_load("in", {param.name!r})'
        else:
            value = f'torch.zeros_like(_load("out", {param.name!r}))'
        lines.append(f"        ({param.name!r}, {value}),")
    for name in written:
        _save(root / OUTPUTS / f"{name}.pt", expected[name])
    results = [f'        {name!r}: _load("out", {name!r}),' for name in written]
    text = _TEXT.format(
        rtol=rtol, atol=atol, arguments="\n".join(lines), results="\n".join(results)
    )
    # Last: it names the others.
    replace_file(root / FILE_NAME, text.encode())
    return root / FILE_NAME


def _number(value: float) -> str:
    text = repr(value)
    return text if math.isfinite(value) else f"float({text!r})"


def _check(what: str, given: Mapping[str, Any], needed: set[str], known: set[str]) -> None:
    for wrong, names in (("lacks", needed - set(given)), ("has unknown", set(given) - known)):
        if names:
            raise ValueError(f"write_golden: {what} {wrong} {', '.join(sorted(map(repr, names)))}")


def _save(path: Path, tensor: torch.Tensor) -> None:
    import torch

    stream = io.BytesIO()
    torch.save(tensor.detach().cpu().clone(), stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, stream.getvalue())
