"""The short way for calls that an earlier call has answered already.

A call may take it when everything its answer depended on is what it was: the configuration
object, the process's policy, the environment, what the kernel captured, and the shapes and
element types of the tensors. All of that is compared, in as few steps as it takes; anything that
differs, and any request whose policy reads files, goes the long way.
"""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable
from typing import Any

from pypto.jit.binding import Signature
from pypto.jit.policy import PolicyLevels
from pypto.jit.snapshot import SourceSnapshot
from pypto.jit.statistics import Statistics
from pypto.jit.surroundings import Surroundings
from pypto.language.source import ParamCategory
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.run_config import RunConfig
from pypto_store import CacheConfig
from pypto_toolchains.search import has_relative_entry

_shape = operator.attrgetter("shape")
_dtype = operator.attrgetter("dtype")
_clock = time.perf_counter_ns

Run = Callable[[tuple[Any, ...]], None]
"""Runs a call's arguments, whose shapes and element types have been compared."""

# A kernel with many run-time extents must not keep every one it ever saw.
_MAX_SHAPES = 1024
_MAX_CONFIGURATIONS = 16


def _environment() -> Any:
    """The environment's own table: comparing it does not decode every variable."""
    return getattr(os.environ, "_data", os.environ)


def _working_directory() -> str | None:
    """None when it was removed, which no answer was given for."""
    try:
        return os.getcwd()
    except OSError:
        return None


class _Answers:
    """The answers that hold under one configuration, policy, environment and snapshot."""

    __slots__ = (
        "by_shapes",
        "config",
        "configured",
        "count",
        "cwd",
        "disabled",
        "environment",
        "snapshot",
        "tensors",
    )

    def __init__(
        self,
        config: RunConfig | None,
        configured: CacheConfig | None,
        environment: dict[Any, Any],
        cwd: str | None,
        snapshot: SourceSnapshot,
        signature: Signature,
        disabled: bool,
    ) -> None:
        self.config = config
        self.configured = configured
        self.environment = environment
        # None where nothing depends on it: asking for it is a system call.
        self.cwd = cwd
        self.snapshot = snapshot
        self.disabled = disabled
        self.count = len(signature.params)
        positions = [
            index
            for index, param in enumerate(signature.params)
            if param.category is not ParamCategory.SCALAR
        ]
        self.tensors = None if len(positions) == self.count else tuple(positions)
        self.by_shapes: dict[tuple[Any, ...], Run] = {}


class LiveCalls:
    """The answers of one kernel's latest calls."""

    __slots__ = ("_answers", "_levels", "_statistics")

    def __init__(self, statistics: Statistics, levels: PolicyLevels) -> None:
        self._statistics = statistics
        self._levels = levels
        # By the identity of the configuration, which each answer keeps alive.
        self._answers: dict[int, _Answers] = {}

    def find(self, args: tuple[Any, ...], config: RunConfig | None) -> Run | None:
        """What runs a call without keywords, counted as a request; None for the long way."""
        begin = _clock()
        answers = self._answers.get(id(config))
        if (
            answers is None
            or answers.configured is not self._levels.configured
            or answers.count != len(args)
        ):
            return None
        positions = answers.tensors
        tensors = args if positions is None else [args[index] for index in positions]
        try:
            run = answers.by_shapes.get((*map(_shape, tensors), *map(_dtype, tensors)))
        except (AttributeError, TypeError):
            return None
        if (
            run is None
            or answers.environment != _environment()
            or (answers.cwd is not None and answers.cwd != _working_directory())
            or not answers.snapshot.guards.hold()
        ):
            return None
        self._statistics.live_call(answers.disabled, _clock() - begin)
        return run

    def remember(
        self,
        signature: Signature,
        values: tuple[Any, ...],
        config: RunConfig | None,
        snapshot: SourceSnapshot,
        compiled: CompiledProgram,
        configured: CacheConfig | None,
        world: Surroundings,
    ) -> None:
        """Keep a repeatable answer to a call that went the long way and ran, if it may be.

        `configured` and `world` are the process's policy and surroundings before the request.
        """
        own = None if config is None else config.cache_config
        policy = own or configured
        if not _without_files(signature, policy):
            return
        cwd = world.cwd if _depends_on_cwd(policy, world) else None
        answers = self._answers.get(id(config))
        environment = dict(_environment())
        # Compiling takes long enough for another thread to change what the answer came from.
        if configured is not self._levels.configured or world.environ != dict(os.environ):
            return
        if (
            answers is None
            or answers.configured is not configured
            or answers.snapshot is not snapshot
            or answers.environment != environment
            or answers.cwd != cwd
        ):
            effective = self._levels.effective(own, world.environ)
            answers = _Answers(
                config, configured, environment, cwd, snapshot, signature, not effective.enabled
            )
        if len(answers.by_shapes) < _MAX_SHAPES:
            positions = answers.tensors
            tensors = values if positions is None else [values[index] for index in positions]
            try:
                key = (*map(_shape, tensors), *map(_dtype, tensors))
                hash(key)
            except (AttributeError, TypeError):
                return
            answers.by_shapes[key] = compiled.dispatcher_for(config).like(values)
            if id(config) not in self._answers and len(self._answers) >= _MAX_CONFIGURATIONS:
                self._answers.clear()
            self._answers[id(config)] = answers


def _without_files(signature: Signature, policy: CacheConfig | None) -> bool:
    """Whether what an answer depends on can be compared without a look at any file."""
    if any(param.category is ParamCategory.CONSTEXPR for param in signature.params):
        return False
    return policy is None or not policy.enabled or not policy.extra_source_paths


def _depends_on_cwd(policy: CacheConfig | None, world: Surroundings) -> bool:
    """Whether a relative path takes part in an answer: of a root, or where tools are searched."""
    if policy is not None and policy.root is not None and not policy.root.is_absolute():
        return True
    if world.environ.get("PYPTO_CACHE_DIR", "/")[:1] != "/":
        return True
    lists = (world.environ.get(name, "/") for name in ("PATH", "LD_LIBRARY_PATH"))
    return any(map(has_relative_entry, lists))
