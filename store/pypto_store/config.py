"""What a user may say about the store, as values.

Nothing here reads the environment or the file system: capturing a configuration and its
precedence belong to whoever makes the requests.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_REMOTE_SCHEMES = ("file", "http", "https", "grpc", "grpcs")


def _boolean(name: str, value: object) -> None:
    if type(value) is not bool:
        raise TypeError(f"{name} must be True or False, not {value!r}")


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """Persistence policy and application inputs of compilation requests.

    enabled: look up and publish persistent artifacts.
    root: the store's directory; None means the default one. A relative root is resolved by the
        request that captures it.
    readonly: never write, lock or create bytecode under the root.
    extra_source_paths: files, or directories of Python sources, whose content joins the key.
    extra_fingerprint: an additional application revision that joins the key.
    """

    enabled: bool = False
    root: Path | None = None
    readonly: bool = False
    extra_source_paths: tuple[Path, ...] = ()
    extra_fingerprint: str | None = None

    def __post_init__(self) -> None:
        _boolean("CacheConfig.enabled", self.enabled)
        _boolean("CacheConfig.readonly", self.readonly)
        if self.root is not None:
            object.__setattr__(self, "root", _path("CacheConfig.root", self.root))
        paths: object = self.extra_source_paths
        if isinstance(paths, (str, bytes, os.PathLike)) or not isinstance(paths, Iterable):
            raise TypeError(
                "CacheConfig.extra_source_paths must be a tuple of paths, "
                f"not {paths!r}; write ({paths!r},) for one path"
            )
        object.__setattr__(
            self,
            "extra_source_paths",
            tuple(_path("CacheConfig.extra_source_paths", item) for item in paths),
        )
        if self.extra_fingerprint is not None and type(self.extra_fingerprint) is not str:
            raise TypeError(
                "CacheConfig.extra_fingerprint must be a str or None, "
                f"not {self.extra_fingerprint!r}"
            )


@dataclass(frozen=True, slots=True)
class RemoteConfig:
    """Where another copy of the artifacts lives: a URL of a scheme the store can speak.

    url: file://, http(s):// or grpc(s)://.
    push: offer local publications to it.
    """

    url: str
    push: bool = False

    def __post_init__(self) -> None:
        _boolean("RemoteConfig.push", self.push)
        if type(self.url) is not str:
            raise TypeError(f"RemoteConfig.url must be a str, not {self.url!r}")
        scheme, separator, place = self.url.partition("://")
        if scheme not in _REMOTE_SCHEMES or not separator or not place:
            schemes = ", ".join(f"{scheme}://" for scheme in _REMOTE_SCHEMES)
            raise ValueError(f"RemoteConfig.url must start with one of {schemes}: {self.url!r}")


def is_path(text: str) -> bool:
    """Whether the system can be given `text` as a path."""
    try:
        return bool(text) and "\0" not in text and bool(os.fsencode(text))
    except UnicodeEncodeError:
        return False


def _path(name: str, value: object) -> Path:
    if isinstance(value, str) or (isinstance(value, os.PathLike) and not isinstance(value, bytes)):
        text = os.fspath(value)
        if isinstance(text, str) and is_path(text):
            return Path(text)
    raise TypeError(f"{name} wants a path (pathlib.Path or str), not {value!r}")
