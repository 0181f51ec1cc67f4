"""``python -m pypto.jit warm``: make the kernels of a configuration ready, and say what became.

Everything is checked before anything is built: the file, the module, every kernel's name and
signature, and every request's arguments.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

from pypto.ir.nodes import FunctionKind
from pypto.jit.decorator import JITFunction
from pypto.jit.session import cache_stats, flush_remotes
from pypto.jit.statistics import CacheStats
from pypto.jit.steps import steps_on
from pypto.jit.warmup_file import (
    TensorSample,
    WarmupFile,
    WarmupFileError,
    WarmupRequest,
    all_of,
    load,
)

if TYPE_CHECKING:
    from pypto.jit.warm_push import Destination, PushResult

REPORT_SCHEMA = 1

OK = 0
BUILD_FAILED = 1
BAD_CONFIGURATION = 2

# Each upload ends by itself well before; this is for very many of them.
SENDING_TIMEOUT = 3600.0  # seconds

_KEY_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Job:
    """A checked request: the function it names and the arguments to warm it with."""

    function: JITFunction
    request: WarmupRequest
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one job. `key` is None for a private result; `error` None for success.

    `reason` says why a result is private, and is None for others.
    """

    kernel: str
    shared: bool
    key: str | None
    milliseconds: float
    error: str | None
    reason: str | None = None


def warm(
    module: str,
    config: Path,
    out: TextIO,
    err: TextIO,
    *,
    sources_only: bool = False,
    push_to: str | None = None,
    name: str = "default",
) -> int:
    """Run the command; gives the exit status.

    sources_only: leave the binaries to `complete`. push_to: the remote that all is sent to in the
    end, "" for the one that requests use, None for none; name: the list there.
    """
    results: list[Result] = []
    pushed: PushResult | None = None
    try:
        file = load(config)
        to = None if push_to is None else _destination(file, push_to, name)
        # What the user's module prints, and a kernel while it is compiled, is no part of the
        # report.
        with redirect_stdout(err), steps_on(err, len(file.requests)) as step:
            step(0, f"importing {module}")
            for job in jobs_of(file, module_named(module)):
                step(len(results), job.request.kernel)
                results.append(_run(job, sources_only=sources_only))
            step(len(results), "sending to the remote")
            if not flush_remotes(SENDING_TIMEOUT):
                print("warning: not everything was sent to the remote in time", file=err)
        if to is not None:
            from pypto.jit.warm_push import push_keys

            keys = [result.key for result in results if result.key is not None]
            pushed = push_keys(keys, to, err)
    except WarmupFileError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=err)
        return BAD_CONFIGURATION
    _report(results, out, pushed)
    errors = [f"{result.kernel}: {result.error}" for result in results if result.error is not None]
    if pushed is not None:
        errors += [
            f"push: {result.kernel} was not kept: {result.reason}"
            for result in results
            if result.reason is not None
        ]
        errors += [f"push: {complaint}" for complaint in pushed.complaints]
    for told in errors:
        print(f"error: {told}", file=err)
    return BUILD_FAILED if errors else OK


def _destination(file: WarmupFile, url: str, name: str) -> Destination:
    from pypto.jit.warm_push import destination

    try:
        return destination(file.cache, url, name)
    except ValueError as error:
        raise WarmupFileError(str(error)) from None


def module_named(name: str) -> ModuleType:
    """The trusted module of a command line, imported; WarmupFileError if it cannot be."""
    # As `python -m` does: a module beside the user's shell is found.
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise WarmupFileError(f"module {name!r} cannot be imported: {error!r}") from error


def jobs_of(file: WarmupFile, module: ModuleType) -> list[Job]:
    """Every request of a configuration, checked against its module; builds nothing.

    WarmupFileError with all that is wrong.
    """
    return all_of(
        partial(_job, f"requests[{index}]", request, module)
        for index, request in enumerate(file.requests)
    )


def _job(where: str, request: WarmupRequest, module: ModuleType) -> Job:
    function = vars(module).get(request.kernel)
    if not isinstance(function, JITFunction):
        what = "no such name" if function is None else f"a {type(function).__name__}"
        raise WarmupFileError(
            f"{where}.kernel: {module.__name__} has {what} where JIT function "
            f"{request.kernel!r} is named"
        )
    if function.declaration.kind is not FunctionKind.ORCHESTRATION:
        raise WarmupFileError(
            f"{where}.kernel: {request.kernel!r} is an {function.declaration.kind.value} helper; "
            "name the @pl.jit function that calls it"
        )
    for group in ("tensors", "scalars"):
        for name in getattr(request, group):
            if name not in function.param_names:
                raise WarmupFileError(
                    f"{where}.{group}: {request.kernel!r} has no parameter {name!r}; it has "
                    f"{', '.join(function.param_names)}"
                )
    arguments = {
        **{name: _sample(f"{where}.tensors.{name}", t) for name, t in request.tensors.items()},
        **request.scalars,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            function.check_arguments(arguments)
    except Exception as error:
        # A parser's message goes on with the line it points at.
        told = str(error).partition("\n")[0] or repr(error)
        raise WarmupFileError(f"{where}: {told}") from error
    return Job(function, request, arguments)


def _sample(where: str, tensor: TensorSample) -> Any:
    import torch

    try:
        return torch.empty(
            tensor.shape, dtype=getattr(torch, tensor.dtype.torch_name), device="meta"
        )
    except RuntimeError as error:
        raise WarmupFileError(f"{where}: {error}") from error


def _run(job: Job, *, sources_only: bool) -> Result:
    prepare = job.function.compile if sources_only else job.function.warmup
    begin = time.perf_counter()
    key = None
    failure = None
    before = cache_stats()
    try:
        key = prepare(config=job.request.config, **job.arguments).artifact_key
    except Exception as error:  # noqa: BLE001 - one kernel's failure must not hide the others
        failure = f"{type(error).__name__}: {error}"
    spent = (time.perf_counter() - begin) * 1e3
    private = key is None and failure is None
    reason = why_private(before, cache_stats()) if private else None
    return Result(job.request.kernel, key is not None, key, round(spent, 3), failure, reason)


def why_private(before: CacheStats, after: CacheStats) -> str:
    """Why the one request between two snapshots left nothing in a root, and what to do."""
    if after.disabled_requests > before.disabled_requests:
        return 'persistence is off; give the configuration a "cache", or set PYPTO_CACHE=1'
    if after.forced_rebuilds > before.forced_rebuilds:
        return "its run_config asks for the build itself; leave dump_* and save_kernels* out"
    if after.bypasses > before.bypasses and after.last_bypass_reason:
        return after.last_bypass_reason
    return "the root lacks it, and is read-only or cannot be written (PYPTO_LOG=warn says why)"


def _report(results: list[Result], out: TextIO, pushed: PushResult | None = None) -> None:
    if not out.isatty():
        document: dict[str, object] = {
            "schema_version": REPORT_SCHEMA,
            "requests": [
                {"status": "ok" if result.error is None else "failed", **asdict(result)}
                for result in results
            ],
            "statistics": asdict(cache_stats()),
        }
        if pushed is not None:
            document["push"] = pushed.document()
        print(json.dumps(document, indent=2), file=out)
        return
    for result in results:
        state = "failed" if result.error is not None else "shared" if result.shared else "private"
        key = (result.key or "")[:_KEY_DIGITS].ljust(_KEY_DIGITS)
        print(f"{state:<8}{result.milliseconds:>10.1f} ms  {key}  {result.kernel}", file=out)
        if result.reason is not None:
            print(f"  {result.reason}", file=out)
    if pushed is not None:
        print(f"pushed to {pushed.url}: {pushed.summary}", file=out)
