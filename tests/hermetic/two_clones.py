"""Builds from two clones in two directories and compares what came out, bit by bit.

    ./bazelw run //tests/hermetic:two_clones [-- --config=hermetic]

What is compared is the last commit: the wheel with all that is in it and, under `hermetic`, the
toolchain directory for kernels. Neither clone sees the disk cache or the other's outputs. Under a
`--config`, each also sets up tools of its own in a cache directory of its own, so that nothing can
come from where a compiler is installed or from what it compiled before; that downloads everything
twice.

The result differing is exit status 1; the differing files are named.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

_OUTPUTS = ("pypto/pypto/_native.so", "native/ptoas/ptoas")
_TOOLCHAIN = "toolchains/zig/kernel"


@dataclass(frozen=True, slots=True)
class Place:
    """Where one of the two builds is made; ``cache`` is None for that of the user."""

    clone: Path
    output_base: Path
    cache: Path | None


def _build(origin: Path, place: Place, config: str | None) -> dict[str, str]:
    subprocess.run(["git", "clone", "--quiet", origin, place.clone], check=True)
    bazelw = [place.clone / "bazelw", f"--output_base={place.output_base}"]
    environ = dict(os.environ)
    if place.cache:
        environ["BAZELW_CACHE"] = str(place.cache)
    wanted = ["//:wheel"]
    options = ["--disk_cache=", "--noshow_progress"]
    if config:
        options.append(f"--config={config}")
    if config == "hermetic":
        wanted.append(f"//{_TOOLCHAIN.replace('/kernel', ':kernel')}")
    try:
        subprocess.run(
            [*bazelw, "build", *options, *wanted], cwd=place.clone, env=environ, check=True
        )
        return _digests(place.clone / "bazel-bin")
    finally:
        subprocess.run([*bazelw, "shutdown"], cwd=place.clone, env=environ, check=True)


def _digests(outputs: Path) -> dict[str, str]:
    wheel = next(outputs.glob("*.whl"))
    found = {name: _sha256((outputs / name).read_bytes()) for name in _OUTPUTS}
    found[wheel.name] = _sha256(wheel.read_bytes())
    with zipfile.ZipFile(wheel) as archive:
        found |= {
            f"{wheel.name}!{name}": _sha256(archive.read(name)) for name in archive.namelist()
        }
    toolchain = outputs / _TOOLCHAIN
    for name in ("identity.json", "inventory.txt"):
        if (toolchain / name).is_file():
            found[f"{_TOOLCHAIN}/{name}"] = _sha256((toolchain / name).read_bytes())
    return found


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> int:
    """Build twice and compare."""
    parser = argparse.ArgumentParser(description="Compare what two clones build.")
    parser.add_argument("--config", help="a --config of .bazelrc that both are built under")
    config: str | None = parser.parse_args().config
    workspace = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
    with tempfile.TemporaryDirectory(prefix="pypto-two-clones-") as scratch:
        root = Path(scratch)
        # Held still: somebody may commit between the two builds.
        origin = root / "origin.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", workspace, origin], check=True)
        first, second = (
            _build(
                origin,
                Place(
                    root / name / "clone",
                    root / name / "output",
                    root / name / "cache" if config else None,
                ),
                config,
            )
            for name in ("one", "another/place")
        )
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
