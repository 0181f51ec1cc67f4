"""Downloads packages of another Debian suite with a private apt, leaving the host's alone.

The mirror, the proxy and the certificates are those the machine's own apt uses. A made-up status
file tells apt that compilers, the JDK and the like are installed, so that it leaves them out.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from bootstrap.failure import SetupError
from bootstrap.pins import Package
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.tools import run

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TARGET_FORMAT = "$(RELEASE) $(REPO_URI)"
_USE_OWN_BAZEL = "put a Bazel 7 or bazelisk on PATH, or set BAZELW_BAZEL to one"

# Told to apt as installed: what Bazel's server never loads, and what a host with g++ has.
_PRETENDED = (
    "build-essential ca-certificates-java debconf default-jdk-headless default-jre-headless"
    " g++ gcc java-common java-runtime-headless libasound2t64 libavahi-client3 libcups2t64"
    " libfontconfig1 libfreetype6 libharfbuzz0b libjacoco-java libjarjar-java libjpeg62-turbo"
    " libjs-jquery liblcms2-2 libnss3 libpcsclite1 node-core-js node-html5shiv"
    " openjdk-25-jdk-headless perl perl-base protobuf-compiler-grpc-java-plugin python3 unzip"
    " zlib1g-dev"
).split()
_PRETENDED_ENTRY = """\
Package: {name}
Status: install ok installed
Architecture: amd64
Multi-Arch: foreign
Version: 9999:1
Maintainer: none
Description: left out

"""


@dataclass(frozen=True, slots=True)
class PrivateApt:
    """An apt whose state is below ``state``; every call logs to ``log``."""

    settings: Settings
    suite: str
    state: Path
    log: Path

    @classmethod
    def open(cls, settings: Settings, suite: str) -> PrivateApt:
        """Write the private configuration; raises SetupError where this is no Debian."""
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            raise SetupError(
                "there is no apt-get on this machine to set up Bazel with", _USE_OWN_BAZEL
            )
        if not _KEYRING.is_file():
            raise SetupError(
                "the Debian archive's keyring is missing",
                f"apt-get install debian-archive-keyring, or {_USE_OWN_BAZEL}",
            )
        apt = cls(settings, suite, settings.cache / "apt" / suite, settings.log("apt"))
        apt._write_configuration()
        return apt

    @property
    def archives(self) -> Path:
        """Where downloaded packages are."""
        return self.state / "archives"

    def _write_configuration(self) -> None:
        for directory in ("lists/partial", "archives/partial", "state"):
            (self.state / directory).mkdir(parents=True, exist_ok=True)
        # Proxies and certificates of the host, without its hooks (which are lists, and cannot be
        # emptied from a command line).
        connection = self._ask_host("apt-config", "dump", "Acquire")
        targets = self._ask_host(
            "apt-get", "indextargets", "--format", _TARGET_FORMAT, "Created-By: Packages"
        )
        (self.state / "sources.list").write_text(
            f"deb [signed-by={_KEYRING}] {_mirror(targets, _codename())} {self.suite} main\n",
            encoding="utf-8",
        )
        (self.state / "status").write_text(
            "".join(_PRETENDED_ENTRY.format(name=name) for name in _PRETENDED),
            encoding="utf-8",
        )
        own = {
            "Dir::Etc::Main": "/dev/null",
            "Dir::Etc::Parts": "/dev/null",
            "Dir::Etc::SourceList": self.state / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "Dir::State": self.state / "state",
            "Dir::State::Lists": self.state / "lists",
            "Dir::State::Status": self.state / "status",
            "Dir::Cache": self.state,
            "Dir::Cache::Archives": self.archives,
            "APT::Architecture": "amd64",
            "APT::Install-Recommends": "false",
            "APT::Get::Assume-Yes": "true",
            "APT::Get::AllowUnauthenticated": "false",
            "APT::Sandbox::User": "root",
            "Acquire::AllowInsecureRepositories": "false",
            "Acquire::AllowDowngradeToInsecureRepositories": "false",
            # A frozen mirror serves a Release file past its date; its signature is still checked.
            "Acquire::Check-Valid-Until": "false",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            # One bazelw at a time is here: its own lock is held.
            "Debug::NoLocking": "true",
        }
        kept = [
            line
            for line in connection.splitlines()
            if line.startswith(("Acquire::http", "Acquire::Force"))
        ]
        lines = [f'{key} "{value}";' for key, value in own.items()]
        (self.state / "apt.conf").write_text("\n".join([*kept, *lines, ""]), encoding="utf-8")

    def _ask_host(self, *argv: str) -> str:
        return run(
            argv,
            environ=self.settings.tool_environ(),
            log=self.log,
            doing="reading apt's configuration",
            remedy=_USE_OWN_BAZEL,
        )

    def _get(self, *arguments: str, doing: str) -> str:
        return run(
            ["apt-get", *arguments],
            environ=self.settings.tool_environ() | {"APT_CONFIG": str(self.state / "apt.conf")},
            log=self.log,
            doing=doing,
            remedy=f"check that its mirror offers Debian {self.suite}, or {_USE_OWN_BAZEL}",
        )

    def download(self, names: list[str], progress: Progress) -> list[Path]:
        """Fetch ``names`` and what they depend on; files that are there are not fetched again."""
        with progress.step(f"reading the package list of Debian {self.suite}"):
            self._get("update", doing=f"reading the package list of Debian {self.suite}")
        plan = self._get(
            "install", "--print-uris", "--quiet=2", *names, doing="planning the download"
        )
        wanted = [line.split() for line in plan.splitlines() if line.startswith("'")]
        missing = sum(int(size) for _, _, size, *_ in wanted)

        def amount() -> str:
            there = sum(entry.stat().st_size for entry in self.archives.rglob("*.deb*"))
            return f"{there / 1e6:.0f} MB on disk"

        with progress.step(
            f"downloading Bazel ({missing / 1e6:.0f} MB of Debian packages)", amount
        ):
            self._get(
                "install",
                "--download-only",
                *names,
                doing="downloading Bazel from the Debian mirror",
            )
        return sorted(self.archives.glob("*.deb"))


def describe(path: Path) -> Package:
    """Name, version, size and digest of a package file, by its name and bytes."""
    name, version, _ = unquote(path.name).removesuffix(".deb").split("_")
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return Package(name, version, path.stat().st_size, sha256)


def _codename() -> str:
    release = Path("/etc/os-release")
    text = release.read_text(encoding="utf-8") if release.is_file() else ""
    found = re.search(r'^VERSION_CODENAME="?([a-z]+)', text, re.MULTILINE)
    return found[1] if found else ""


def _mirror(targets: str, codename: str) -> str:
    """The repository that serves this machine's own release."""
    pairs = [line.split(None, 1) for line in targets.splitlines() if " " in line]
    for release, uri in pairs:
        if release == codename or (not codename and re.fullmatch(r"[a-z]+", release)):
            return uri.strip()
    raise SetupError("this machine's apt configuration names no Debian mirror", _USE_OWN_BAZEL)
