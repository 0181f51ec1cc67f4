"""Which cache policy a request is under: one complete configuration, captured once.

A request's own configuration wins over the process's, which wins over the environment, which
wins over the defaults. A winner is used whole: no field is ever filled from another level.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pypto_store import CacheConfig
from pypto_store.layout import lies_inside, linked_root

if TYPE_CHECKING:
    from pypto_store import RemoteConfig, TlsConfig

ENABLED_VARIABLE = "PYPTO_CACHE"
ROOT_VARIABLE = "PYPTO_CACHE_DIR"
READONLY_VARIABLE = "PYPTO_CACHE_READONLY"
# As `remote_environment` has it, which is loaded only where this one is set.
REMOTE_VARIABLE = "PYPTO_CACHE_REMOTE"

_SWITCH = {"0": False, "1": True}


def environment_config(environ: Mapping[str, str]) -> CacheConfig:
    """The configuration the environment names; ValueError naming a malformed variable.

    What it says of a remote is read only if persistence is enabled.
    """
    enabled = _switch(environ, ENABLED_VARIABLE)
    return CacheConfig(
        enabled=enabled,
        root=_root(environ),
        readonly=_switch(environ, READONLY_VARIABLE),
        remote=_remote(environ) if enabled else None,
    )


def _remote(environ: Mapping[str, str]) -> RemoteConfig | None:
    if REMOTE_VARIABLE not in environ:
        return None
    from pypto_store.remote_environment import remote_from_environment

    return remote_from_environment(environ)


def _switch(environ: Mapping[str, str], name: str) -> bool:
    text = environ.get(name, "0")
    value = _SWITCH.get(text)
    if value is None:
        raise ValueError(f"{name}={text!r} must be exactly 0 or 1; correct it or unset it")
    return value


def _root(environ: Mapping[str, str]) -> Path | None:
    text = environ.get(ROOT_VARIABLE)
    if text is None:
        return None
    if not text:
        raise ValueError(f"{ROOT_VARIABLE} is empty; name a directory or unset it")
    return Path(text)


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """A configuration as one request captured it: every path is absolute, the root without links.

    `root` is None exactly when persistence is disabled: nothing may look for it then. `remote` says
    where entries may come from, and takes no part in what they are: it is in no key.
    """

    root: str | None
    readonly: bool
    extra_source_paths: tuple[str, ...]
    extra_fingerprint: str | None
    remote: RemoteConfig | None = None

    @property
    def enabled(self) -> bool:
        """Whether artifacts are looked up and published."""
        return self.root is not None


def capture_policy(config: CacheConfig, environ: Mapping[str, str], cwd: str) -> CachePolicy:
    """`config` at this moment: relative paths are taken from `cwd`, the default root from HOME.

    Links on the way to the root are followed now, so that two spellings of one root are one, and
    so is the link that marks a root in a tree of links: what is kept beside the entries is found
    where they are. The file system is not asked anything if persistence is disabled.
    """
    if not config.enabled:
        return CachePolicy(None, False, (), None)
    given = _default_root(environ) if config.root is None else config.root
    root = _followed(os.path.realpath(os.path.join(cwd, given)))
    return CachePolicy(
        root=root,
        readonly=config.readonly,
        extra_source_paths=tuple(os.path.join(cwd, path) for path in config.extra_source_paths),
        extra_fingerprint=config.extra_fingerprint,
        remote=None if config.remote is None else _usable(config.remote, cwd, root),
    )


def _usable(remote: RemoteConfig, cwd: str, root: str) -> RemoteConfig:
    """`remote` with absolute paths; ValueError for a directory of the root's own.

    A disk cache has files of the same names as a root: they would write into each other's.
    """
    if remote.directory is not None and lies_inside(remote.directory, root):
        raise ValueError(
            f"the remote {remote.shown_url} lies inside the cache root {root}; "
            "name a directory beside it"
        )
    return _with_absolute_files(remote, cwd)


def _with_absolute_files(remote: RemoteConfig, cwd: str) -> RemoteConfig:
    remote = _absolute(remote, ("credential_helper", "signing_key"), cwd)
    if remote.tls is None:
        return remote
    tls = _absolute(remote.tls, ("ca", "certificate", "key"), cwd)
    return remote if tls is remote.tls else replace(remote, tls=tls)


_Files = TypeVar("_Files", "RemoteConfig", "TlsConfig")


def _absolute(value: _Files, fields: tuple[str, ...], cwd: str) -> _Files:
    """`value`, with relative paths in `fields` taken from `cwd`."""
    named = ((name, getattr(value, name)) for name in fields)
    relative: dict[str, Any] = {
        name: Path(cwd, path) for name, path in named if path is not None and not path.is_absolute()
    }
    return replace(value, **relative) if relative else value


def _followed(root: str) -> str:
    try:
        return linked_root(root) or root
    except OSError:
        return root  # the store says what is wrong with it


def _default_root(environ: Mapping[str, str]) -> str:
    return os.path.join(environ.get("HOME") or _home_of_user(), ".cache", "pypto", "jit")


def _home_of_user() -> str:
    """What the system's list of users says, for an unset or empty ``HOME``."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise ValueError(
            f"user {os.getuid()} has no home directory for the default cache root; "
            f"set HOME, {ROOT_VARIABLE} or CacheConfig.root"
        ) from None


class PolicyLevels:
    """The process's configuration, if any, over the environment's."""

    __slots__ = ("_configured",)

    def __init__(self) -> None:
        self._configured: CacheConfig | None = None

    @property
    def configured(self) -> CacheConfig | None:
        """What `configure` was given last."""
        return self._configured

    def configure(self, config: CacheConfig | None) -> None:
        """Make `config` the process's default; None gives the environment its say again."""
        if config is not None and not isinstance(config, CacheConfig):
            raise TypeError(f"configure_cache wants a CacheConfig or None, not {config!r}")
        self._configured = config

    def effective(self, own: CacheConfig | None, environ: Mapping[str, str]) -> CacheConfig:
        """The one configuration a request is under; `own` is the request's.

        Raises ValueError for a malformed variable, and only where the environment decides.
        """
        if own is not None:
            return own
        if self._configured is not None:
            return self._configured
        return environment_config(environ)
