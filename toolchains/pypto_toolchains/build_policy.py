"""The `build` identity policy: what builds publish of themselves, for the tools that will run.

This trusts the identifiers that builds publish (Build-IDs, revisions) and what the effective
tools are, as found by following the steps that will start them. It reads no system header and
no library a tool loads.
"""

from __future__ import annotations

from pathlib import Path

from pypto_toolchains.device_toolchain import capture_device_toolchain
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.identity import IdentityRequest, ToolchainIdentity, joined
from pypto_toolchains.installation import ProductFacts
from pypto_toolchains.ptoas import capture_ptoas
from pypto_toolchains.sdk import capture_isa, capture_runtime, changed_since_built
from pypto_toolchains.search import has_relative_entry


class BuildPolicy:
    """See the module."""

    def capture(self, request: IdentityRequest) -> ToolchainIdentity | Unavailable:
        """As IdentityPolicy has it."""
        world, sdk, disk = request.surroundings, request.sdk, request.disk
        environ = world.environ
        bundled = Path(sdk.root, "bin", "ptoas")
        ptoas = capture_ptoas(environ, bundled, Path(world.project_root), request.records, disk)
        device = capture_device_toolchain(request)
        isa = capture_isa(sdk, environ, disk)
        # Last: the sources are being hashed meanwhile.
        facts = request.product.facts()
        if isinstance(facts, Unavailable):
            return facts
        outcomes = (
            product_evidence(facts),
            capture_runtime(sdk, environ, facts.native, facts.runtime_sources, disk),
            isa,
            ptoas.outcome,
            device.outcome,
        )
        records = (*ptoas.records, *device.records)
        return joined(
            request.namespace,
            outcomes,
            settings_of(request),
            records=records,
            recallable=sdk.recallable and ptoas.recallable,
        )

    def validate(self, request: IdentityRequest) -> str | None:
        """As IdentityPolicy has it."""
        return changed_since_built(request.sdk, request.hasher)


def product_evidence(facts: ProductFacts) -> Evidence:
    """The `pypto` component: sources, extension, interpreter."""
    packages = tuple((f"package.{name}", digest) for name, digest in facts.sources.items())
    return Evidence.of("pypto", (*packages, ("native", facts.native), *facts.interpreter))


def settings_of(request: IdentityRequest) -> tuple[tuple[str, str | None], ...]:
    """The variables whose values take part, and the working directory where one depends on it."""
    environ = request.surroundings.environ
    loader_path = environ.get("LD_LIBRARY_PATH")
    relative = loader_path is not None and has_relative_entry(loader_path)
    return (
        *((name, environ.get(name)) for name in request.registry.semantic),
        ("cwd", request.surroundings.cwd if relative else None),
    )
