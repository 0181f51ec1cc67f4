"""When an identity is worked out, remembered and recalled, and what of the world enters it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from mutations import House, Mutation, Outcome, check, differences, other_build_id, recalled
from pypto_toolchains.environment import EnvironmentRegistry
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identity import COMPONENTS, ToolchainIdentity
from pypto_toolchains.process import ToolResult, run_tool
from pypto_toolchains.records import sealed

CHANGES, KEEPS, BYPASSES, CAUGHT = Outcome

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def variable(name: str, value: str):
    return lambda house: house.environ.update({name: value})


def real_gcc() -> Path:
    """The file of the machine's C++ compiler, without links."""
    found = shutil.which("g++")
    assert found is not None
    return Path(os.path.realpath(found))


def link_compiler(house: House, directory: Path) -> None:
    """The machine's compiler, found in a directory that comes first on PATH."""
    directory.mkdir(exist_ok=True)
    (directory / "g++").symlink_to(real_gcc())


# -- within a process ---------------------------------------------------------------------------


def test_success_is_remembered(house: House) -> None:
    process = house.process()
    first = process.identity()
    other_build_id(house.native)
    (house.package / "__init__.py").write_text("edited")
    assert process.identity() is first
    assert house.worked_out == 1
    assert differences(first, house.known()) == {"pypto", "runtime"}


@pytest.mark.parametrize("policy", ["build", "content"])
def test_a_failure_is_looked_at_again(house: House, policy: str) -> None:
    """Whoever mends what is missing need not restart."""
    process = house.process()
    path = house.environ["PATH"]
    assembler = house.sdk / "bin" / "ptoas"
    assembler.rename(house.top / "ptoas")
    house.environ["PATH"] = "/nowhere"
    assert isinstance(process.identity(policy), Unavailable)
    house.environ["PATH"] = path
    found = process.identity(policy)
    assert isinstance(found, Unavailable)
    assert found.component == "ptoas"
    (house.top / "ptoas").rename(assembler)
    assert isinstance(process.identity(policy), ToolchainIdentity)


def test_an_extension_that_appears_is_found(house: House) -> None:
    process = house.process()
    house.native.rename(house.top / "away")
    missing = process.identity()
    assert isinstance(missing, Unavailable)
    assert missing.component == "pypto"
    (house.top / "away").rename(house.native)
    assert recalled(process.identity()) == recalled(house.known())


def test_damage_that_was_mended_is_no_damage(house: House) -> None:
    process = house.process()
    header = house.sdk / "include/pto/pto-inst.hpp"
    text = header.read_text()
    header.write_text(text + "\n")
    assert "was changed" in str(process.changed())
    header.write_text(text)
    assert process.changed() is None


@pytest.mark.conforms("cache.94")
def test_a_change_of_the_directory_or_of_path_looks_again(house: House) -> None:
    process = house.process()
    first = process.identity()
    assert house.worked_out == 1
    house.cwd = house.top
    assert recalled(process.identity()) == recalled(first)
    assert house.worked_out == 2
    house.environ["PATH"] += ":/opt/unused/bin"
    assert recalled(process.identity()) == recalled(first)
    assert house.worked_out == 3
    process.identity()
    assert house.worked_out == 3


def test_a_process_that_changes_its_directory_all_the_time_forgets(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypto_toolchains.identities._MOST_KNOWN", 4)
    process = house.process()
    first = process.identity()
    for number in range(9):
        house.cwd = house.top / str(number)
        assert recalled(process.identity()) == recalled(first)
        assert process.changed() is None
    assert len(process.identities._known) <= 4
    assert len(process.identities._validated) <= 4


def test_a_process_of_ever_new_identities_keeps_no_record_of_them_all(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypto_toolchains.identities._MOST_KNOWN", 4)
    process = house.process()
    for number in range(9):
        house.environ["PYPTO_CACHE_EPOCH"] = str(number)
        found = process.identity()
        assert isinstance(found, ToolchainIdentity)
        process.identities.remember(found, str(house.root))
    assert len(process.identities._fresh) <= 4
    assert len(process.identities._remembered) <= 10
    told = house.worked_out
    assert recalled(house.known()) == recalled(found)
    assert house.worked_out == told


@pytest.mark.conforms("cache.94")
def test_a_compiler_selected_since_is_seen_by_the_same_process(house: House) -> None:
    process = house.process()
    first = process.identity()
    link_compiler(house, house.top / "mine")
    house.environ["PATH"] = f"{house.top}/mine:{house.environ['PATH']}"
    assert differences(first, process.identity()) == {"device_toolchain"}


# -- between processes --------------------------------------------------------------------------


def test_a_readable_record_is_enough_and_a_root_of_ones_own_is_not_needed(house: House) -> None:
    first = house.known()
    files = {path.name: path.read_bytes() for path in (house.root / "tools").iterdir()}
    house.known()
    assert house.worked_out == 1
    assert {p.name: p.read_bytes() for p in (house.root / "tools").iterdir()} == files
    house.root = house.top / "other"
    assert recalled(house.process().identity()) == recalled(first)
    assert not house.root.exists()


def test_whoever_cannot_write_asks_each_time(house: House) -> None:
    house.root.write_bytes(b"")
    first = house.known()
    assert recalled(house.known()) == recalled(first)
    assert house.worked_out == 2


def move_compiler(house: House) -> None:
    link_compiler(house, house.bin)


def unused_tools(house: House) -> None:
    unused = house.top / "unused"
    unused.mkdir()
    for name in ("gcc", "clang++", "make", "cc"):
        (unused / name).symlink_to("/bin/true")
    house.environ["PATH"] = f"{unused}:{house.environ['PATH']}"


PATHS = [
    Mutation(
        "an unused directory on PATH", "",
        lambda h: h.environ.update(PATH=f"/nowhere:{h.environ['PATH']}:/opt/unused"), KEEPS,
    ),
    Mutation("a directory of unused tools on PATH", "", unused_tools, KEEPS),
    Mutation("another working directory", "", lambda h: setattr(h, "cwd", h.top), KEEPS),
    Mutation("a compiler moves", "device_toolchain", move_compiler, CHANGES),
    Mutation("PATH has no compiler", "device_toolchain", variable("PATH", "/nowhere"), BYPASSES),
]  # fmt: skip


@pytest.mark.conforms("cache.94")
@pytest.mark.parametrize("mutation", PATHS, ids=str)
def test_what_is_searched(house: House, mutation: Mutation) -> None:
    check(house, mutation)


# -- variables ----------------------------------------------------------------------------------

RELATIVE = ["lib", ":/opt/lib", "/opt/lib:", "/a;;/b", "/a;b", "/a::/b", "./x:/y", ";", "", "/a:~"]
ABSOLUTE = ["/opt/lib", "/opt/lib:/usr/lib", "/a;/b", "/a:/b;/c"]


@pytest.mark.conforms("cache.95")
@pytest.mark.parametrize("value", RELATIVE)
def test_a_relative_or_empty_entry_brings_the_directory_in(house: House, value: str) -> None:
    house.environ["LD_LIBRARY_PATH"] = value
    elsewhere = Mutation("elsewhere", "settings", lambda h: setattr(h, "cwd", h.top), CHANGES)
    check(house, elsewhere)


@pytest.mark.conforms("cache.95")
@pytest.mark.parametrize("value", ABSOLUTE)
def test_absolute_entries_do_not(house: House, value: str) -> None:
    house.environ["LD_LIBRARY_PATH"] = value
    check(house, Mutation("elsewhere", "", lambda h: setattr(h, "cwd", h.top), KEEPS))


SEMANTIC = EnvironmentRegistry.load().semantic
OVERRIDES = ("LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "PYTHONOPTIMIZE")


@pytest.mark.conforms("cache.95")
@pytest.mark.parametrize("name", SEMANTIC)
def test_a_variable_that_may_change_what_tools_make_is_in_the_key(house: House, name: str) -> None:
    one, other = prefixes() if name == "GCC_EXEC_PREFIX" else ("/opt/x", "/opt/y")
    check(house, Mutation("set", "settings", variable(name, one), CHANGES))
    first = house.known()
    house.environ[name] = other
    assert "settings" in differences(first, house.known())


def prefixes() -> tuple[str, str]:
    """Two names of the directory below which the compiler has its own files."""
    told = run_tool(
        [str(real_gcc()), "-print-file-name=crtbegin.o"],
        cwd=Path("/"), environ=os.environ, timeout=60, stage="ask",
    )  # fmt: skip
    below = Path(told.stdout.strip()).resolve().parents[2]
    return f"{below}/", f"{below}/."


@pytest.mark.conforms("cache.95")
def test_overrides_of_the_loader_and_the_interpreter_are_among_them() -> None:
    assert set(OVERRIDES) <= set(SEMANTIC)


@pytest.mark.parametrize("name", ["LANG", "TERM", "PYPTO_LOG", "TMPDIR", "PYPTO_PROG_BUILD_DIR"])
def test_other_variables_are_not(house: House, name: str) -> None:
    check(house, Mutation("set", "", variable(name, "x"), KEEPS))


# -- where tools are looked for -----------------------------------------------------------------


@pytest.mark.conforms("cache.96")
def test_relative_entries_of_path_mean_the_directory_of_the_build(house: House) -> None:
    link_compiler(house, house.cwd / "tools")
    house.environ["PATH"] = f"tools:{house.environ['PATH']}"
    path = house.facts("device_toolchain")["driver.path"]
    assert not path.startswith(str(house.top))
    link_compiler(house, house.sdk / "tools")
    assert house.facts("device_toolchain")["driver.path"] == f"{house.sdk}/tools/g++"


@pytest.mark.conforms("cache.96")
def test_relative_directories_of_helpers_mean_the_directory_of_the_build(house: House) -> None:
    for place in (house.cwd, house.sdk):
        (place / "helpers").mkdir()
    house.environ["COMPILER_PATH"] = "helpers"
    first = house.facts("device_toolchain")
    (house.cwd / "helpers" / "as").symlink_to(str(shutil.which("as")))
    assert house.facts("device_toolchain") == first
    (house.sdk / "helpers" / "as").symlink_to(str(shutil.which("as")))
    assert house.facts("device_toolchain")["as.path"] == f"{house.sdk}/helpers/as"


@pytest.mark.conforms("cache.96")
def test_the_compiler_is_asked_where_it_will_run(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = []

    def recorded(argv: list[str], *, cwd: Path, **others: Any) -> ToolResult:
        places.append(str(cwd))
        return run_tool(argv, cwd=cwd, **others)

    monkeypatch.setattr("pypto_toolchains.gcc_probe.run_tool", recorded)
    house.known()
    assert places
    assert set(places) == {str(house.sdk)}


# -- namespaces ---------------------------------------------------------------------------------


@pytest.mark.conforms("cache.97")
def test_epochs_are_apart(house: House) -> None:
    first = house.known()
    house.environ["PYPTO_CACHE_EPOCH"] = "2"
    second = house.known()
    house.environ["PYPTO_CACHE_EPOCH"] = "3"
    assert len({first.digest, second.digest, house.known().digest}) == 3
    assert first.components == second.components
    house.environ["PYPTO_CACHE_EPOCH"] = ""
    assert recalled(house.known()) == recalled(first)


@pytest.mark.conforms("cache.97")
def test_every_component_is_known(house: House) -> None:
    identity = house.known()
    assert tuple(item.component for item in identity.components) == COMPONENTS
    for item in identity.components:
        assert item.facts
        for name, value in item.facts:
            assert name
            assert value, name
            assert "unknown" not in value.lower()


def test_a_record_about_a_path_that_no_system_has_is_not_believed(house: House) -> None:
    before = house.known()
    question = b'"observations":[["sha256","/\\ud800",""],'
    for path in (house.root / "tools").iterdir():
        _, _, body = path.read_bytes().partition(b"\n")
        path.write_bytes(sealed(body.replace(b'"observations":[', question)))
    assert recalled(house.known()) == recalled(before)
