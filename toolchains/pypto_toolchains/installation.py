"""What of this product is imported, and what its parts are known by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_toolchains.disk import SYSTEM_DISK, Disk
from pypto_toolchains.elf import MalformedElf, NotElf
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.interpreter import Interpreter, InterpreterUnknown, interpreter_facts
from pypto_toolchains.packages import PackageRoot, SourceHashes, package_digests

COMPONENT = "pypto"


@dataclass(frozen=True, slots=True)
class Installation:
    """What is imported, as found by the caller. All paths are absolute.

    `packages` are the imported roots, `runtime_part` the (package, subdirectory) of theirs that
    dispatches, `native` the extension actually imported, `sdk_root` the directory of the SDK that
    came with them, `interpreter` what runs them.
    """

    packages: tuple[PackageRoot, ...]
    runtime_part: tuple[str, str]
    native: str
    sdk_root: str
    interpreter: Interpreter

    def digests(self, hashes: SourceHashes) -> dict[str, str]:
        """The digests of the packages and of the runtime part, by name. OSError."""
        return package_digests(self.packages, (self.runtime_part,), hashes)


@dataclass(frozen=True, slots=True)
class ProductFacts:
    """What the imported parts are known by: digests of sources by package name, the digest of
    the part that dispatches, the extension's native identity, and the interpreter's facts."""

    sources: Mapping[str, str]
    runtime_sources: str
    native: str
    interpreter: tuple[tuple[str, str], ...]


class InstalledProduct:
    """The facts of an installation, which cannot change while the process lives.

    Installed files are immutable within a process, so they are captured once and kept; what could
    not be captured is tried again. `hashes`, begun for the packages, is waited for when the facts
    are first asked for: by then it had the time that the other parts took.
    """

    def __init__(
        self, installation: Installation, hashes: SourceHashes, disk: Disk = SYSTEM_DISK
    ) -> None:
        self.installation = installation
        self.digests: Mapping[str, str] = {}
        """The digests of the packages and of the runtime part, once `facts` has found them."""
        self._hashes = hashes
        self._disk = disk
        self._facts: ProductFacts | None = None

    def facts(self) -> ProductFacts | Unavailable:
        """What the product is known by, or what cannot be read of it."""
        if self._facts is not None:
            return self._facts
        installation = self.installation
        try:
            interpreter = interpreter_facts(installation.interpreter, self._disk)
            native = self._disk.identity(installation.native)
            self.digests = installation.digests(self._hashes)
        except InterpreterUnknown as error:
            return Unavailable(COMPONENT, str(error))
        except (OSError, NotElf, MalformedElf) as error:
            return Unavailable(COMPONENT, f"cannot identify the imported package: {error}")
        sources = dict(self.digests)
        runtime = sources.pop("/".join(installation.runtime_part))
        self._facts = ProductFacts(sources, runtime, native, interpreter)
        return self._facts
