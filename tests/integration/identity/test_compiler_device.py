"""The device toolkit and the cross compiler: what a request for an onboard platform is known by."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from compilers import build_program, change_bytes, debian_compilers
from mutations import House, Mutation, Outcome, check, other_build_id
from pypto.backend import RuntimeKind
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.sdk import Sdk, default_sdk_root
from pypto_toolchains.elf import read_build_id

CHANGES, KEEPS, BYPASSES, _ = Outcome
DEVICE = "device_toolchain"
INFO = f"{os.uname().machine}-linux/ascend_toolkit_install.info"
TOOLS = "compiler/ccec_compiler/bin"
VERSION = "package_name=Ascend-cann-toolkit\nversion=8.0.RC3\ninnerversion=V100R001C19SPC001B210\n"

_AARCH64 = 183

Edit = Callable[[House], object]


def cann(house: House) -> Path:
    """The toolkit of a house."""
    return Path(house.environ["ASCEND_HOME_PATH"])


@pytest.fixture
def device_house(house: House) -> House:
    """A house with a toolkit of the public layout, which compiles for the device."""
    top = house.top / "cann"
    (top / INFO).parent.mkdir(parents=True)
    (top / INFO).write_text(VERSION)
    build_program(top / TOOLS / "ccec", "return 0;", "-Wl,--build-id=sha1")
    build_program(top / TOOLS / "ld.lld", "return 1;", "-Wl,--build-id=sha1")
    house.environ["ASCEND_HOME_PATH"] = str(top)
    cross = debian_compilers()["aarch64_gcc"]
    house.environ["PATH"] = f"{cross.parent}:{house.environ['PATH']}"
    house.platform = "a2a3"
    return house


def write(path: str, text: str | bytes) -> Edit:
    """A file of the toolkit has this content."""

    def edit(house: House) -> None:
        target = cann(house) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())

    return edit


def remove(path: str) -> Edit:
    return lambda house: (cann(house) / path).unlink()


def launcher(path: str) -> Edit:
    """A script stands for a tool."""

    def edit(house: House) -> None:
        target = cann(house) / path
        target.write_text('#!/bin/sh\nexec "$0.real" "$@"\n')
        target.chmod(0o755)

    return edit


def environment(name: str, value: str) -> Edit:
    return lambda house: house.environ.update({name: value.format(top=house.top)})


def moved(house: House) -> None:
    """The toolkit lies elsewhere."""
    old, new = cann(house), house.top / "latest"
    old.rename(new)
    house.environ["ASCEND_HOME_PATH"] = str(new)


def linked(house: House) -> None:
    """The toolkit lies elsewhere, and a link leads there, as installers leave it."""
    old, new = cann(house), house.top / "8.0.RC3"
    old.rename(new)
    old.symlink_to(new)


def without_cross_compiler(house: House) -> None:
    house.environ["PATH"] = str(house.bin)


def rebuild_cross_helper(house: House) -> None:
    """Another assembler for the device's host, where the driver searches first."""
    build_program(house.top / "binutils" / "as", "return 1;")
    house.environ["COMPILER_PATH"] = str(house.top / "binutils")


TABLE = [
    Mutation("another version", DEVICE, write(INFO, VERSION.replace("RC3", "RC4")), CHANGES),
    Mutation("another build of it", DEVICE, write(INFO, VERSION.replace("B210", "B211")), CHANGES),
    Mutation("the compiler is rebuilt", DEVICE,
             lambda h: other_build_id(cann(h) / TOOLS / "ccec"), CHANGES),
    Mutation("the linker is rebuilt", DEVICE,
             lambda h: other_build_id(cann(h) / TOOLS / "ld.lld"), CHANGES),
    Mutation("the toolkit is moved", DEVICE, moved, CHANGES),
    Mutation("the cross compiler gets another assembler", DEVICE, rebuild_cross_helper, CHANGES),
    Mutation("the toolkit is linked to", "", linked, KEEPS),
    Mutation("the info says more", "", write(INFO, VERSION + "path=/opt/x\n"), KEEPS),
    Mutation("the info of a part says another version", "",
             write("compiler/version.info", "Version=1\n"), KEEPS),
    Mutation("another compiler lies where it is searched later", "",
             lambda h: build_program(cann(h) / "bin/ccec"), KEEPS),
    # What the policy does not see: the version stands for these.
    Mutation("a header of the toolkit is patched", "", write("include/x.h", "\n"), KEEPS),
    Mutation("the linker is patched behind its Build-ID", "",
             lambda h: change_bytes(cann(h) / TOOLS / "ld.lld"), KEEPS),
    Mutation("a compiler that the platform does not use is replaced", "",
             lambda h: h.tool("g++", "#!/bin/sh\n"), KEEPS),
    Mutation("no toolkit is named", DEVICE,
             lambda h: h.environ.pop("ASCEND_HOME_PATH"), BYPASSES, "set ASCEND_HOME_PATH"),
    Mutation("an empty name", DEVICE,
             environment("ASCEND_HOME_PATH", ""), BYPASSES, "set ASCEND_HOME_PATH"),
    Mutation("a relative name", DEVICE,
             environment("ASCEND_HOME_PATH", "cann"), BYPASSES, "is relative"),
    Mutation("a toolkit that is not there", DEVICE,
             environment("ASCEND_HOME_PATH", "{top}/none"), BYPASSES, "version is not known"),
    Mutation("no info", DEVICE, remove(INFO), BYPASSES, "ascend_toolkit_install.info"),
    Mutation("an info without version", DEVICE,
             write(INFO, "arch=x86_64\n"), BYPASSES, "has no line version="),
    Mutation("an empty version", DEVICE, write(INFO, "version= \n"), BYPASSES, INFO),
    Mutation("two versions", DEVICE, write(INFO, VERSION + "Version=9\n"), BYPASSES, "two values"),
    Mutation("an info that is no text", DEVICE, write(INFO, b"\xff\xfe"), BYPASSES, INFO),
    Mutation("an endless info", DEVICE, write(INFO, VERSION * 1000), BYPASSES, "larger than"),
    Mutation("the compiler is a launcher", DEVICE,
             launcher(f"{TOOLS}/ccec"), BYPASSES, "ccec is a launcher"),
    Mutation("the linker is a launcher", DEVICE,
             launcher(f"{TOOLS}/ld.lld"), BYPASSES, "ld.lld is a launcher"),
    Mutation("the linker is cut off", DEVICE,
             lambda h: os.truncate(cann(h) / TOOLS / "ld.lld", 70), BYPASSES, "cannot identify"),
    Mutation("the compiler may not be executed", DEVICE,
             lambda h: (cann(h) / TOOLS / "ccec").chmod(0o644), BYPASSES, "may not be executed"),
    Mutation("no linker", DEVICE, remove(f"{TOOLS}/ld.lld"), BYPASSES, "has neither"),
    Mutation("no cross compiler", DEVICE,
             without_cross_compiler, BYPASSES, "'aarch64-linux-gnu-g++'"),
]  # fmt: skip


@pytest.mark.conforms("cache.91", "cache.92")
@pytest.mark.parametrize("mutation", TABLE, ids=str)
def test_a_device_toolkit(device_house: House, mutation: Mutation) -> None:
    check(device_house, mutation)


@pytest.mark.conforms("cache.93")
@pytest.mark.parametrize("tool", ["ccec", "ld.lld"])
def test_a_tool_without_a_build_id_counts_by_content(device_house: House, tool: str) -> None:
    path = build_program(cann(device_house) / TOOLS / tool, "return 2;", "-Wl,--build-id=none")
    assert device_house.facts(DEVICE)[f"{tool}.native"].startswith("sha256:")
    check(device_house, Mutation("", DEVICE, lambda _: change_bytes(path), CHANGES))


def test_the_version_of_the_compiler_package_stands_in(device_house: House) -> None:
    remove(INFO)(device_house)
    write("compiler/version.info", "Version=7.6.0\ntimestamp=20240101\n")(device_house)
    facts = device_house.facts(DEVICE)
    assert facts["cann.version"] == "7.6.0"
    assert facts["cann.info"].endswith("compiler/version.info")


@pytest.mark.conforms("cache.91")
def test_an_onboard_platform_is_known_by_toolkit_and_cross_compiler(device_house: House) -> None:
    facts = device_house.facts(DEVICE)
    assert facts["cann.version"] == "8.0.RC3"
    assert facts["cann.innerversion"] == "V100R001C19SPC001B210"
    assert facts["ccec.native"].startswith("build-id:")
    assert facts["ld.lld.native"].startswith("build-id:")
    assert facts["driver.machine"] == "aarch64-linux-gnu"
    assert facts["as.path"].endswith("aarch64-linux-gnu/bin/as")
    known = device_house.known().digest
    device_house.platform = "a5"
    # The platform is a part of the specialization; the tools are the same.
    assert device_house.known().digest == known


def test_a_simulated_platform_has_nothing_to_do_with_the_toolkit(device_house: House) -> None:
    device_house.platform = "a2a3sim"
    assert not [name for name in device_house.facts(DEVICE) if name.startswith(("cann", "ccec"))]
    check(device_house, Mutation("", "", remove(INFO), KEEPS))


@pytest.mark.parametrize("runtime", list(RuntimeKind))
def test_orchestration_for_the_device_is_really_compiled(
    tmp_path: Path, runtime: RuntimeKind
) -> None:
    cross = debian_compilers()["aarch64_gcc"]
    compiler = KernelCompiler(
        "a2a3",
        sdk=Sdk.load(default_sdk_root()),
        runtime_name=runtime.value,
        cpu_level="x86-64",
        environ={"PATH": f"{cross.parent}:{os.environ['PATH']}"},
    )
    source = tmp_path / "orchestration.cpp"
    source.write_text('#include <cstdint>\nextern "C" std::uint32_t answer() { return 42; }\n')
    binary = tmp_path / "orchestration.so"
    binary.write_bytes(compiler.compile_orchestration(source))
    (machine,) = struct.unpack_from("<H", binary.read_bytes(), 18)
    onboard = runtime is RuntimeKind.TENSORMAP_AND_RINGBUFFER
    assert (machine == _AARCH64) == onboard
    assert read_build_id(str(binary))
