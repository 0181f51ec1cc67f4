"""What apt downloaded is held against the lock file."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest
from bootstrap import debian_bazel, debian_browser, debian_compilers
from bootstrap.failure import SetupError
from bootstrap.pins import Package, check, format_lock, parse_lock
from bootstrap.settings import Pins

BAZEL = Package("bazel-bootstrap", "7.7.1-8", 790064, "a" * 64)
ZLIB = Package("zlib1g", "1:1.3-3", 90912, "b" * 64)
LOCKED = {package.name: package for package in (BAZEL, ZLIB)}


def test_the_lock_file_survives_being_written_and_read() -> None:
    assert parse_lock(format_lock(LOCKED.values())) == LOCKED


@pytest.mark.parametrize("recipe", [debian_bazel, debian_browser, debian_compilers])
def test_the_shipped_lock_files_pin_what_is_asked_for(recipe: ModuleType) -> None:
    assert set(recipe.PACKAGES) <= set(parse_lock(recipe.LOCK.read_text(encoding="utf-8")))


@pytest.mark.parametrize("line", ["zlib1g 1.3", "zlib1g 1.3 12 abc", "zlib1g 1 2 3 4"])
def test_a_malformed_line_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        parse_lock(line)


def test_a_repeated_package_is_malformed() -> None:
    line = format_lock([BAZEL]).splitlines()[1]
    with pytest.raises(ValueError, match="line 2"):
        parse_lock(f"{line}\n{line}")


def test_equal_packages_pass_in_every_mode() -> None:
    for pins in Pins:
        assert check(LOCKED.values(), LOCKED, pins) == []


@pytest.mark.parametrize("pins", [Pins.SIGNED, Pins.STRICT])
def test_other_bytes_under_the_locked_version_are_refused(pins: Pins) -> None:
    other = replace(ZLIB, sha256="c" * 64)
    with pytest.raises(SetupError) as raised:
        check([BAZEL, other], LOCKED, pins)
    assert "zlib1g" in raised.value.problem
    assert "c" * 64 in raised.value.problem
    assert "BAZELW_PINS=off" in raised.value.remedy


def test_the_override_accepts_other_bytes() -> None:
    assert check([replace(ZLIB, sha256="c" * 64)], LOCKED, Pins.OFF) == []


def test_a_moved_suite_is_reported_and_strict_refuses_it() -> None:
    moved = replace(ZLIB, version="1:1.4-1", sha256="d" * 64)
    new = Package("libnew1", "1", 1, "e" * 64)
    assert check([BAZEL, moved, new], LOCKED, Pins.SIGNED) == ["zlib1g", "libnew1"]
    with pytest.raises(SetupError, match=r"1:1\.4-1"):
        check([moved], LOCKED, Pins.STRICT)
    with pytest.raises(SetupError, match="does not have it"):
        check([new], LOCKED, Pins.STRICT)
