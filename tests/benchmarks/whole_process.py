"""Whole processes that only read a store, beside interpreters that load what those need (row 5).

`stat` lists a root; the READY check says whether one entry is there and valid, as a health check
of a server would. Each is timed from start to exit, with bytecode as installed packages have it.
The base starts the same interpreter and imports the modules of the standard library that ours
ended up with, and nothing else. Neither may load torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pypto
import pypto_store
import pypto_toolchains
from measure import Comparison, interleave, parser, report, timed
from publish_entry import SPEC, entry_key
from pypto_store import ArtifactStore, Published
from validate_entry import fill

RUNS = 20

ROOTS = [str(Path(str(m.__file__)).parents[1]) for m in (pypto, pypto_store, pypto_toolchains)]

STAT = """
from pypto.jit.__main__ import main
status = main(["stat", "--root", {root!r}])
"""

READY_CHECK = """
from pathlib import Path
from pypto_store import ArtifactKey, ArtifactSpec, ArtifactStore, Digest, Hit, State
blank = Digest("0" * 64)
key = ArtifactKey(blank, blank, blank, blank, Digest({last!r}))
spec = ArtifactSpec(State.READY, "program", {files!r}, ("a2a3sim",), "x86-64")
status = 0 if isinstance(ArtifactStore(Path({root!r}), readonly=True).lookup(key, spec), Hit) else 1
"""


def _process(script: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", "-X", f"pycache_prefix={environ['BYTECODE']}", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environ,
    )


def _standard_modules(script: str, environ: dict[str, str]) -> list[str]:
    """What of the standard library a script has loaded when it ends."""
    listing = "\nprint('modules:', *sorted(set(sys.modules) & set(sys.stdlib_module_names)))"
    told = _process(f"{script}{listing}", environ).stdout.rpartition("modules:")[2].split()
    return [name for name in told if name not in ("__main__", "sys")]


def _compare(what: str, script: str, environ: dict[str, str], runs: int) -> Comparison:
    ours = f"import sys\nsys.path[:0] = {ROOTS!r}{script}"
    checked = f"{ours}\nassert status == 0 and 'torch' not in sys.modules"
    base = "import " + ", ".join(_standard_modules(checked, environ))
    for each in (ours, base):  # writes the bytecode that is missing
        _process(each, environ)
    ours_s, base_s = interleave(
        lambda: timed(lambda: _process(ours, environ)),
        lambda: timed(lambda: _process(base, environ)),
        runs,
    )
    return Comparison("5", what, ours_s, "start and standard modules", base_s, runs, 3.0)


def compare(runs: int) -> list[Comparison]:
    """Publish some entries, then time both programs and their bases in turn."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        store = ArtifactStore(root)
        for number in range(4):
            built = store.get_or_build(
                entry_key(number), SPEC, fill, private_parent=Path(scratch) / "private"
            )
            if not isinstance(built, Published):
                raise SystemExit(f"an entry was not published: {built}")
        environ = {"PATH": os.environ["PATH"], "BYTECODE": f"{scratch}/bytecode"}
        check = READY_CHECK.format(
            root=str(root), last=entry_key(1).specialization.hex, files=SPEC.required_files
        )
        return [
            _compare("stat of a root", STAT.format(root=str(root)), environ, runs),
            _compare("bare READY check", check, environ, runs),
        ]


if __name__ == "__main__":
    chosen = parser(__doc__, RUNS).parse_args()
    report(compare(chosen.runs), chosen)
