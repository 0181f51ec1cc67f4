"""What pip is given: a wheel from Bazel, an editable wheel, an sdist that can be built again."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pypto_build_backend as backend
import pytest

PYPROJECT = """
[project]
name = "sample"
version = "1.2"
description = "A sample"
license = "Apache-2.0"
license-files = ["LICENSE"]
requires-python = ">=3.11"
"""


@pytest.fixture
def source_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "tree"
    files = {
        "pyproject.toml": PYPROJECT,
        "README.md": "# Sample\n",
        "LICENSE": "free",
        "bazelw": "#!/bin/sh\n",
        "MODULE.bazel": "",
        ".bazelrc": "",
        "build_tools/bootstrap/launcher.py": "",
        "pypto/pypto/__init__.py": "",
        "pypto/pypto/__pycache__/stale.pyc": "",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "bazelw").chmod(0o755)
    (tmp_path / "outputs").mkdir()
    (root / "bazel-bin").symlink_to(tmp_path / "outputs")
    monkeypatch.setattr(backend, "_ROOT", root)
    return root


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The words bazelw would have been run with."""
    said: list[tuple[str, ...]] = []
    monkeypatch.setattr(backend, "_bazelw", lambda *words: said.append(words))
    monkeypatch.setattr(backend, "_cache", lambda: Path("/cache"))
    return said


def test_the_wheel_is_bazels(
    source_tree: Path, commands: list[tuple[str, ...]], tmp_path: Path
) -> None:
    name = f"sample-1.2-{backend._wheel_tag()}.whl"
    (source_tree / "bazel-bin" / name).write_bytes(b"wheel")
    (source_tree / "bazel-bin" / "sample-1.1-cp39-cp39-linux_x86_64.whl").write_bytes(b"old")
    assert backend.build_wheel(str(tmp_path)) == name
    assert (tmp_path / name).read_bytes() == b"wheel"
    assert commands == [
        ("--output_base=/cache/pep517", "--max_idle_secs=15", "build", "//:wheel"),
    ]


def test_an_editable_wheel_points_at_the_import_roots(
    source_tree: Path, commands: list[tuple[str, ...]], tmp_path: Path
) -> None:
    for part in ("_native.so", "_sdk"):
        (source_tree / "pypto" / "pypto" / part).touch()
    name = backend.build_editable(str(tmp_path))
    with zipfile.ZipFile(tmp_path / name) as archive:
        lines = archive.read("_pypto_editable.pth").decode().splitlines()
    assert lines == [str(source_tree / root) for root in ("pypto", "store", "toolchains")]
    assert commands == [("build", "//pypto/pypto:native", "//pypto/pypto:_sdk")]


def test_an_editable_installation_without_its_native_parts_is_refused(
    source_tree: Path, commands: list[tuple[str, ...]], tmp_path: Path
) -> None:
    (source_tree / "pypto" / "pypto" / "_sdk").touch()
    with pytest.raises(SystemExit, match=r"pypto/pypto/_native\.so"):
        backend.build_editable(str(tmp_path))


def test_an_sdist_holds_the_launcher_and_no_output(source_tree: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / backend.build_sdist(str(tmp_path))) as archive:
        modes = {entry.name: entry.mode for entry in archive.getmembers()}
    assert set(modes) == {
        f"sample-1.2/{name}"
        for name in (
            "PKG-INFO",
            "pyproject.toml",
            "README.md",
            "LICENSE",
            "bazelw",
            "MODULE.bazel",
            ".bazelrc",
            "build_tools/bootstrap/launcher.py",
            "pypto/pypto/__init__.py",
        )
    }
    assert modes["sample-1.2/bazelw"] == 0o755
    assert modes["sample-1.2/README.md"] == 0o644


def test_the_same_tree_gives_the_same_sdist(source_tree: Path, tmp_path: Path) -> None:
    archives = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        archives.append((tmp_path / name / backend.build_sdist(str(tmp_path / name))).read_bytes())
        (source_tree / "README.md").touch()
    assert archives[0] == archives[1]


def test_metadata_needs_no_build(
    source_tree: Path, commands: list[tuple[str, ...]], tmp_path: Path
) -> None:
    name = backend.prepare_metadata_for_build_wheel(str(tmp_path / "metadata"))
    assert "Name: sample\n" in (tmp_path / "metadata" / name / "METADATA").read_text()
    assert commands == []


def test_pips_isolation_does_not_reach_bazel(
    source_tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {}

    def record(argv: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        seen.update(options, argv=argv)
        return subprocess.CompletedProcess(argv, 3)

    monkeypatch.setattr(subprocess, "run", record)
    monkeypatch.setenv("PYTHONPATH", "/tmp/pip-build-env-x/site")
    monkeypatch.setenv("PATH", "/tmp/pip-build-env-x/overlay/bin:/usr/bin")
    with pytest.raises(SystemExit, match="failed with status 3"):
        backend._bazelw("build", "//:wheel")
    environ = seen["env"]
    assert isinstance(environ, dict)
    assert "PYTHONPATH" not in environ
    assert environ["PATH"] == "/usr/bin"
    assert environ["BAZELW_PYTHON"] == sys.executable
    assert seen["cwd"] == source_tree
