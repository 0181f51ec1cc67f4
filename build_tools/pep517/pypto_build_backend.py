"""The PEP 517 and PEP 660 backend: `pip install .` gets the wheel that Bazel builds.

No build requirements: bazelw makes the environments it needs in its own cache directory. Bazel is
told to build for the interpreter that pip runs us with.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from project_metadata import Project
from wheel_archive import Member, write_wheel

_ROOT = Path(__file__).resolve().parents[2]
_IMPORT_ROOTS = ("pypto", "store", "toolchains")

# What an editable installation needs beside the sources, and the targets of //pypto/pypto that
# make it.
_NATIVE_PARTS = {"_native.so": "native", "_sdk": "_sdk"}

# pip builds in a fresh copy or an unpacked sdist; one output base for all of them keeps what
# earlier installations built, and the server goes soon, since nobody will talk to it again.
_STARTUP = ("--max_idle_secs=15",)
_NEVER_IN_SDIST = frozenset((".git", ".venv", "__pycache__", "build", "build_output", "dist"))

Settings = Mapping[str, Any] | None


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel with Bazel and copy it; returns its name."""
    _bazelw(f"--output_base={_cache() / 'pep517'}", *_STARTUP, "build", "//:wheel")
    # Asked by name: other interpreters' wheels may lie beside it from earlier builds.
    name = f"{_wheel_stem()}.whl"
    destination = Path(wheel_directory) / name
    shutil.copyfile(_ROOT / "bazel-bin" / name, destination)
    return name


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Build the native parts into the tree and make a wheel that points at its import roots."""
    # A library's data is no output of it: what bazelw links into the tree is asked for by name.
    _bazelw("build", *(f"//pypto/pypto:{target}" for target in _NATIVE_PARTS.values()))
    for name in _NATIVE_PARTS:
        if not (_ROOT / "pypto" / "pypto" / name).exists():
            raise SystemExit(f"bazelw built no pypto/pypto/{name}: is the checkout writable?")
    paths = "".join(f"{_ROOT / root}\n" for root in _IMPORT_ROOTS)
    name = f"{_wheel_stem()}.whl"
    members = {"_pypto_editable.pth": Member(paths.encode())}
    tag = _wheel_tag()
    write_wheel(Path(wheel_directory) / name, _project(), tag, _readme(), _licenses(), members)
    return name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Pack everything that bazelw and Bazel read; returns the archive's name."""
    project = _project()
    stem = f"{project.name}-{project.version}"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        metadata = project.metadata(_readme()).encode()
        _add(archive, f"{stem}/PKG-INFO", metadata, executable=False)
        for path in sorted(_source_files()):
            name = path.relative_to(_ROOT).as_posix()
            if name != "PKG-INFO":
                _add(
                    archive,
                    f"{stem}/{name}",
                    path.read_bytes(),
                    executable=os.access(path, os.X_OK),
                )
    destination = Path(sdist_directory) / f"{stem}.tar.gz"
    destination.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return destination.name


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    """Write the dist-info directory without building anything; returns its name."""
    project = _project()
    directory = Path(metadata_directory) / project.dist_info
    directory.mkdir(parents=True)
    (directory / "METADATA").write_text(project.metadata(_readme()), encoding="utf-8")
    wheel = f"Wheel-Version: 1.0\nGenerator: pypto\nRoot-Is-Purelib: false\nTag: {_wheel_tag()}\n"
    (directory / "WHEEL").write_text(wheel, encoding="utf-8")
    (directory / "entry_points.txt").write_text(project.entry_points(), encoding="utf-8")
    return project.dist_info


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def _bazelw(*words: str) -> None:
    environ = {
        name: value
        for name, value in os.environ.items()
        # pip's build isolation works by PYTHONPATH and PATH; neither may reach Bazel's actions or
        # the environments that bazelw makes. What of PIP_* is about connecting, bazelw keeps.
        if not name.startswith(("PYTHON", "_PIP", "__PYVENV"))
    }
    environ["PATH"] = os.pathsep.join(
        entry
        for entry in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if "pip-build-env" not in entry
    )
    environ["BAZELW_PYTHON"] = sys.executable
    status = subprocess.run(
        [str(_ROOT / "bazelw"), *words], cwd=_ROOT, env=environ, check=False
    ).returncode
    if status:
        raise SystemExit(f"bazelw {' '.join(words)} failed with status {status}")


def _cache() -> Path:
    """bazelw's cache directory, asked of its own settings."""
    sys.path.insert(0, str(_ROOT / "build_tools"))
    from bootstrap.settings import Settings as LauncherSettings

    return LauncherSettings.from_environ(_ROOT, os.environ).cache


def _project() -> Project:
    return Project.read(_ROOT / "pyproject.toml")


def _readme() -> str:
    return (_ROOT / "README.md").read_text(encoding="utf-8")


def _licenses() -> dict[str, bytes]:
    return {name: (_ROOT / name).read_bytes() for name in _project().table.get("license-files", ())}


def _wheel_tag() -> str:
    interpreter = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{interpreter}-{interpreter}-linux_x86_64"


def _wheel_stem() -> str:
    project = _project()
    return f"{project.name}-{project.version}-{_wheel_tag()}"


def _source_files() -> Iterator[Path]:
    """What the checkout tracks; in an unpacked sdist, everything that is no output."""
    if (_ROOT / ".git").exists():
        listing = subprocess.run(
            ["git", "-C", str(_ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True
        ).stdout
        names = [name for name in listing.split("\0") if name]
        yield from (
            path for name in names if (path := _ROOT / name).is_file() and not path.is_symlink()
        )
        return
    for parent, directories, names in os.walk(_ROOT):
        directories[:] = [
            name
            for name in directories
            if name not in _NEVER_IN_SDIST and not name.startswith("bazel-")
        ]
        for name in names:
            path = Path(parent) / name
            if not path.is_symlink() and path.suffix != ".pyc":
                yield path


def _add(archive: tarfile.TarFile, name: str, content: bytes, *, executable: bool) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = 0o755 if executable else 0o644
    archive.addfile(entry, io.BytesIO(content))
