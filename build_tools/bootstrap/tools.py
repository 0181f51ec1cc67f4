"""Runs one program of the set-up, keeps its output in a log and turns failure into one line."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bootstrap.failure import SetupError

# What apt and pip print when the network, and not the request, is at fault.
_NETWORK = re.compile(
    r"temporary failure (in name resolution|resolving)|could not (connect|resolve)"
    r"|connection (refused|timed out|reset)|name or service not known|network is unreachable"
    r"|no route to host|max retries exceeded|newconnectionerror|read timed out"
    r"|failed to establish a new connection",
    re.IGNORECASE,
)
_DISK_FULL = re.compile(
    r"no space left on device|not enough free disk space|don't have enough free space",
    re.IGNORECASE,
)


def run(
    argv: Sequence[str | Path],
    *,
    environ: Mapping[str, str],
    log: Path,
    doing: str,
    remedy: str,
    cwd: Path | None = None,
) -> str:
    """Run ``argv`` and return its standard output; both streams are kept in ``log``.

    Raises SetupError that names ``doing`` and, unless the output shows the network or the disk to
    be at fault, ``remedy``.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [str(word) for word in argv]
    try:
        done = subprocess.run(
            command,
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise SetupError(f"cannot run {command[0]}: {error.strerror}", remedy) from error
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"$ {' '.join(command)}\n{done.stdout}\n")
    if done.returncode:
        raise _explain(done.stdout, doing, remedy, log)
    return done.stdout


def _explain(output: str, doing: str, remedy: str, log: Path) -> SetupError:
    if _DISK_FULL.search(output):
        return SetupError(
            f"the disk became full while {doing}",
            "free some space or point BAZELW_CACHE at a larger disk, then run the command again",
        )
    if _NETWORK.search(output):
        return SetupError(
            f"no network while {doing}",
            f"check the connection and proxy settings, then run the command again (log: {log})",
        )
    return SetupError(f"{doing} failed: {_last_complaint(output)}", f"{remedy} (log: {log})")


def _last_complaint(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(E:|ERROR|error)", line)]
    return (errors or lines or ["no output"])[-1]
