from __future__ import annotations

import os
from pathlib import Path

import pytest
from pypto_toolchains.disk import SYSTEM_DISK, WatchedDisk
from pypto_toolchains.wheel_records import (
    InstalledWheel,
    WheelUnknown,
    installed_wheel,
    required_project,
)

METADATA = """\
Metadata-Version: 2.1
Name: Odd_Name.py
Version: 1.0+local
Requires-Dist: numpy>=1.26
Requires-Dist: other ; extra == "more"

Requires-Dist: this is text, no header
"""
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nRoot-Is-Purelib: false\n"
INFO = "Odd_Name.py-1.0+local.dist-info"
RECORD = f"""\
odd/__init__.py,sha256=x,3
"odd/a,b.py",,
../../../bin/odd,,
{INFO}/METADATA,,
{INFO}/WHEEL,,
{INFO}/RECORD,,
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with one installed wheel."""
    info = tmp_path / "lib" / "python" / "site" / INFO
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    (info / "WHEEL").write_text(WHEEL)
    (info / "RECORD").write_text(RECORD)
    return info.parent


def read(site: Path) -> InstalledWheel:
    return installed_wheel("odd-name-py", str(site), SYSTEM_DISK)


def test_reads_what_an_installer_recorded(site: Path) -> None:
    wheel = read(site)
    assert (wheel.name, wheel.version) == ("odd-name-py", "1.0+local")
    assert wheel.requirements == ("numpy>=1.26", 'other ; extra == "more"')
    assert len(set(wheel.digests)) == 3
    assert f"{site}/odd/a,b.py" in wheel.files
    assert str(site.parents[2] / "bin" / "odd") in wheel.files


def test_every_record_is_asked_of_the_disk(site: Path) -> None:
    disk = WatchedDisk(SYSTEM_DISK)
    installed_wheel("odd-name-py", str(site), disk)
    asked = {(kind, os.path.relpath(path, site)) for kind, path, _ in disk.observations}
    assert {("sha256", f"{INFO}/{name}") for name in ("METADATA", "WHEEL", "RECORD")} <= asked
    assert ("listing", ".") in asked


@pytest.mark.parametrize(
    ("record", "text", "told"),
    [
        ("METADATA", b"Name: another\nVersion: 1\n", "names another project"),
        ("METADATA", b"Name: odd-name-py\n", "no version"),
        ("METADATA", b"", "names another project"),
        ("METADATA", b"\xff", "malformed"),
        ("WHEEL", b"", "Wheel-Version"),
        ("WHEEL", b"Wheel-Version: 2.0\n", "Wheel-Version"),
        ("RECORD", b"", "does not list METADATA"),
        ("RECORD", b"\xff", "malformed"),
        ("RECORD", b'"' + b"x" * 200_000, "malformed"),
    ],
)
def test_records_of_another_form_are_refused(
    site: Path, record: str, text: bytes, told: str
) -> None:
    (site / INFO / record).write_bytes(text)
    with pytest.raises(WheelUnknown, match=told):
        read(site)


def test_two_records_and_none_are_refused(site: Path) -> None:
    (site / "odd_name_py-2.dist-info").mkdir()
    with pytest.raises(WheelUnknown, match="several records"):
        read(site)
    with pytest.raises(WheelUnknown, match="no record of a wheel for numpy"):
        installed_wheel("numpy", str(site), SYSTEM_DISK)
    with pytest.raises(WheelUnknown, match="no record"):
        installed_wheel("numpy", str(site / "nowhere"), SYSTEM_DISK)


@pytest.mark.parametrize(
    ("requirement", "project"),
    [
        ("numpy", "numpy"),
        (" NumPy >=1.26, <3", "numpy"),
        ("numpy(>=1)", "numpy"),
        ('numpy ; python_version > "3"', "numpy"),
        ("num_py", "num-py"),
        ("numpy[more]", None),
        ("numpy [more] >= 1", None),
        ("", None),
        (">=1", None),
    ],
)
def test_a_requirement_names_a_project(requirement: str, project: str | None) -> None:
    assert required_project(requirement) == project
