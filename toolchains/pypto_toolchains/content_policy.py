"""The `content` identity policy: the bytes of all that takes part, on Linux.

Every component has the evidence of the `build` policy, and beside it the SHA-256 of what that
trusts: each native file with every library that the dynamic loader maps for it, the directories in
which compilers look for headers, the inputs of links, the files of the SDK, Python's library. What
the device toolkit and an assembler from a wheel report of themselves stands for them, and so does
the verified revision of the instruction set.

No time takes part: whoever recalls such an identity reads all of it again.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from pypto_toolchains.build_policy import product_evidence, settings_of
from pypto_toolchains.closures import Closure
from pypto_toolchains.compiler_resources import ResourcesUnknown, resources_of
from pypto_toolchains.device_toolchain import DeviceCapture, capture_device_toolchain
from pypto_toolchains.disk import Disk
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.gcc import Gcc
from pypto_toolchains.identity import IdentityRequest, ToolchainIdentity, joined
from pypto_toolchains.installation import ProductFacts
from pypto_toolchains.interpreter import Interpreter
from pypto_toolchains.loader_search import ClosureUnknown, LibrarySearch
from pypto_toolchains.ptoas import PtoasCapture, PtoasNotFound, capture_ptoas, select_ptoas
from pypto_toolchains.records import ProbeRecord
from pypto_toolchains.sdk import (
    capture_isa,
    capture_runtime,
    changed_since_built,
)

UNMODELLED_VARIABLES: Mapping[str, str] = {
    "BINUTILS_ROOT": "moves the directories in which a compiler driver searches",
    "COMPILER_PATH": "puts directories before those in which a compiler driver searches",
    "CPATH": "adds directories of headers",
    "CPLUS_INCLUDE_PATH": "adds directories of headers",
    "C_INCLUDE_PATH": "adds directories of headers",
    "DEPENDENCIES_OUTPUT": "makes a compiler write another file",
    "GCC_COMPARE_DEBUG": "makes a compiler driver compile twice",
    "GCC_EXEC_PREFIX": "moves the directories in which a compiler driver searches",
    "GCC_ROOT": "moves the directories in which a compiler driver searches",
    "LD_AUDIT": "loads code into every tool",
    "LD_PRELOAD": "loads code into every tool",
    "LIBRARY_PATH": "adds directories in which a linker searches",
    "PYTHONHOME": "moves the library of the Python interpreter",
    "SUNPRO_DEPENDENCIES": "makes a compiler write another file",
}
"""Variables that bring in what is not followed here, and what each does. Others enter by value."""

_NEEDS_PYELFTOOLS = (
    "the content policy reads ELF files with pyelftools; pip install 'pypto[content]'"
)
_SDK_DIRECTORIES = ("bin", "include", "src")


class ContentPolicy:
    """See the module."""

    def capture(self, request: IdentityRequest) -> ToolchainIdentity | Unavailable:
        """As IdentityPolicy has it."""
        environ = request.surroundings.environ
        for name, effect in UNMODELLED_VARIABLES.items():
            if environ.get(name) is not None:
                return Unavailable("toolchain", f"{name} {effect}, which is not followed; unset it")
        if not _can_read_elf():
            return Unavailable("toolchain", _NEEDS_PYELFTOOLS)
        try:
            search = LibrarySearch(environ.get("LD_LIBRARY_PATH"), request.disk)
        except ClosureUnknown as error:
            return Unavailable("toolchain", str(error))
        ptoas = _ptoas(request, search)
        device, device_records = _device_toolchain(request, search)
        isa = capture_isa(request.sdk, environ, request.disk)
        # Last: the sources are being hashed meanwhile.
        facts = request.product.facts()
        if isinstance(facts, Unavailable):
            return facts
        product = _product(request, facts, search)
        outcomes = (product, _runtime(request, facts), isa, ptoas.outcome, device)
        records = (*ptoas.records, *device_records)
        return joined(
            request.namespace,
            outcomes,
            settings_of(request),
            records=records,
            recallable=request.sdk.recallable and ptoas.recallable,
        )

    def validate(self, request: IdentityRequest) -> str | None:
        """As IdentityPolicy has it. The loader is asked whether it does what is thought of it."""
        world = request.surroundings
        environ, disk = world.environ, request.disk
        changed = changed_since_built(request.sdk, request.hasher)
        if changed is not None:
            return changed
        if not _can_read_elf():
            # The identity was recalled, which needs none.
            return f"toolchain: {_NEEDS_PYELFTOOLS}"
        interpreter = request.product.installation.interpreter.executable
        device = capture_device_toolchain(request)
        if isinstance(device.outcome, Unavailable):
            return str(device.outcome)
        programs = [("pypto", interpreter)]
        for compiler in device.compilers:
            programs += [(device.outcome.component, path) for path in _programs(compiler)]
        try:
            search = LibrarySearch(environ.get("LD_LIBRARY_PATH"), disk)
        except ClosureUnknown as error:
            return f"toolchain: {error}"
        for component, path in programs:
            try:
                unforeseen = Closure(path, search).unforeseen(environ)
            except ClosureUnknown as error:
                return f"{component}: {error}"
            if unforeseen is not None:
                return f"{component}: {path} would load {unforeseen}, which was not foreseen"
        return None


def _can_read_elf() -> bool:
    return importlib.util.find_spec("elftools") is not None


def _product(
    request: IdentityRequest, facts: ProductFacts, search: LibrarySearch
) -> Evidence | Unavailable:
    """The interpreter with its library, and the extension in it."""
    installation = request.product.installation
    evidence = product_evidence(facts)
    try:
        process = Closure(installation.interpreter.executable, search)
        process.add(installation.native)
        library = _library_facts(installation.interpreter, request.disk)
        return _with(evidence, (*_native_facts(process, request.disk), *library))
    except (ClosureUnknown, OSError) as error:
        return Unavailable(evidence.component, str(error))


def _library_facts(interpreter: Interpreter, disk: Disk) -> tuple[tuple[str, str], ...]:
    """Python's own library. What is installed beside it is not part of the product."""
    return tuple((f"python.library.{one}", disk.modules(one)) for one in interpreter.library())


def _runtime(request: IdentityRequest, facts: ProductFacts) -> Evidence | Unavailable:
    """The files of the SDK, and the Python code beside it."""
    sdk, disk = request.sdk, request.disk
    evidence = capture_runtime(
        sdk, request.surroundings.environ, facts.native, facts.runtime_sources, disk
    )
    if isinstance(evidence, Unavailable):
        return evidence
    try:
        content = [(f"sdk.{name}", disk.tree(f"{sdk.root}/{name}")) for name in _SDK_DIRECTORIES]
    except OSError as error:
        return Unavailable(evidence.component, f"the SDK cannot be read: {error}")
    return _with(evidence, tuple(content))


def _ptoas(request: IdentityRequest, search: LibrarySearch) -> PtoasCapture:
    """A native assembler with its libraries; one from a wheel is known by what it reports."""
    world, disk = request.surroundings, request.disk
    bundled, project_root = Path(request.sdk.root, "bin", "ptoas"), Path(world.project_root)
    captured = capture_ptoas(world.environ, bundled, project_root, request.records, disk)
    evidence = captured.outcome
    if isinstance(evidence, Unavailable) or "ptoas.native" not in dict(evidence.facts):
        return captured
    try:
        path = select_ptoas(world.environ, bundled, project_root, disk)
        content = _native_facts(Closure(str(path), search), disk)
    except (PtoasNotFound, ClosureUnknown, OSError) as error:
        return PtoasCapture(Unavailable(evidence.component, str(error)))
    return replace(captured, outcome=_with(evidence, content))


def _device_toolchain(
    request: IdentityRequest, search: LibrarySearch
) -> tuple[Evidence | Unavailable, tuple[ProbeRecord, ...]]:
    """Every compiler with its helpers, their libraries, and what they read beside a source."""
    captured: DeviceCapture = capture_device_toolchain(request)
    evidence = captured.outcome
    if isinstance(evidence, Unavailable):
        return evidence, ()
    records = list(captured.records)
    content: dict[str, str] = {}
    try:
        for name, compiler in zip(request.target.compilers, captured.compilers, strict=True):
            own = _compiler_facts(compiler, search, request.disk)
            content.update(own)
            reads, record = _reading_facts(request, name, compiler, own)
            content.update(reads)
            records += () if record is None else (record,)
    except (ClosureUnknown, ResourcesUnknown, OSError) as error:
        return Unavailable(evidence.component, str(error)), ()
    return _with(evidence, tuple(content.items())), tuple(records)


def _compiler_facts(
    compiler: Gcc, search: LibrarySearch, disk: Disk
) -> tuple[tuple[str, str], ...]:
    facts: dict[str, str] = {}
    for path in _programs(compiler):
        process = Closure(path, search)
        if path == compiler.helpers["ld"] and "plugin" in compiler.helpers:
            process.add(compiler.helpers["plugin"])
        facts.update(_native_facts(process, disk))
    return tuple(facts.items())


def _programs(compiler: Gcc) -> tuple[str, ...]:
    """The driver and the helpers that run; the plugin is loaded by one of them."""
    helpers = (path for name, path in compiler.helpers.items() if name != "plugin")
    return (compiler.driver.path, *helpers)


def _reading_facts(
    request: IdentityRequest, name: str, compiler: Gcc, content: tuple[tuple[str, str], ...]
) -> tuple[tuple[tuple[str, str], ...], ProbeRecord | None]:
    world, disk = request.surroundings, request.disk
    resources, record = resources_of(
        compiler,
        request.target.options_of(name),
        content,
        world.environ,
        world.project_root,
        request.records,
        disk,
    )
    # Without any link, which is what is read; a directory that is not there may come to be.
    directories = {
        directory: disk.resolved(directory) if disk.exists(directory) else directory
        for directory in resources.include
    }
    facts = [
        (f"{name}.include.{index}", place)
        for index, place in enumerate(dict.fromkeys(directories.values()))
    ]
    facts += [(f"tree.{root}", disk.tree(root)) for root in _outermost(directories.values())]
    facts += [(f"link.{path}", disk.sha256(path)) for path in resources.link]
    return tuple(facts), record


def _outermost(directories: Collection[str]) -> tuple[str, ...]:
    """The directories without those that lie in another one of them."""
    return tuple(
        directory
        for directory in dict.fromkeys(directories)
        if not any(directory.startswith(f"{other}/") for other in directories)
    )


def _native_facts(process: Closure, disk: Disk) -> tuple[tuple[str, str], ...]:
    """The content of all that a process maps. ClosureUnknown for a sanitizer's build, OSError."""
    if process.sanitizer is not None:
        path, symbol = process.sanitizer
        raise ClosureUnknown(
            f"{path} was built for a sanitizer ({symbol}), whose reports may change what tools do; "
            "use an ordinary build"
        )
    return tuple((f"elf.{path}", disk.sha256(path)) for path in process.files)


def _with(evidence: Evidence, facts: tuple[tuple[str, str], ...]) -> Evidence:
    return Evidence.of(evidence.component, (*evidence.facts, *facts))
