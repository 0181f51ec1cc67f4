"""The one place that starts a subprocess.

Probes, the assembler and every compiler or linker run through `run_tool`: one set of rules
for the time limit, for what is kept of the output, and for who is killed when.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DEFAULT_TIMEOUT_SECONDS = 900.0
TIMEOUT_VARIABLE = "PYPTO_COMPILER_TIMEOUT"

_TAIL_BYTES = 16 * 1024
_REAP_SECONDS = 5.0
_POLL_SECONDS = 0.05
# No tool of ours writes so much; one that never ends writing must not fill the memory.
_MAX_OUTPUT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool that succeeded wrote; text, with undecodable bytes handled as was asked for."""

    stdout: str
    stderr: str


class ToolError(RuntimeError):
    """A tool did not do its work. `stage` says what it was asked for."""

    def __init__(self, message: str, *, stage: str, argv: Sequence[str], stderr: str) -> None:
        super().__init__(message)
        self.stage = stage
        self.argv = tuple(argv)
        self.stderr = stderr


class ToolNotFound(ToolError):
    """The executable is missing or may not be executed."""


class ToolFailed(ToolError):
    """The tool ran and reported failure (`returncode`; negative for a signal)."""

    def __init__(
        self, message: str, *, stage: str, argv: Sequence[str], stderr: str, returncode: int
    ) -> None:
        super().__init__(message, stage=stage, argv=argv, stderr=stderr)
        self.returncode = returncode


class ToolTimeout(ToolError):
    """The tool was killed because it exceeded its limit of `seconds`."""

    def __init__(
        self, message: str, *, stage: str, argv: Sequence[str], stderr: str, seconds: float
    ) -> None:
        super().__init__(message, stage=stage, argv=argv, stderr=stderr)
        self.seconds = seconds


class ToolOutputTooLarge(ToolError):
    """The tool was killed because it wrote without an end."""


class ToolCancelled(ToolError):
    """The tool was killed because nobody wants its result any more."""


def compiler_timeout(environ: Mapping[str, str]) -> float:
    """Seconds one compiler or linker invocation may take.

    Raises ValueError naming the variable unless it is a positive, finite number.
    """
    text = environ.get(TIMEOUT_VARIABLE)
    if text is None:
        return DEFAULT_TIMEOUT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(
            f"{TIMEOUT_VARIABLE}={text!r} is not a positive, finite number of seconds; "
            f"set it to such a number or unset it (default {DEFAULT_TIMEOUT_SECONDS:g})"
        )
    return seconds


def run_tool(
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    timeout: float,
    stage: str,
    cancelled: threading.Event | None = None,
    undecodable: str = "replace",
) -> ToolResult:
    """Run one tool to its end and return what it wrote.

    The tool gets `environ` exactly, no standard input, and a process group of its own, so that
    the helpers a compiler driver starts end with it: on the time limit and on any exception in
    the caller (an interrupt too) the whole group is killed before this returns. An interrupt only
    reaches the main thread: tools that run in others end when `cancelled` is set. Bytes that are no
    UTF-8 are decoded by the error handler `undecodable`; paths want "surrogateescape".

    Raises ToolNotFound, ToolFailed, ToolTimeout, ToolOutputTooLarge or ToolCancelled, all
    RuntimeErrors that name `stage`.
    """
    try:
        child = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolNotFound(
            f"{stage}: cannot start {argv[0]} in {cwd}: {error.strerror or error}",
            stage=stage,
            argv=argv,
            stderr="",
        ) from error
    try:
        stdout, stderr = _communicate(child, timeout, cancelled)
    except _Cancelled:
        tail = _tail(_kill_group(child))
        raise ToolCancelled(
            f"{stage}: {os.path.basename(argv[0])} was cancelled",
            stage=stage,
            argv=argv,
            stderr=tail,
        ) from None
    except _TooLarge:
        _kill_group(child)
        raise ToolOutputTooLarge(
            f"{stage}: {os.path.basename(argv[0])} wrote more than {_MAX_OUTPUT_BYTES} bytes and "
            f"was killed",
            stage=stage,
            argv=argv,
            stderr="",
        ) from None
    except subprocess.TimeoutExpired:
        tail = _tail(_kill_group(child))
        raise ToolTimeout(
            f"{stage}: {os.path.basename(argv[0])} exceeded its limit of {timeout:g} s and was "
            f"killed; raise {TIMEOUT_VARIABLE} if it needs longer{_quoted(tail)}",
            stage=stage,
            argv=argv,
            stderr=tail,
            seconds=timeout,
        ) from None
    except BaseException:
        _kill_group(child)
        raise
    if child.returncode != 0:
        tail = _tail(stderr)
        ending = (
            f"was ended by signal {-child.returncode}"
            if child.returncode < 0
            else f"exited with status {child.returncode}"
        )
        raise ToolFailed(
            f"{stage}: {os.path.basename(argv[0])} {ending}{_quoted(tail)}",
            stage=stage,
            argv=argv,
            stderr=tail,
            returncode=child.returncode,
        )
    return ToolResult(stdout.decode(errors=undecodable), _text(stderr))


class _Cancelled(Exception):
    pass


class _TooLarge(Exception):
    pass


def _communicate(
    child: subprocess.Popen[bytes], timeout: float, cancelled: threading.Event | None
) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + timeout
    while True:
        if cancelled is not None and cancelled.is_set():
            raise _Cancelled
        left = deadline - time.monotonic()
        try:
            return child.communicate(timeout=max(0.0, min(left, _POLL_SECONDS)))
        except subprocess.TimeoutExpired as running:
            if len(running.output or b"") + len(running.stderr or b"") > _MAX_OUTPUT_BYTES:
                raise _TooLarge from None
            if left <= _POLL_SECONDS:
                raise


def _kill_group(child: subprocess.Popen[bytes]) -> bytes:
    """Kill the tool and its helpers, reap it, and return what it had said on stderr."""
    # The group outlives its leader while helpers run, and the leader is not reaped yet, so the
    # number cannot belong to anybody else.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    try:
        _, stderr = child.communicate(timeout=_REAP_SECONDS)
    except subprocess.TimeoutExpired as held:
        # A grandchild in another session can hold the pipes open; what it says is not awaited.
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
        child.wait()
        return held.stderr or b""
    return stderr


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _tail(data: bytes) -> str:
    return _text(data[-_TAIL_BYTES:]).strip()


def _quoted(tail: str) -> str:
    return f":\n{tail}" if tail else ""
