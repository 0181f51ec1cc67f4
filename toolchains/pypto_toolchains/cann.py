"""The identity of the device toolkit that ASCEND_HOME_PATH names.

Of a toolkit's files these take part, each found in the first of its places:

    <home>/<machine>-linux/ascend_toolkit_install.info   the version of the whole installation
    <home>/compiler/version.info                         the version of its compiler package
    <home>/compiler/ccec_compiler/bin, <home>/bin        ``ccec`` and the device linker ``ld.lld``

An info file has lines ``name=value``, the name in any case. ``version`` has to be there;
``innerversion``, the build that a released version stands for, takes part where it is given. The
compiler and the linker must be executable ELF files: what a launcher runs in their place is not
known. Headers and libraries of the toolkit stand behind its version.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pypto_toolchains.disk import SYSTEM_DISK, Disk, read_whole
from pypto_toolchains.elf import MalformedElf, NotElf
from pypto_toolchains.evidence import Unavailable

COMPONENT = "device_toolchain"
HOME_VARIABLE = "ASCEND_HOME_PATH"

_TOOL_DIRECTORIES = ("compiler/ccec_compiler/bin", "bin")
_TOOLS = ("ccec", "ld.lld")
_MAX_INFO_BYTES = 64 * 1024


def cann_facts(
    environ: Mapping[str, str], machine: str, disk: Disk = SYSTEM_DISK
) -> tuple[tuple[str, str], ...] | Unavailable:
    """The toolkit's version and its tools; `machine` is the host's architecture, as uname has it.

    Unavailable without a toolkit, and for one whose version or tools are not known.
    """
    home = environ.get(HOME_VARIABLE)
    if not home:
        return Unavailable(
            COMPONENT,
            f"the platform needs the CANN device toolkit; set {HOME_VARIABLE} to its directory",
        )
    if not os.path.isabs(home):
        return Unavailable(COMPONENT, f"{HOME_VARIABLE}={home} is relative; set an absolute path")
    facts = _version(home, machine, disk)
    if isinstance(facts, Unavailable):
        return facts
    for name in _TOOLS:
        tool = _tool(home, name, disk)
        if isinstance(tool, Unavailable):
            return tool
        facts += tool
    return facts


def _version(home: str, machine: str, disk: Disk) -> tuple[tuple[str, str], ...] | Unavailable:
    places = (
        f"{home}/{machine}-linux/ascend_toolkit_install.info",
        f"{home}/compiler/version.info",
    )
    path = next((place for place in places if disk.exists(place)), None)
    if path is None:
        return Unavailable(
            COMPONENT,
            f"the CANN toolkit has neither {' nor '.join(places)}, so its version is not known; "
            f"set {HOME_VARIABLE} to a complete installation",
        )
    try:
        fields = _info(path, disk)
    except (OSError, ValueError) as error:
        return Unavailable(COMPONENT, f"cannot read the CANN version in {path}: {error}")
    if not fields.get("version"):
        return Unavailable(COMPONENT, f"{path} has no line version=...; reinstall the CANN toolkit")
    told = (("cann.info", path), ("cann.version", fields["version"]))
    inner = fields.get("innerversion")
    return (*told, ("cann.innerversion", inner)) if inner else told


def _info(path: str, disk: Disk) -> dict[str, str]:
    """The fields of an info file. OSError; ValueError if it is no such file or contradicts."""
    content = read_whole(path, disk, _MAX_INFO_BYTES)
    fields: dict[str, str] = {}
    for line in content.decode("utf-8").splitlines():
        name, equals, value = line.partition("=")
        name, value = name.strip().lower(), value.strip()
        if equals and fields.setdefault(name, value) != value:
            raise ValueError(f"{name} has two values")
    return fields


def _tool(home: str, name: str, disk: Disk) -> tuple[tuple[str, str], ...] | Unavailable:
    places = [f"{home}/{directory}/{name}" for directory in _TOOL_DIRECTORIES]
    path = next((place for place in places if disk.exists(place)), None)
    if path is None:
        return Unavailable(COMPONENT, f"the CANN toolkit has neither {' nor '.join(places)}")
    if not disk.is_executable(path):
        return Unavailable(COMPONENT, f"{path} of the CANN toolkit may not be executed")
    try:
        identity = disk.identity(path)
    except NotElf:
        return Unavailable(
            COMPONENT,
            f"{path} is a launcher and not the program itself; put the CANN toolkit's own there",
        )
    except (OSError, MalformedElf) as error:
        return Unavailable(COMPONENT, f"cannot identify {path}: {error}")
    return ((f"{name}.path", path), (f"{name}.native", identity))
