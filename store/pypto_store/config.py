"""What a user may say about the store, as values.

Nothing here reads the environment or the file system: capturing a configuration and its
precedence belong to whoever makes the requests. Remotes are described in `remote_config`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypto_store.remote_config import RemoteConfig


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """Persistence policy and application inputs of compilation requests.

    enabled: look up and publish persistent artifacts.
    root: the store's directory; None means the default one. A relative root is resolved by the
        request that captures it.
    readonly: never write, lock or create bytecode under the root.
    extra_source_paths: files, or directories of Python sources, whose content joins the key.
    extra_fingerprint: an additional application revision that joins the key.
    remote: where entries that the root lacks are asked for, and published ones offered; None asks
        nobody. It never joins a key.
    """

    enabled: bool = False
    root: Path | None = None
    readonly: bool = False
    extra_source_paths: tuple[Path, ...] = ()
    extra_fingerprint: str | None = None
    remote: RemoteConfig | None = None

    def __post_init__(self) -> None:
        check_boolean("CacheConfig.enabled", self.enabled)
        check_boolean("CacheConfig.readonly", self.readonly)
        if self.root is not None:
            object.__setattr__(self, "root", checked_path("CacheConfig.root", self.root))
        paths: object = self.extra_source_paths
        if isinstance(paths, (str, bytes, os.PathLike)) or not isinstance(paths, Iterable):
            raise TypeError(
                "CacheConfig.extra_source_paths must be a tuple of paths, "
                f"not {paths!r}; write ({paths!r},) for one path"
            )
        object.__setattr__(
            self,
            "extra_source_paths",
            tuple(checked_path("CacheConfig.extra_source_paths", item) for item in paths),
        )
        if self.extra_fingerprint is not None and type(self.extra_fingerprint) is not str:
            raise TypeError(
                "CacheConfig.extra_fingerprint must be a str or None, "
                f"not {self.extra_fingerprint!r}"
            )
        if self.remote is not None:
            # Whoever has no remote need not know how one is described.
            from pypto_store.remote_config import RemoteConfig

            if type(self.remote) is not RemoteConfig:
                told = type(self.remote).__name__  # a URL may have a password in it
                raise TypeError(f"CacheConfig.remote must be a RemoteConfig or None, not a {told}")


def check_boolean(name: str, value: object) -> None:
    """TypeError unless the field `name` was given True or False."""
    if type(value) is not bool:
        raise TypeError(f"{name} must be True or False, not {value!r}")


def is_path(text: str) -> bool:
    """Whether the system can be given `text` as a path."""
    try:
        return bool(text) and "\0" not in text and bool(os.fsencode(text))
    except UnicodeEncodeError:
        return False


def checked_path(name: str, value: object) -> Path:
    """What the field `name` was given, as a path; TypeError if it is none."""
    if isinstance(value, str) or (isinstance(value, os.PathLike) and not isinstance(value, bytes)):
        text = os.fspath(value)
        if isinstance(text, str) and is_path(text):
            return Path(text)
    raise TypeError(f"{name} wants a path (pathlib.Path or str), not {value!r}")
