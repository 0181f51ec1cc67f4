"""``golden.py``: inputs for a program's directory, and what its outputs must be.

The file is Python and is executed. It defines::

    generate_inputs()         the arguments: a list in the order of the parameters, a list of
                              (name, value), or a mapping; outputs may be left out
    compute_golden(tensors)   fills the outputs in ``tensors``, a mapping by parameter name, or
                              returns them: a mapping, one tensor, or a sequence in their order
    RTOL, ATOL                optional: tolerances of the comparison, 1e-5 each

Either function may take one more argument, which is an empty mapping.
"""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto.ir.nodes import Direction
from pypto.ir.param_info import ParamInfo
from pypto.runtime.errors import ArtifactError
from pypto.runtime.specs import TensorSpec, arguments_of, specs_of

FILE_NAME = "golden.py"

_TOLERANCE = 1e-5


class GoldenFile:
    """The file of one program with parameters ``params``."""

    def __init__(self, path: Path, params: Sequence[ParamInfo]) -> None:
        self.path = path
        self._params = tuple(params)
        self._names = runpy.run_path(str(path))
        self.rtol = float(self._names.get("RTOL", _TOLERANCE))
        self.atol = float(self._names.get("ATOL", _TOLERANCE))

    @classmethod
    def find(cls, directory: Path, params: Sequence[ParamInfo]) -> GoldenFile | None:
        """The file in ``directory``, or ``None``. Executes it."""
        path = directory / FILE_NAME
        return cls(path, params) if path.is_file() else None

    def inputs(self) -> list[Any]:
        """Arguments for every parameter. Raises ArtifactError where one is missing."""
        made = self._call("generate_inputs")
        pairs = all(isinstance(item, tuple) and len(item) == 2 for item in made)
        if isinstance(made, Mapping) or pairs:
            named = dict(made)
        else:
            given = [p for p in self._params if len(made) == len(self._params) or not _pure(p)]
            if len(made) != len(given):
                raise ArtifactError(
                    f"{self.path}: generate_inputs() gave {len(made)} values for the parameters "
                    f"{', '.join(p.name for p in self._params)}"
                )
            named = dict(zip((p.name for p in given), made, strict=True))
        return [self._argument(param, named) for param in self._params]

    def _argument(self, param: ParamInfo, named: Mapping[str, Any]) -> Any:
        if param.name in named:
            return named[param.name]
        spec = specs_of([param])[0]
        if isinstance(spec, TensorSpec) and _pure(param) and -1 not in (param.shape or ()):
            return arguments_of([spec])[0]
        raise ArtifactError(f"{self.path}: generate_inputs() has no value for {param.name!r}")

    def expected(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """What the written tensors must be after a run with these arguments, by name."""
        import torch

        tensors = {
            param.name: value.clone() if isinstance(value, torch.Tensor) else value
            for param, value in zip(self._params, arguments, strict=True)
        }
        returned = self._call("compute_golden", tensors)
        outputs = [param.name for param in self._params if param.direction is not Direction.In]
        if isinstance(returned, Mapping):
            tensors.update(returned)
        elif isinstance(returned, torch.Tensor):
            tensors[outputs[0]] = returned
        elif returned is not None:
            tensors.update(zip(outputs, returned, strict=True))
        return {name: tensors[name] for name in outputs}

    def check(self, expected: Mapping[str, Any], arguments: Sequence[Any]) -> None:
        """Raises AssertionError naming the first output that is not as it must be."""
        import torch

        for param, value in zip(self._params, arguments, strict=True):
            if param.name not in expected:
                continue
            want = expected[param.name].to(value.dtype)
            try:
                torch.testing.assert_close(value, want, rtol=self.rtol, atol=self.atol)
            except AssertionError as error:
                raise AssertionError(
                    f"output {param.name!r} is not what {self.path} computes: {error}"
                ) from None

    def _call(self, name: str, *arguments: Any) -> Any:
        function = self._names.get(name)
        if not callable(function):
            raise ArtifactError(f"{self.path}: defines no function {name}()")
        if len(inspect.signature(function).parameters) > len(arguments):
            arguments = (*arguments, {})
        return function(*arguments)


def _pure(param: ParamInfo) -> bool:
    return param.direction is Direction.Out
