"""``replay(directory, *tensors)``, and ``python -m pypto.runtime.debug.replay DIRECTORY``.

The module itself can be called, so that its name means the same before and after it was imported.
"""

from __future__ import annotations

import argparse
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pypto.runtime.command_options import add_run_options, run_config_of, set_up_log
from pypto.runtime.compiled_meta import CompiledMeta
from pypto.runtime.debug.rerun import golden_inputs, require_single, rerun
from pypto.runtime.golden_file import GoldenFile
from pypto_toolchains.process import ToolError

FAILED = 1

Inputs = Callable[[], Sequence[Any]]


class _Replay(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return rerun(*args, **kwargs)


_Replay.__call__.__doc__ = rerun.__doc__
sys.modules[__name__].__class__ = _Replay


def _parser(*, named: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=None if named else "python -m pypto.runtime.debug.replay",
        description="Run a build directory again, with the edits made to its kernels.",
    )
    if not named:
        parser.add_argument("directory", type=Path, help="a directory that ir.compile wrote")
    add_run_options(parser)
    parser.add_argument(
        "--no-recompile", action="store_true", help="keep binaries whose sources are the same"
    )
    parser.add_argument(
        "--no-rebuild-from-pto", action="store_true", help="leave edited .pto texts alone"
    )
    parser.add_argument(
        "--validate", action="store_true", help="compare the outputs with those of golden.py"
    )
    return parser


def _main(
    argv: Sequence[str] | None = None,
    *,
    work_dir: Path | None = None,
    inputs: Inputs | None = None,
    compare: Callable[..., None] | None = None,
) -> int:
    """The command; gives its exit status.

    ``debug/run.py`` names its directory by ``work_dir``. Where that has a ``golden.py`` it gives
    the inputs and the outputs are validated; else ``inputs`` makes the arguments and ``compare``
    is called with them after the run.
    """
    options = _parser(named=work_dir is not None).parse_args(argv)
    directory = options.directory if work_dir is None else work_dir
    try:
        set_up_log(options)
        require_single(directory)
        meta = CompiledMeta.load(directory)
        golden = GoldenFile.find(directory, meta.params)
        own = golden is None and inputs is not None and not options.validate
        arguments = list(inputs()) if own and inputs is not None else golden_inputs(directory)
        rerun(
            directory,
            *arguments,
            config=run_config_of(options, meta.platform),
            recompile=not options.no_recompile,
            rebuild_from_pto=False if options.no_rebuild_from_pto else None,
            validate=options.validate or (golden is not None and work_dir is not None),
        )
    except (OSError, ValueError, TypeError, RuntimeError, ToolError, AssertionError) as error:
        sys.stderr.write(f"error: {error}\n")
        return FAILED
    if own and compare is not None:
        compare(*arguments)
    sys.stdout.write(f"{directory}: ran\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
