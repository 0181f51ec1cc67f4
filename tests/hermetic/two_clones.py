"""Builds the wheel from two clones in two directories and compares what came out, bit by bit.

    ./bazelw run //tests/hermetic:two_clones

What is compared is the last commit. Neither clone sees the disk cache or the other's outputs. The
result differing is exit status 1; the differing files are named.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_OUTPUTS = ("pypto/pypto/_native.so", "native/ptoas/ptoas")


def _build(workspace: Path, clone: Path, output_base: Path) -> dict[str, str]:
    subprocess.run(["git", "clone", "--quiet", workspace, clone], check=True)
    bazelw = [clone / "bazelw", f"--output_base={output_base}"]
    try:
        subprocess.run(
            [*bazelw, "build", "--disk_cache=", "--noshow_progress", "//:wheel"],
            cwd=clone,
            check=True,
        )
        outputs = clone / "bazel-bin"
        wheel = next(outputs.glob("*.whl"))
        found = {name: _sha256((outputs / name).read_bytes()) for name in _OUTPUTS}
        found[wheel.name] = _sha256(wheel.read_bytes())
        with zipfile.ZipFile(wheel) as archive:
            found |= {
                f"{wheel.name}!{name}": _sha256(archive.read(name)) for name in archive.namelist()
            }
        return found
    finally:
        subprocess.run([*bazelw, "shutdown"], cwd=clone, check=True)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> int:
    """Build twice and compare."""
    workspace = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
    with tempfile.TemporaryDirectory(prefix="pypto-two-clones-") as scratch:
        root = Path(scratch)
        first = _build(workspace, root / "one", root / "output-one")
        second = _build(workspace, root / "another" / "place", root / "output-another")
        # Bazel's outputs are read-only, directories too.
        subprocess.run(["chmod", "-R", "u+w", root], check=True)
    differing = sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    )
    for name in differing:
        print(f"differs: {name}")
    for name in sorted(set(first) - set(differing)):
        if "!" not in name:
            print(f"equal: {first[name]}  {name}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
