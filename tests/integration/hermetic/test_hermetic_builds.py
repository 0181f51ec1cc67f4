"""The same kernels, compiled by one hermetic toolchain in different places and circumstances."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import PLATFORMS, Place, Shell

PLAIN = Shell({"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell in which every tool of the machine would do something else, or nothing."""
    top = tmp_path_factory.mktemp("strange")
    for name in ("g++", "zig", "as", "ld", "ld.lld", "clang", "ptoas"):
        fake = top / "bin" / name
        fake.parent.mkdir(exist_ok=True)
        fake.write_text("#!/bin/sh\necho this must not run >&2\nexit 1\n")
        fake.chmod(0o755)
    header = top / "include" / "stdint.h"
    header.parent.mkdir()
    header.write_text("#error this must not be included\n")
    for name in ("home", "temporary"):
        (top / name).mkdir()
    return Shell(
        {
            "PATH": str(top / "bin"),
            "HOME": str(top / "home"),
            "XDG_CACHE_HOME": str(top / "home"),
            "TMPDIR": str(top / "temporary"),
            "LANG": "de_DE.UTF-8",
            "CPATH": str(header.parent),
            "CPLUS_INCLUDE_PATH": str(header.parent),
            "LIBRARY_PATH": str(top),
            "ZIG_LIB_DIR": str(top),
            "ZIG_GLOBAL_CACHE_DIR": str(top / "home"),
            "SOURCE_DATE_EPOCH": "1",
            "COMPILER_PATH": str(top / "bin"),
            "PYPTO_PROG_BUILD_DIR": str(top / "out"),
        },
        umask=0o077,
    )


@pytest.fixture(scope="module")
def other(
    place: Place, toolchain: Path, tmp_path_factory: pytest.TempPathFactory, strange: Shell
) -> tuple[Place, Shell]:
    """The same installation and toolchain elsewhere, and another environment."""
    return Place(tmp_path_factory.mktemp("another") / "and/deeper", toolchain, place), strange


@pytest.mark.parametrize("platform", PLATFORMS)
def test_two_places_give_the_same_keys_and_bytes(
    place: Place, other: tuple[Place, Shell], platform: str
) -> None:
    second, strange = other
    one = place.run(PLAIN, platform=platform)
    two = second.run(strange, platform=platform)
    for report in (one, two):
        stats = report["stats"]
        assert stats["misses"] == stats["binary_builds"] == 3
        assert stats["bypasses"] == stats["storage_errors"] == 0
    assert one["keys"] == two["keys"]
    assert None not in one["keys"].values()
    assert place.entries() == second.entries()
    for content in place.entries().values():
        for directory in (place.top, second.top):
            assert str(directory).encode() not in content


def test_a_store_filled_in_one_place_is_hit_from_another(
    toolchain: Path, tmp_path: Path, strange: Shell
) -> None:
    builder = Place(tmp_path / "one", toolchain)
    user = Place(tmp_path / "two", toolchain, builder)
    builder.run(PLAIN)
    builder.root.rename(user.root)
    stats = user.run(strange)["stats"]
    assert stats["ready_hits"] == 3
    assert stats["misses"] == stats["binary_builds"] == stats["bypasses"] == 0


def test_a_tool_that_was_patched_builds_for_this_process_alone(
    toolchain: Path, tmp_path: Path
) -> None:
    place = Place(tmp_path / "place", toolchain)
    place.run(PLAIN)
    patched = place.toolchain / "zig/lib/libc/include/generic-glibc/setjmp.h"
    text = patched.read_bytes()
    # Never through the link: its content is everybody's.
    patched.parent.chmod(0o755)
    patched.unlink()
    patched.write_bytes(text + b"\n")
    assert place.run(PLAIN)["stats"]["ready_hits"] == 3, "what was built before is right"
    place.root.rename(tmp_path / "aside")
    report = place.run(PLAIN)
    assert report["stats"]["bypasses"] > 0
    assert "setjmp.h was changed" in report["stats"]["last_bypass_reason"]
    assert not place.entries()
