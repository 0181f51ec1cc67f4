"""A wheel's bytes are a function of its content."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import stat
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from project_metadata import Project
from wheel_archive import members_below, write_wheel

TAG = "cp311-cp311-linux_x86_64"
PYPROJECT = """
[project]
name = "sample"
version = "1.2"
description = "A sample"
license = "Apache-2.0"
license-files = ["LICENSE"]
requires-python = ">=3.11"
dependencies = ["numpy"]
[project.scripts]
sample-tool = "sample.tool:main"
[project.optional-dependencies]
torch = ["torch>=2"]
"""


def _project(directory: Path) -> Project:
    path = directory / "pyproject.toml"
    path.write_text(PYPROJECT)
    return Project.read(path)


def _tree(root: Path, mode: int, mtime: int) -> Path:
    for name in ("z.py", "a/tool", "a/data.json"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        path.chmod(mode)
        os.utime(path, (mtime, mtime))
    return root


def _wheel(directory: Path, mode: int, mtime: int) -> Path:
    members = members_below(_tree(directory / "tree", mode, mtime), "sample", ["a/tool"])
    out = directory / "out.whl"
    write_wheel(out, _project(directory), TAG, "# Read me\n", {"LICENSE": b"free"}, members)
    return out


def test_directory_mode_and_time_leave_no_trace(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two" / "deep").mkdir(parents=True)
    one = _wheel(tmp_path / "one", 0o644, 1)
    two = _wheel(tmp_path / "two" / "deep", 0o555, 2_000_000_000)
    assert one.read_bytes() == two.read_bytes()


def test_only_declared_files_are_executable(tmp_path: Path) -> None:
    with zipfile.ZipFile(_wheel(tmp_path, 0o555, 1)) as archive:
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    assert modes["sample/a/tool"] == stat.S_IFREG | 0o755
    assert modes["sample/z.py"] == stat.S_IFREG | 0o644


def test_a_declared_executable_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="a/nothing"):
        members_below(_tree(tmp_path, 0o644, 1), "sample", ["a/nothing"])


def test_the_commands_of_pyproject_are_entry_points(tmp_path: Path) -> None:
    with zipfile.ZipFile(_wheel(tmp_path, 0o644, 1)) as archive:
        text = archive.read("sample-1.2.dist-info/entry_points.txt").decode()
    assert text == "[console_scripts]\nsample-tool = sample.tool:main\n"


def test_the_metadata_says_what_pyproject_says(tmp_path: Path) -> None:
    with zipfile.ZipFile(_wheel(tmp_path, 0o644, 1)) as archive:
        metadata = Parser().parsestr(archive.read("sample-1.2.dist-info/METADATA").decode())
        assert archive.read("sample-1.2.dist-info/licenses/LICENSE") == b"free"
    assert metadata["Name"] == "sample"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata.get_all("Requires-Dist") == ["numpy", "torch>=2; extra == 'torch'"]
    assert metadata.get_payload() == "# Read me\n"


BUILT = os.environ.get("PYPTO_TEST_WHEEL")


@pytest.mark.skipif(BUILT is None, reason="the wheel that Bazel built is not here")
class TestTheBuiltWheel:
    @pytest.fixture
    def archive(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(BUILT)

    def test_it_has_the_packages_the_module_and_the_sdk(self, archive: zipfile.ZipFile) -> None:
        names = set(archive.namelist())
        assert {
            "pypto/__init__.py",
            "pypto/_native.so",
            "pypto/_sdk/bin/ptoas",
            "pypto/_sdk/pto_isa.pin",
            "pypto/_sdk/sdk.json",
            "pypto_store/__init__.py",
            "pypto_toolchains/__init__.py",
            "pypto_toolchains/environment.json",
            "pypto_toolchains/ptoas_sample.pto.in",
        } <= names
        tops = {name.split("/")[0] for name in names}
        assert {top for top in tops if not top.endswith(".dist-info")} == {
            "pypto",
            "pypto_store",
            "pypto_toolchains",
        }

    def test_every_entry_is_in_the_record(self, archive: zipfile.ZipFile) -> None:
        record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
        rows = {row[0]: row[1:] for row in csv.reader(archive.read(record).decode().splitlines())}
        assert set(rows) == set(archive.namelist())
        for name, (digest, size) in rows.items():
            if name == record:
                continue
            content = archive.read(name)
            encoded = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            assert digest == "sha256=" + encoded.decode()
            assert int(size) == len(content)

    def test_dates_order_and_modes_are_fixed(self, archive: zipfile.ZipFile) -> None:
        entries = archive.infolist()
        assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
        names = [entry.filename for entry in entries[:-1]]
        assert names == sorted(names)
        executable = {entry.filename for entry in entries if entry.external_attr >> 16 & 0o111}
        assert executable == {"pypto/_sdk/bin/ptoas"}
