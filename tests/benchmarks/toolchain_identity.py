"""The toolchain's identity on a hit, beside asking the compiler for its version (row 4).

Ours is the whole capture of a process that has captured nothing yet, with the compiler's probe
record in the store: package digest, Build-IDs, revisions, helpers.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from measure import Comparison, interleave, parser, report, timed
from pypto.jit.toolchain import Toolchain
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identities import Asked
from pypto_toolchains.identity import ToolchainIdentity, identity_namespace

RUNS = 15


def _capture(root: str) -> tuple[Toolchain, ToolchainIdentity]:
    toolchain = Toolchain()
    environ = dict(os.environ)  # as every request does
    asked = Asked("a2a3sim", identity_namespace(environ), environ, str(Path.cwd()), root)
    identity = toolchain.identity(asked)
    if isinstance(identity, Unavailable):
        raise SystemExit(f"no identity here: {identity}")
    return toolchain, identity


def compare(runs: int) -> list[Comparison]:
    """Save the probe record, then time both sides in turn."""
    with tempfile.TemporaryDirectory() as root:
        toolchain, identity = _capture(root)
        toolchain.remember(identity, root)
        if _capture(root)[1].records:
            raise SystemExit("a capture with a record probed the compiler again")
        ours_s, base_s = interleave(
            lambda: timed(lambda: _capture(root)),
            lambda: timed(
                lambda: subprocess.run(["g++", "--version"], capture_output=True, check=True)
            ),
            runs,
        )
    return [
        Comparison("4", "identity, probe record found", ours_s, "g++ --version", base_s, runs, 1.0)
    ]


if __name__ == "__main__":
    chosen = parser(__doc__, RUNS).parse_args()
    report(compare(chosen.runs), chosen)
