"""Cache servers on the loopback interface, each for as long as a `with` block.

A server is started by a small program that first asks the kernel to kill it when its parent dies:
also a test run that is killed leaves none behind.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

PKI = Path(__file__).absolute().parents[2] / "pki"  # certificates; see the README there

_PATIENCE = 60.0  # seconds; on an idle machine half of one is enough

_STARTER = """\
import ctypes, os, sys
PR_SET_PDEATHSIG, SIGKILL = 1, 9
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
if os.getppid() == int(sys.argv[1]):  # or it died before
    os.execv(sys.argv[2], sys.argv[2:])
"""

_LOCATION = '"^/(?:[A-Za-z0-9_.-]+/)*(?:ac|cas)/[0-9a-f]{64}$"'

# Who may do what, as nginx says it: readers and writers have a name and a password each.
OPEN = ""
ONLY_USERS = """
      auth_basic "cache"; auth_basic_user_file readers;
      limit_except GET { auth_basic "cache"; auth_basic_user_file writers; }"""
ONLY_USERS_WRITE = """
      limit_except GET { auth_basic "cache"; auth_basic_user_file writers; }"""
READER, WRITER = ("reader", "look"), ("writer", "touch")

# Started by root it would give its files to another user, whom a sandbox may not have.
_AS_ROOT = "user root;\n"

_NGINX = """\
daemon off;
master_process off;
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  access_log off; log_not_found off;
  default_type application/octet-stream;
  client_body_temp_path tmp/body; proxy_temp_path tmp/proxy; fastcgi_temp_path tmp/fastcgi;
  uwsgi_temp_path tmp/uwsgi; scgi_temp_path tmp/scgi;
  client_max_body_size 0;
  keepalive_requests 100000;
  root data;
{server}}}
"""

_ENCRYPTED = """
    ssl_certificate {pki}/{certificate}; ssl_certificate_key {pki}/{certificate};"""

_HTTP_CACHE = """\
  server {{
    listen {address}{ssl};{encryption}
    location ~ {location} {{
      dav_methods PUT;
      create_full_put_path on;
      dav_access user:rw group:r all:r;{access}
    }}
    location / {{ return 404; }}
  }}
"""

# Who may do what with a server of the Remote Execution API behind nginx.
ONLY_WRITERS = """
    auth_basic "cache"; auth_basic_user_file writers;
    location / { grpc_pass grpc://reapi; }"""
ONLY_CERTIFIED_READ = f"""
    ssl_client_certificate {PKI}/ca.pem; ssl_verify_client on;
    location ~ "/(?:GetCapabilities|GetActionResult|FindMissingBlobs|BatchReadBlobs|Read)$" {{
      grpc_pass grpc://reapi;
    }}
    location / {{ return 403; }}"""

_REAPI_FRONT = """\
  upstream reapi {{ server {behind}; keepalive 16; }}
  server {{
    listen {address} ssl http2;{encryption}
    grpc_read_timeout 300s; grpc_send_timeout 300s;{access}
  }}
"""

# An instance of BuildGrid at which everybody reads and nobody writes.
READ_ONLY_INSTANCE = "public"

_BUILDGRID = """\
server:
  - !channel
    address: {address}
    insecure-mode: true
monitoring:
  enabled: false
thread-pool-size: 16
instances:
{instances}"""

_BUILDGRID_INSTANCE = """\
  - name: '{name}'
    storages:
      - !disk-storage &blobs{number}
        path: {place}
    caches:
      - !lru-action-cache &entries{number}
        storage: *blobs{number}
        max-cached-refs: 4096
        allow-updates: {writable}
    services:
      - !action-cache
        cache: *entries{number}
      - !cas
        storage: *blobs{number}
        read-only: {readonly}
      - !bytestream
        storage: *blobs{number}
        read-only: {readonly}
"""


@contextmanager
def reserved_address() -> Iterator[str]:
    """HOST:PORT that is kept for servers of tests until the block ends."""
    with socket.socket() as holder:
        # What servers set as well: they may listen where a socket is bound that does not.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{holder.getsockname()[1]}"


@contextmanager
def running_casd(program: Path, directory: Path, address: str | None = None) -> Iterator[str]:
    """A buildbox-casd that keeps what it is given below `directory`/casd; its address, HOST:PORT.

    address: a reserved one to take.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with _reserved(address) as address:
        argv: list[str | Path] = [
            program,
            f"--bind={address}",
            "--quota-high=1G",
            "--log-level=error",
            directory / "casd",
        ]
        with _running(argv, directory, address):
            yield address


@contextmanager
def running_buildgrid(
    program: Path,
    directory: Path,
    instances: Collection[str] = ("",),
    address: str | None = None,
) -> Iterator[str]:
    """A BuildGrid; its address, HOST:PORT.

    Each of its instances is a remote of its own, which keeps blobs below `directory`/`name` (the
    nameless one below `directory`/nameless) and entries in memory. address: a reserved one to take.
    """
    directory.mkdir(parents=True, exist_ok=True)
    parts = (
        _BUILDGRID_INSTANCE.format(
            name=name,
            place=name or "nameless",
            number=number,
            writable=str(name != READ_ONLY_INSTANCE).lower(),
            readonly=str(name == READ_ONLY_INSTANCE).lower(),
        )
        for number, name in enumerate(instances)
    )
    with _reserved(address) as address:
        text = _BUILDGRID.format(address=address, instances="".join(parts))
        (directory / "buildgrid.yml").write_text(text, encoding="utf-8")
        argv: list[str | Path] = [program, "server", "start", "buildgrid.yml"]
        with _running(argv, directory, address):
            yield address


@contextmanager
def running_nginx(
    program: Path,
    directory: Path,
    access: str = OPEN,
    certificate: str | None = None,
    address: str | None = None,
) -> Iterator[str]:
    """An nginx that keeps what it is given below `directory`/data; its address, HOST:PORT.

    certificate: what it shows, of tests/pki; None is without encryption. address: a reserved one
    to take.
    """
    with _reserved(address) as address:
        server = _HTTP_CACHE.format(
            address=address,
            ssl="" if certificate is None else " ssl",
            encryption="" if certificate is None else _encryption(certificate),
            location=_LOCATION,
            access=access,
        )
        with _nginx(program, directory, server, address):
            yield address


@contextmanager
def running_front(
    program: Path, directory: Path, behind: str, access: str, certificate: str = "server.pem"
) -> Iterator[str]:
    """An nginx with encryption, before the REAPI server whose address is `behind`; its own address.

    certificate: what it shows, of tests/pki.
    """
    with reserved_address() as address:
        server = _REAPI_FRONT.format(
            address=address, behind=behind, encryption=_encryption(certificate), access=access
        )
        with _nginx(program, directory, server, address):
            yield address


@contextmanager
def _nginx(program: Path, directory: Path, server: str, address: str) -> Iterator[None]:
    for name in ("data", "tmp"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    (directory / "readers").write_text(_users(READER, WRITER), encoding="utf-8")
    (directory / "writers").write_text(_users(WRITER), encoding="utf-8")
    text = _NGINX.format(server=server)
    if os.geteuid() == 0:
        text = _AS_ROOT + text
    (directory / "nginx.conf").write_text(text, encoding="utf-8")
    argv: list[str | Path] = [program, "-e", "stderr", "-p", directory, "-c", "nginx.conf"]
    with _running(argv, directory, address):
        yield


@contextmanager
def _reserved(address: str | None) -> Iterator[str]:
    if address is not None:
        yield address
        return
    with reserved_address() as address:
        yield address


def _encryption(certificate: str) -> str:
    return _ENCRYPTED.format(pki=PKI, certificate=certificate)


@contextmanager
def _running(argv: list[str | Path], directory: Path, address: str) -> Iterator[None]:
    """A server until the block ends, from when it takes connections."""
    log = directory / "server.log"
    command = [sys.executable, "-I", "-c", _STARTER, str(os.getpid()), *map(str, argv)]
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=directory
        )
    try:
        _wait_until_it_answers(server, address, log)
        yield
    finally:
        server.kill()  # as machines end; and casd takes its time when it is asked to
        server.wait()


def _wait_until_it_answers(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    host, _, port = address.rpartition(":")
    end = time.monotonic() + _PATIENCE
    while server.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    state = "does not answer" if server.poll() is None else f"exited with {server.returncode}"
    raise AssertionError(f"{server.args!r} {state}: {log.read_text(errors='replace')}")


def _users(*pairs: tuple[str, str]) -> str:
    """A password file of nginx."""
    return "".join(f"{name}:{{PLAIN}}{password}\n" for name, password in pairs)
