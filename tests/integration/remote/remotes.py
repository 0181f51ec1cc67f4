"""Remotes behind real servers: how each kind is started, and the RemoteConfig that a user writes.

A test takes them all by the fixture `remote`, or one kind by `RUNNING[kind](programs, directory)`.
A server is shared by the tests of a module, so what one test stores is there for the next: each
test has keys and blobs of its own.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

import servers
from pypto_store import RemoteConfig, TlsConfig

Programs: TypeAlias = Mapping[str, Path]
Running: TypeAlias = Callable[[Programs, Path], AbstractContextManager[RemoteConfig]]


def authorization(user: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """The headers by which a client gives this name and password."""
    pair = base64.b64encode(":".join(user).encode()).decode()
    return (("Authorization", f"Basic {pair}"),)


@contextmanager
def _casd(programs: Programs, directory: Path) -> Iterator[RemoteConfig]:
    with servers.running_casd(programs["casd"], directory) as address:
        yield RemoteConfig(f"grpc://{address}")


@contextmanager
def _casd_behind_nginx(programs: Programs, directory: Path) -> Iterator[RemoteConfig]:
    with (
        servers.running_casd(programs["casd"], directory / "behind") as behind,
        servers.running_front(
            programs["nginx"], directory / "front", behind, servers.ONLY_WRITERS
        ) as address,
    ):
        name, password = servers.WRITER
        yield RemoteConfig(
            f"grpcs://{name}:{password}@{address}", tls=TlsConfig(servers.PKI / "ca.pem")
        )


@contextmanager
def _buildgrid(programs: Programs, directory: Path) -> Iterator[RemoteConfig]:
    with servers.running_buildgrid(programs["buildgrid"], directory, ["fleet/a"]) as address:
        yield RemoteConfig(f"grpc://{address}", instance="fleet/a")


@contextmanager
def _nginx(programs: Programs, directory: Path) -> Iterator[RemoteConfig]:
    with servers.running_nginx(programs["nginx"], directory) as address:
        yield RemoteConfig(f"http://{address}/pypto")


@contextmanager
def _nginx_with_users(programs: Programs, directory: Path) -> Iterator[RemoteConfig]:
    with servers.running_nginx(programs["nginx"], directory, servers.ONLY_USERS) as address:
        yield RemoteConfig(f"http://{address}/a/b", headers=authorization(servers.WRITER))


@contextmanager
def _disk_cache(programs: Programs, directory: Path) -> Iterator[RemoteConfig]:
    yield RemoteConfig((directory / "disk").as_uri())


# By the name that a test shows.
RUNNING: Mapping[str, Running] = {
    "casd": _casd,
    "casd-tls": _casd_behind_nginx,
    "buildgrid": _buildgrid,
    "nginx": _nginx,
    "nginx-users": _nginx_with_users,
    "file": _disk_cache,
}
