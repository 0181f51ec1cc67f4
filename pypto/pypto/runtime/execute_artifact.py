"""Running build directories without the program that made them.

``python -m pypto.runtime.execute_artifact PATH`` takes a directory, or a batch manifest (see
`pypto.runtime.batch_manifest`), all of whose items are run whatever becomes of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto.backend import target_of
from pypto.ir.nodes import Direction
from pypto.ir.param_info import ParamInfo
from pypto.runtime.batch_manifest import BatchItem, load_manifest
from pypto.runtime.command_options import add_run_options, run_config_of, set_up_log
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.errors import ArtifactError
from pypto.runtime.golden_file import FILE_NAME, GoldenFile
from pypto.runtime.options import DfxOptions
from pypto.runtime.run_config import RunConfig
from pypto.runtime.run_result import RunResult
from pypto.runtime.specs import arguments_of, specs_of

FAILED, REFUSED = 1, 2

_SEED = 0


def execute_artifact_dir(
    directory: str | os.PathLike[str],
    args: Sequence[Any] | None = None,
    *,
    platform: str | None = None,
    device_id: int = 0,
    dfx: DfxOptions | None = None,
    validate: bool | None = None,
    extents: Mapping[str, int] | None = None,
    outputs: Path | None = None,
    name: str | None = None,
) -> RunResult:
    """Run the program in ``directory`` once, in place, and say how long the run took.

    Without ``args`` the directory's ``golden.py`` makes them, or they are random; ``extents`` gives
    run-time extents by symbol for that. ``validate`` demands that ``golden.py`` agrees with the
    outputs; None demands it where the file is there and made the arguments. ``outputs`` names a
    file for `torch.save` to put the written tensors in. ``dfx`` are the records of the run.

    Raises AssertionError naming an output that is not as computed, and what
    `CompiledProgram.from_dir` and a call raise.
    """
    path = Path(directory)
    compiled = CompiledProgram.from_dir(path, platform=platform)
    target = target_of(compiled.platform)
    config = RunConfig(
        arch=target.backend_type,
        execution_mode=target.mode,
        device_id=device_id,
        **({} if dfx is None else dfx.as_kwargs()),
    )
    params = CompiledMeta.load(path).params
    golden = GoldenFile.find(path, params) if args is None or validate else None
    if validate and golden is None:
        raise ArtifactError(f"{path}: has no {FILE_NAME} to validate the outputs with")
    arguments = _arguments(params, extents, golden) if args is None else list(args)
    expected = None if golden is None or validate is False else golden.expected(arguments)
    call = compiled.dispatcher_for(config)
    begin = time.perf_counter()
    call(tuple(arguments))
    seconds = time.perf_counter() - begin
    if outputs is not None:
        _save(outputs, params, arguments)
    if golden is not None and expected is not None:
        golden.check(expected, arguments)
    return RunResult(True, path.resolve().name if name is None else name, execution_time=seconds)


def execute_batch_manifest(
    path: str | os.PathLike[str], *, dfx: DfxOptions | None = None
) -> tuple[RunResult, ...]:
    """Run every item of a manifest; an item that fails is a result and ends none of the others.

    Raises ArtifactError or OSError for a manifest that cannot be read, and then runs nothing.
    """
    return tuple(_outcome(item, dfx) for item in load_manifest(Path(path)))


def _outcome(item: BatchItem, dfx: DfxOptions | None) -> RunResult:
    try:
        return execute_artifact_dir(
            item.directory,
            None if item.inputs is None else _load(item.inputs),
            platform=item.platform,
            device_id=item.device_id,
            dfx=dfx,
            validate=item.validate,
            extents=item.extents,
            outputs=item.outputs,
            name=item.name,
        )
    except Exception as error:  # noqa: BLE001 - the next item must not suffer from this one
        return RunResult(False, item.name, f"{type(error).__name__}: {error}")


def _arguments(
    params: Sequence[ParamInfo], extents: Mapping[str, int] | None, golden: GoldenFile | None
) -> list[Any]:
    if golden is not None:
        return golden.inputs()
    import torch

    # Of its own: the caller's random numbers go on as if nothing had run.
    return arguments_of(specs_of(params, extents), torch.Generator().manual_seed(_SEED))


def _load(path: Path) -> list[Any]:
    import torch

    values = torch.load(path, weights_only=True)
    if not isinstance(values, (list, tuple)):
        raise ArtifactError(f"{path}: must hold the list of all arguments")
    return list(values)


def _save(path: Path, params: Sequence[ParamInfo], arguments: Sequence[Any]) -> None:
    import torch

    written = {
        param.name: value
        for param, value in zip(params, arguments, strict=True)
        if param.direction is not Direction.In
    }
    torch.save(written, path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pypto.runtime.execute_artifact",
        description="Run a directory that ir.compile wrote, or all that a batch manifest lists.",
    )
    parser.add_argument("path", type=Path, help="the directory, or the manifest (a JSON file)")
    add_run_options(parser)
    parser.add_argument("--inputs", type=Path, help="a file of torch.save with all arguments")
    parser.add_argument("--outputs", type=Path, help="a file to save the written tensors in")
    parser.add_argument(
        "--extent", action="append", default=[], metavar="SYMBOL=N", help="a run-time extent"
    )
    parser.add_argument(
        "--validate", action="store_true", help="fail unless golden.py agrees with the outputs"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command: 0 where everything passed, 1 where something failed, 2 for a bad command."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        set_up_log(options)
        dfx = run_config_of(options, options.platform or "a2a3sim").dfx_options()
        if options.path.is_dir():
            results: Sequence[RunResult] = (_outcome(_single(options), dfx),)
        else:
            results = execute_batch_manifest(options.path, dfx=dfx)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    sys.stdout.write(_as_json(results) if options.json else _as_text(results))
    return 0 if all(result.passed for result in results) else FAILED


def _single(options: argparse.Namespace) -> BatchItem:
    extents = {}
    for text in options.extent:
        symbol, _, extent = text.partition("=")
        if not symbol or not extent.isdecimal():
            raise ValueError(f"--extent takes SYMBOL=N, got {text!r}")
        extents[symbol] = int(extent)
    return BatchItem(
        options.path,
        options.path.resolve().name,
        options.platform,
        options.device_id,
        options.inputs,
        options.outputs,
        extents,
        True if options.validate else None,
    )


def _as_text(results: Sequence[RunResult]) -> str:
    lines = []
    for result in results:
        if result.passed:
            lines.append(f"passed  {result.test_name}  {result.execution_time or 0.0:.6f} s")
        else:
            lines.append(f"FAILED  {result.test_name}  {result.error}")
    failed = sum(not result.passed for result in results)
    lines.append(f"{len(results) - failed} passed, {failed} failed")
    return "\n".join(lines) + "\n"


def _as_json(results: Sequence[RunResult]) -> str:
    document = {
        "schema": 1,
        "results": [
            {
                "name": result.test_name,
                "passed": result.passed,
                "error": result.error,
                "execution_time": result.execution_time,
            }
            for result in results
        ],
    }
    return json.dumps(document, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main())
