"""The one place that reads bazelw's environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from bootstrap.failure import SetupError

# Where pip looks and how it connects. The rest of PIP_* is about installing into the environment
# of whoever calls us (pip sets some itself while it builds a wheel) and must not reach our own.
_PIP_CONNECTION = frozenset(
    f"PIP_{name}"
    for name in (
        *("CERT", "CLIENT_CERT", "CONFIG_FILE", "DEFAULT_TIMEOUT", "EXTRA_INDEX_URL", "FIND_LINKS"),
        *("INDEX_URL", "NO_INDEX", "PROXY", "RETRIES", "TIMEOUT", "TRUSTED_HOST"),
    )
)


class Pins(Enum):
    """How far downloaded Debian packages may differ from the lock file."""

    STRICT = "strict"
    SIGNED = "signed"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the caller of bazelw decided.

    ``bazel`` is None (find one), ``"debian"`` (do not look for one) or a program. ``idle_seconds``
    is how long the Bazel server waits for the next command, None for Bazel's own choice.
    """

    workspace: Path
    cache: Path
    home: Path
    bazel: str | None
    pins: Pins
    environ: Mapping[str, str]

    @classmethod
    def from_environ(cls, workspace: Path, environ: Mapping[str, str]) -> Settings:
        """Read BAZELW_CACHE, BAZELW_BAZEL, BAZELW_PINS, XDG_CACHE_HOME and HOME."""
        home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - HOME may be unset
        cache = environ.get("BAZELW_CACHE")
        if not cache:
            cache = str(Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "pypto-bazelw")
        if not Path(cache).is_absolute():
            raise SetupError(
                f"the cache directory {cache!r} is a relative path",
                "set BAZELW_CACHE to an absolute one",
            )
        if any(character.isspace() for character in cache):
            # Bazel's startup files and the programs' interpreters cannot quote it.
            raise SetupError(
                f"the cache directory {cache!r} has a space in its path",
                "set BAZELW_CACHE to another",
            )
        try:
            pins = Pins(environ.get("BAZELW_PINS") or "signed")
        except ValueError as error:
            raise SetupError(
                f"BAZELW_PINS is {environ['BAZELW_PINS']!r}", "set it to strict, signed or off"
            ) from error
        return cls(
            workspace=workspace,
            # Bazel and Python both resolve links; a path through one would name two places.
            cache=Path(os.path.realpath(cache)),
            home=home,
            bazel=environ.get("BAZELW_BAZEL") or None,
            pins=pins,
            environ=environ,
        )

    def tool_environ(self) -> dict[str, str]:
        """The environment for pip, apt and compilers that the set-up runs."""
        kept = {
            name: value
            for name, value in self.environ.items()
            if not name.startswith(("PIP_", "PYTHON", "_PIP")) or name in _PIP_CONNECTION
        }
        return kept | {
            "LC_ALL": "C.UTF-8",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
        }

    def lock(self, name: str) -> Path:
        """The file that is locked while ``name`` is made."""
        return self.cache / "locks" / f"{name}.lock"

    def log(self, name: str) -> Path:
        """Where the output of the step ``name`` is kept."""
        return self.cache / "log" / f"{name}.log"
