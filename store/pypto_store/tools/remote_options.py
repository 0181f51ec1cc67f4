"""The remote that a command speaks to: its options, and those of the environment behind them.

Without `--remote` the one that the environment names is meant, and each option is instead of one of
its variables. With another URL it is that one and nothing else: credentials and names of one server
are not for another. What entries are signed with, and whose signatures they need, is about entries
rather than servers, and holds for whatever remote is named.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pypto_store.layout import lies_inside
from pypto_store.remote.blob_store import Engine, RemoteFault
from pypto_store.remote.engines import open_engine
from pypto_store.remote.trust import Signer, Trust, signer_of, trust_of
from pypto_store.remote_config import RemoteConfig, TlsConfig
from pypto_store.remote_environment import (
    REMOTE_VARIABLE,
    called,
    parsed_header,
    read_trusted_keys,
    remote_from_environment,
    signing_key_from_environment,
    trusted_keys_from_environment,
)
from pypto_store.tools.answer import CommandError, Surroundings

if TYPE_CHECKING:
    from argparse import _ArgumentGroup

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "RemoteConfig.url": "--remote",
        "RemoteConfig.instance": "--instance",
        "RemoteConfig.headers": "--header",
        "RemoteConfig.tls": "--tls-*",
        "RemoteConfig.timeout": "--timeout",
        "RemoteConfig.credential_helper": "--credential-helper",
        "RemoteConfig.trusted_keys": "--trusted-key",
        "RemoteConfig.signing_key": "--signing-key",
        "TlsConfig.ca": "--tls-ca",
        "TlsConfig.certificate": "--tls-certificate",
        "TlsConfig.key": "--tls-key",
    }
)


@dataclass(frozen=True, slots=True)
class OpenRemote:
    """A remote that a command speaks to. url: without credentials, for people."""

    engine: Engine
    url: str
    trust: Trust
    signer: Signer | None


def add_arguments(parser: argparse.ArgumentParser, *, signs: bool) -> None:
    """The options of a remote; `signs` for a command that stores something there."""
    group = parser.add_argument_group("the remote (default: what $PYPTO_CACHE_REMOTE* say)")
    group.add_argument(
        "--remote", metavar="URL", help="file://, http(s):// or grpc(s)://, alone as given here"
    )
    group.add_argument("--instance", metavar="NAME", help="the part of a grpc(s):// server")
    group.add_argument(
        "--header", metavar="'NAME: VALUE'", action="append", help="goes with every request"
    )
    group.add_argument("--tls-ca", metavar="FILE", help="authorities of the server's certificate")
    group.add_argument("--tls-certificate", metavar="FILE", help="what this client shows of itself")
    group.add_argument("--tls-key", metavar="FILE", help="the key of that certificate")
    group.add_argument("--timeout", metavar="SECONDS", type=float, help="for one request")
    group.add_argument(
        "--credential-helper", metavar="PROGRAM", help="says which headers requests need"
    )
    _add_keys(group)
    if signs:
        group.add_argument(
            "--signing-key",
            metavar="FILE",
            help="sign what is sent with the key that `keygen` made",
        )


def _add_keys(group: _ArgumentGroup) -> None:
    group.add_argument(
        "--trusted-key",
        metavar="KEY",
        action="append",
        help="take only what is signed with it (ed25519:...); may be given several times",
    )
    group.add_argument("--trusted-keys", metavar="FILE", help="the same, with one key a line")


def remote_of(options: argparse.Namespace, surroundings: Surroundings) -> RemoteConfig:
    """The remote that options and environment name; CommandError if they name none, or wrongly."""
    cwd = surroundings.cwd
    try:
        config = _begun(options.remote, surroundings.environ)
    except (TypeError, ValueError) as error:
        raise CommandError(called(str(error), _NAMES)) from None
    fields: dict[str, Any] = {}
    if options.instance is not None:
        fields["instance"] = options.instance
    if options.timeout is not None:
        fields["timeout"] = options.timeout
    if options.credential_helper is not None:
        fields["credential_helper"] = _place(cwd, options.credential_helper)
    if getattr(options, "signing_key", None) is not None:
        fields["signing_key"] = _place(cwd, options.signing_key)
    try:
        if options.header is not None:
            fields["headers"] = tuple(parsed_header(line, "--header") for line in options.header)
        keys = _keys(options, cwd)
        if keys is not None:
            fields["trusted_keys"] = keys
        tls = {
            name: _place(cwd, given)
            for name, given in (
                ("ca", options.tls_ca),
                ("certificate", options.tls_certificate),
                ("key", options.tls_key),
            )
            if given is not None
        }
        if tls:
            fields["tls"] = replace(config.tls or TlsConfig(), **tls)
        config = replace(config, **fields)
    except (TypeError, ValueError) as error:
        raise CommandError(called(str(error), _NAMES)) from None
    root = surroundings.root
    if root and config.directory is not None and lies_inside(config.directory, root):
        raise CommandError(
            f"{config.shown_url} lies inside the store {root}; name a directory beside it"
        )
    return config


def remote_at(url: str, environ: Mapping[str, str]) -> RemoteConfig:
    """The remote at `url`, with the keys of the environment; ValueError naming what is wrong.

    One that the environment names itself is all that it says of it.
    """
    if environ.get(REMOTE_VARIABLE) == url and (named := remote_from_environment(environ)):
        return named
    return RemoteConfig(
        url,
        trusted_keys=trusted_keys_from_environment(environ),
        signing_key=signing_key_from_environment(environ),
    )


@contextmanager
def opened(config: RemoteConfig) -> Iterator[OpenRemote]:
    """A client of the remote; CommandError if there can be none, or for what it let out."""
    url = config.shown_url
    try:
        signer, trust = signer_of(config), trust_of(config)
        engine = open_engine(config)
    except ValueError as error:
        raise CommandError(called(str(error), _NAMES)) from None
    except RemoteFault as fault:
        raise CommandError(str(fault)) from None
    try:
        yield OpenRemote(engine, url, trust, signer)
    except RemoteFault as fault:
        raise CommandError(str(fault)) from None
    finally:
        engine.close()


def _begun(url: str | None, environ: Mapping[str, str]) -> RemoteConfig:
    if url is not None:
        return remote_at(url, environ)
    config = remote_from_environment(environ)
    if config is None:
        raise CommandError(f"no remote is named; give --remote URL, or set {REMOTE_VARIABLE}")
    return config


def _keys(options: argparse.Namespace, cwd: str) -> tuple[str, ...] | None:
    if options.trusted_key is None and options.trusted_keys is None:
        return None
    keys = tuple(options.trusted_key or ())
    if options.trusted_keys is not None:
        keys += read_trusted_keys(_place(cwd, options.trusted_keys), "--trusted-keys")
    return tuple(dict.fromkeys(keys))


def _place(cwd: str, given: str) -> Path:
    return Path(os.path.join(cwd, given))
