"""The `hermetic` identity policy: a toolchain that a build declared, known by its content.

The key names digests and relative paths alone: no directory, no variable's value, nothing of the
machine. So it is the same for every user, host and directory, and so are the bytes that the tools
write, because they run without the user's environment. The declared digests are believed on a hit,
and held against every file before something is built.

What it does not see: the system's own C library, under this interpreter and under the assembler.
"""

from __future__ import annotations

import json
import os

from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.identity import (
    TOOLCHAIN_VARIABLE,
    IdentityRequest,
    ToolchainIdentity,
    joined,
)
from pypto_toolchains.installation import ProductFacts
from pypto_toolchains.interpreter import Interpreter, portable_interpreter_facts
from pypto_toolchains.sdk import capture_isa, capture_runtime, changed_since_built, pin_path
from pypto_toolchains.toolchain_description import (
    DescriptionError,
    ToolchainDescription,
    read_description,
)
from pypto_toolchains.toolchain_inventory import InventoryError, read_inventory

# Each selects another tool than the declared one of a component.
_SELECTING = (
    ("PTOAS_ROOT", "ptoas"),
    ("PTO_ISA_ROOT", "pto_isa"),
    ("PYPTO_RUNTIME_ROOT", "runtime"),
    ("ASCEND_HOME_PATH", "device_toolchain"),
)


class HermeticPolicy:
    """See the module."""

    def capture(self, request: IdentityRequest) -> ToolchainIdentity | Unavailable:
        """As IdentityPolicy has it."""
        environ = request.surroundings.environ
        for variable, component in _SELECTING:
            if environ.get(variable):
                return Unavailable(
                    component,
                    f"{variable} is set, but a hermetic toolchain brings all of its tools; "
                    f"unset {variable}",
                )
        if request.target.device:
            return Unavailable(
                "device_toolchain",
                f"platform {request.target.platform!r} needs a device toolkit, which no hermetic "
                f"toolchain has; use the simulator",
            )
        try:
            description = read_description(described_path(request), request.disk)
        except DescriptionError as error:
            return Unavailable("device_toolchain", str(error))
        facts = request.product.facts()
        if isinstance(facts, Unavailable):
            return facts
        outcomes = (
            _product(facts, request.product.installation.interpreter),
            _runtime(request, description, facts),
            _pto_isa(request, description),
            Evidence.of("ptoas", (("sha256", description.components["ptoas"].digest),)),
            _device_toolchain(description),
        )
        return joined(request.namespace, outcomes, ())

    def validate(self, request: IdentityRequest) -> str | None:
        """As IdentityPolicy has it."""
        patched = changed_since_built(request.sdk, request.hasher)
        if patched is not None:
            return patched
        try:
            description = read_description(described_path(request))
        except DescriptionError as error:
            return f"device_toolchain: {error}"
        return _other_assembler(request, description) or _changed(request, description)


def described_path(request: IdentityRequest) -> str:
    """The absolute path of the description that the request's environment names."""
    world = request.surroundings
    return os.path.join(world.cwd, world.environ[TOOLCHAIN_VARIABLE])


def _product(facts: ProductFacts, interpreter: Interpreter) -> Evidence:
    packages = tuple((f"package.{name}", digest) for name, digest in facts.sources.items())
    return Evidence.of(
        "pypto", (*packages, ("native", facts.native), *portable_interpreter_facts(interpreter))
    )


def _runtime(
    request: IdentityRequest, description: ToolchainDescription, facts: ProductFacts
) -> Evidence | Unavailable:
    declared = description.components["runtime"]
    sdk = request.sdk
    if sdk.revision != declared.digest:
        return Unavailable(
            "runtime",
            f"the SDK at {sdk.root} has revision {sdk.revision}, but {description.path} declares "
            f"{declared.digest} ({declared.label}); use the toolchain of this version of pypto",
        )
    environ = request.surroundings.environ
    return capture_runtime(sdk, environ, facts.native, facts.runtime_sources, request.disk)


def _pto_isa(request: IdentityRequest, description: ToolchainDescription) -> Evidence | Unavailable:
    declared = description.components["pto_isa"]
    sdk = request.sdk
    evidence = capture_isa(sdk, request.surroundings.environ, request.disk)
    if isinstance(evidence, Unavailable):
        return evidence
    pin = dict(evidence.facts)["pin"]
    if pin != declared.digest:
        return Unavailable(
            "pto_isa",
            f"{pin_path(sdk.root)} says {pin}, but {description.path} declares {declared.digest} "
            f"({declared.label}); use the toolchain of this version of pypto",
        )
    return evidence


def _device_toolchain(description: ToolchainDescription) -> Evidence:
    facts = [("sha256", description.components["device_toolchain"].digest)]
    for name, tool in description.tools.items():
        # JSON keeps arguments apart, and is readable.
        facts.append((f"{name}.argv", json.dumps(tool.argv)))
        facts.append((f"{name}.dialect", tool.dialect))
    return Evidence.of("device_toolchain", tuple(facts))


def _other_assembler(request: IdentityRequest, description: ToolchainDescription) -> str | None:
    declared = description.components["ptoas"]
    path = os.path.join(request.sdk.root, "bin", "ptoas")
    if not request.disk.is_executable(path):
        # One on PATH would be taken in its place.
        return f"ptoas: {path} may not be executed; reinstall the package"
    try:
        (digest,) = request.hasher([path])
    except OSError as error:
        return f"ptoas: cannot read {path}: {error.strerror}; reinstall the package"
    if digest.hex() == declared.digest:
        return None
    return (
        f"ptoas: {path} is not the assembler that {description.path} declares "
        f"({declared.label}); use the toolchain of this version of pypto"
    )


def _changed(request: IdentityRequest, description: ToolchainDescription) -> str | None:
    """Why the toolchain's files are not the declared ones, or None. Reads all of them."""
    declared = description.components["device_toolchain"]
    again = f"install the toolchain {declared.label} again"
    directory = description.directory
    listed_in = os.path.join(directory, description.inventory_path)
    try:
        inventory = read_inventory(listed_in, description.inventory_sha256)
    except InventoryError as error:
        return f"device_toolchain: {listed_in}: {error}; {again}"
    if inventory.digests != {"device_toolchain": declared.digest}:
        return (
            f"device_toolchain: {listed_in} does not list what {description.path} declares; {again}"
        )
    for name, tool in description.tools.items():
        if tool.argv[0] not in inventory.files:
            return (
                f"device_toolchain: {listed_in} does not list {tool.argv[0]!r}, the tool {name}; "
                f"{again}"
            )
    try:
        inventory.check(directory, request.hasher)
    except InventoryError as error:
        return f"device_toolchain: in {directory}, {error}; {again}"
    return None
