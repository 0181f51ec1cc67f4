"""The host's C++ compiler: what changes its identity, and which drivers are not identified."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from compilers import (
    GccInstallation,
    build_program,
    change_bytes,
    debian_compilers,
    machine_gcc,
    own_copy,
    without_build_id,
)
from mutations import House, Mutation, Outcome, check

CHANGES, KEEPS, BYPASSES, _ = Outcome
DEVICE = "device_toolchain"

Edit = Callable[[House], object]


def gcc(house: House) -> GccInstallation:
    """The installation that the house compiles with."""
    top = house.top / "gcc"
    (machine,) = (top / "lib/gcc").iterdir()
    (version,) = machine.iterdir()
    return GccInstallation(top, machine.name, version.name)


@pytest.fixture
def gcc_house(house: House) -> House:
    """A house with a GCC of its own, which is first on PATH."""
    made = GccInstallation.make(house.top / "gcc")
    (house.top / "other").mkdir()
    house.environ["PATH"] = f"{made.bin}:{house.environ['PATH']}"
    return house


def rebuilt(name: str) -> Edit:
    """Another build of a helper or of the driver."""
    return lambda house: gcc(house).rebuild(name)


def put(place: str, content: Callable[[House], Path]) -> Edit:
    """An executable appears at a place below the installation."""

    def edit(house: House) -> None:
        target = gcc(house).top / place.format(g=gcc(house))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy(content(house), target)
        target.chmod(0o755)

    return edit


def program(house: House) -> Path:
    """Some executable ELF file."""
    return build_program(house.top / "program")


def setting(name: str, value: str) -> Edit:
    """A variable is set; ``{top}`` is the house's directory."""
    return lambda house: house.environ.update({name: value.format(top=house.top)})


def path(form: str) -> Edit:
    """PATH is another one; ``{path}`` is what it was."""

    def edit(house: House) -> None:
        value = form.format(path=house.environ["PATH"], top=house.top)
        house.environ["PATH"] = value

    return edit


def searched_first(name: str, *flags: str) -> Edit:
    """A variable names a directory with an assembler of its own."""

    def edit(house: House) -> None:
        build_program(house.top / "more" / "as", "return 1;", *flags)
        house.environ[name] = str(house.top / "more")

    return edit


def text(place: str, content: str, mode: int = 0o644) -> Edit:
    """A text file appears below the installation."""

    def edit(house: House) -> None:
        target = gcc(house).top / place.format(g=gcc(house))
        target.unlink(missing_ok=True)
        target.write_text(content)
        target.chmod(mode)

    return edit


def moved(house: House) -> None:
    """The installation lies elsewhere, as it is."""
    old = gcc(house).top
    new = house.top / "elsewhere"
    old.rename(new)
    house.environ["PATH"] = house.environ["PATH"].replace(f"{old}/", f"{new}/")


def relinked(house: House) -> None:
    """The driver becomes a link to an equal one with an installation of its own."""
    other = GccInstallation.make(house.top / "second")
    gcc(house).driver.unlink()
    gcc(house).driver.symlink_to(other.driver)


def another_first(house: House) -> None:
    (house.bin / "g++").symlink_to(debian_compilers()["other_gcc"])
    house.environ["PATH"] = f"{house.bin}:{house.environ['PATH']}"


def truncated(house: House) -> None:
    path = gcc(house).helper("as")
    path.write_bytes(path.read_bytes()[:100])


def in_place(name: str) -> Edit:
    """Bytes of a helper change, and its Build-ID does not."""
    return lambda house: change_bytes(gcc(house).helper(name))


def directory_in_place(house: House) -> None:
    (gcc(house).programs / "as").mkdir()


def not_executable(house: House) -> None:
    target = gcc(house).programs / "as"
    shutil.copy(program(house), target)
    target.chmod(0o644)


SPECS = "*self_spec:\n+ -DSOMETHING\n\n"

TABLE = [
    *(
        Mutation(f"{name} is rebuilt", DEVICE, rebuilt(name), CHANGES)
        for name in ("driver", "cc1plus", "as", "collect2", "ld", "plugin")
    ),
    Mutation(
        "an assembler appears where helpers are searched earlier", DEVICE,
        put("lib/gcc/{g.machine}/{g.version}/as", program), CHANGES,
    ),
    Mutation(
        "an assembler appears where binutils are searched earlier", DEVICE,
        put("{g.machine}/bin/{g.machine}/{g.version}/as", program), CHANGES,
    ),
    Mutation(
        "collect2 finds a real-ld", DEVICE,
        put("lib/gcc/{g.machine}/{g.version}/real-ld", program), CHANGES,
    ),
    Mutation(
        "collect2 finds a collect-ld", DEVICE,
        put("{g.machine}/bin/collect-ld", program), CHANGES,
    ),
    Mutation(
        "the driver's assembler goes, and PATH has one", DEVICE,
        lambda h: (gcc(h).tools / "as").unlink(), CHANGES,
    ),
    Mutation("the installation is moved", DEVICE, moved, CHANGES),
    Mutation("the driver is a link to an equal one elsewhere", DEVICE, relinked, CHANGES),
    Mutation(
        "a specs file appears", DEVICE,
        text("lib/gcc/{g.machine}/{g.version}/specs", SPECS), CHANGES,
    ),
    Mutation("another driver comes first on PATH", DEVICE, another_first, CHANGES),
    Mutation("COMPILER_PATH has an assembler", DEVICE, searched_first("COMPILER_PATH"), CHANGES),
    Mutation(
        "COMPILER_PATH has nothing", "settings", setting("COMPILER_PATH", "{top}/other"), CHANGES
    ),
    Mutation(
        "BINUTILS_ROOT is set", "settings", setting("BINUTILS_ROOT", "{top}/other"), CHANGES
    ),
    Mutation(
        "GCC_ROOT leads nowhere", DEVICE, setting("GCC_ROOT", "{top}/other"),
        BYPASSES, "liblto_plugin.so not found",
    ),
    Mutation(
        "LIBRARY_PATH is set", "settings", setting("LIBRARY_PATH", "{top}/other"), CHANGES
    ),
    Mutation("PATH gets an unused directory", "", path("{top}/other:{path}"), KEEPS),
    Mutation("PATH gets one that does not exist", "", path("{top}/nowhere:{path}"), KEEPS),
    Mutation("PATH gets a relative one without tools", "", path("{path}:other"), KEEPS),
    Mutation("PATH names a directory twice", "", path("{path}:{path}"), KEEPS),
    Mutation("the working directory is another", "",
             lambda h: setattr(h, "cwd", h.top / "other"), KEEPS),
    Mutation("messages are in another language", "", setting("LC_ALL", "de_DE.UTF-8"), KEEPS),
    Mutation("a directory has the assembler's name", "", directory_in_place, KEEPS),
    Mutation("an assembler may not be executed", "", not_executable, KEEPS),
    Mutation(
        "a tool that no build of ours starts is replaced", "",
        put("lib/gcc/{g.machine}/{g.version}/lto-wrapper", program), KEEPS,
    ),
    Mutation("cc1plus is touched", "",
             lambda h: os.utime(gcc(h).helper("cc1plus"), (1, 1)), KEEPS),
    # What the policy does not see: whoever patches a tool publishes another Build-ID.
    Mutation("the assembler is patched behind its Build-ID", "", in_place("as"), KEEPS),
    Mutation(
        "the assembler is a script", DEVICE,
        text("lib/gcc/{g.machine}/{g.version}/as", "#!/bin/sh\n", 0o755), BYPASSES, "is a script",
    ),
    Mutation("the assembler is cut off", DEVICE, truncated, BYPASSES, "cannot identify the helper"),
    Mutation(
        "the driver is a script", DEVICE,
        text("bin/g++", '#!/bin/sh\nexec /usr/bin/g++ "$@"\n', 0o755), BYPASSES, "is a script",
    ),
    Mutation("the driver is cut off", DEVICE,
             lambda h: os.truncate(gcc(h).driver, 100), BYPASSES, "cannot identify"),
    Mutation("no compiler is left", DEVICE, setting("PATH", "{top}/other"), BYPASSES, "install"),
]  # fmt: skip


@pytest.mark.conforms("cache.91", "cache.92")
@pytest.mark.parametrize("mutation", TABLE, ids=str)
def test_a_driver_and_its_helpers(gcc_house: House, mutation: Mutation) -> None:
    check(gcc_house, mutation)


def test_a_specs_file_that_changes(gcc_house: House) -> None:
    specs = "lib/gcc/{g.machine}/{g.version}/specs"
    text(specs, SPECS)(gcc_house)
    check(gcc_house, Mutation("", DEVICE, text(specs, SPECS.replace("SOME", "ANY")), CHANGES))


def test_a_specs_file_that_is_removed(gcc_house: House) -> None:
    specs = gcc(gcc_house).programs / "specs"
    specs.write_text(SPECS)
    check(gcc_house, Mutation("", DEVICE, lambda _: specs.unlink(), CHANGES))


@pytest.mark.conforms("cache.92")
def test_a_specs_file_that_starts_another_program(gcc_house: House) -> None:
    other = build_program(gcc_house.top / "another-linker")
    start = text("lib/gcc/{g.machine}/{g.version}/specs", f"*linker:\n{other}\n\n")
    check(gcc_house, Mutation("", DEVICE, start, BYPASSES, "another-linker"))


@pytest.mark.conforms("cache.93")
@pytest.mark.parametrize("name", ["driver", "as", "collect2"])
def test_without_a_build_id_the_content_counts(gcc_house: House, name: str) -> None:
    here = gcc(gcc_house)
    path = here.driver if name == "driver" else here.helper(name)
    without_build_id(path)
    fact = "driver.executed" if name == "driver" else f"{name}.native"
    assert gcc_house.facts(DEVICE)[fact].startswith("sha256:")
    check(gcc_house, Mutation("", DEVICE, lambda _: change_bytes(path), CHANGES))


def test_a_relative_helper_directory_counts_from_where_compilers_run(gcc_house: House) -> None:
    build_program(gcc_house.sdk / "tools" / "as")
    gcc_house.build_sdk()
    gcc_house.environ["PATH"] += ":tools"
    (gcc(gcc_house).tools / "as").unlink()
    for directory in gcc_house.environ["PATH"].split(":"):
        assert Path(directory) != gcc_house.sdk / "tools"
    gcc_house.environ["COMPILER_PATH"] = "tools"
    assert gcc_house.facts(DEVICE)["as.path"] == str(gcc_house.sdk / "tools" / "as")


def test_a_relative_path_entry_counts_from_where_compilers_run(house: House) -> None:
    tools = GccInstallation.make(house.sdk / "gcc")
    house.build_sdk()
    house.environ["PATH"] = f"gcc/bin:{house.environ['PATH']}"
    assert house.facts(DEVICE)["driver.path"] == str(tools.driver)


# Wrappers, by what they are; each is put first on PATH as g++.

KEEPS_ITS_NAME = f'return execv("{machine_gcc()}", argv);'
STARTS_A_CHILD = f"""
    int status = 1;
    if (vfork() == 0) {{ execv("{machine_gcc()}", argv); _exit(127); }}
    wait(&status);
    return WEXITSTATUS(status);
"""
BEHIND_SOMETHING = f"""
    argv[0] = "{machine_gcc()}";
    return execv(argv[0], argv);
"""
ONLY_COMPILES = f"""
    for (int at = 1; at < argc; at++)
        if (strcmp(argv[at], "-E") == 0 || strcmp(argv[at], "-shared") == 0)
            return execv("{machine_gcc()}", argv);
    return 1;
"""


def wrapper(body: str) -> Edit:
    return lambda house: build_program(house.bin / "g++", body)


def linked(program: Callable[[], Path]) -> Edit:
    return lambda house: (house.bin / "g++").symlink_to(program())


def copied(program: Callable[[], Path]) -> Edit:
    return lambda house: shutil.copy(program(), house.bin / "g++")


def hard_linked(house: House) -> None:
    """As some installers put a compiler cache in a compiler's place."""
    cache = house.bin / "ccache"
    shutil.copy(debian_compilers()["ccache"], cache)
    os.link(cache, house.bin / "g++")


def ccache() -> Path:
    return debian_compilers()["ccache"]


def clang() -> Path:
    return debian_compilers()["clang"]


WRAPPERS = [
    Mutation("ccache is linked to", DEVICE, linked(ccache), BYPASSES, "wrapper"),
    Mutation("ccache is copied", DEVICE, copied(ccache), BYPASSES, "it runs"),
    Mutation("ccache has the name too", DEVICE, hard_linked, BYPASSES, "it runs"),
    Mutation("a wrapper keeps its name", DEVICE, wrapper(KEEPS_ITS_NAME), BYPASSES, "it runs"),
    Mutation("a wrapper has a child", DEVICE, wrapper(STARTS_A_CHILD), BYPASSES, "it runs"),
    Mutation("a wrapper hides", DEVICE, wrapper(BEHIND_SOMETHING), BYPASSES, "it runs"),
    Mutation("a wrapper compiles alone", DEVICE, wrapper(ONLY_COMPILES), BYPASSES, "it runs"),
    Mutation("a program does nothing", DEVICE, wrapper("return 0;"), BYPASSES, "gives no version"),
    Mutation("a program fails", DEVICE, wrapper("return 1;"), BYPASSES, "does not answer"),
    Mutation("clang is linked to", DEVICE, linked(clang), BYPASSES, "is clang"),
    Mutation("clang is copied", DEVICE, copied(clang), BYPASSES, "is clang"),
    Mutation(
        "an unknown name", DEVICE, linked(lambda: Path("/bin/true")), BYPASSES, "unrecognised"
    ),
]


@pytest.mark.conforms("cache.92")
@pytest.mark.parametrize("mutation", WRAPPERS, ids=str)
def test_wrappers_and_other_compilers(house: House, mutation: Mutation) -> None:
    # ccache keeps its own directory below HOME, and finds the compiler on PATH.
    house.environ["HOME"] = str(house.top)
    check(house, mutation)


def test_a_driver_under_other_names_is_one(house: House) -> None:
    own_name = house.bin / "x86_64-pc-linux-gnu-g++-12.2"
    own_name.symlink_to(machine_gcc())
    (house.bin / "g++").symlink_to(own_name.name)
    facts = house.facts(DEVICE)
    assert facts["driver.path"] == str(house.bin / "g++")
    assert facts["driver.executable"] == str(machine_gcc())
    assert facts["driver.invoked"] == facts["driver.executed"]


def test_a_compiler_of_another_major_version(house: House) -> None:
    (house.bin / "g++").symlink_to(debian_compilers()["other_gcc"])
    facts = house.facts(DEVICE)
    assert facts["driver.version"].startswith("11.")
    assert "/11/" in facts["cc1plus.path"]


def test_own_copies_share_nothing(gcc_house: House) -> None:
    # What the table relies on: changing an installation changes no file of the machine.
    path = gcc(gcc_house).programs / "collect2"
    target = path.resolve()
    before = target.read_bytes()
    own_copy(path)
    change_bytes(path)
    assert target.read_bytes() == before
