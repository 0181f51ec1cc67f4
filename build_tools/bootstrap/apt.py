"""Downloads packages of another Debian suite with a private apt, leaving the host's alone.

The mirror, the proxy and the certificates are those the machine's own apt uses. A made-up status
file tells apt that what is not wanted is installed, so that it leaves it out.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from bootstrap.failure import SetupError
from bootstrap.pins import Package, check, parse_lock
from bootstrap.progress import Progress
from bootstrap.settings import Settings
from bootstrap.tools import run

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TARGET_FORMAT = "$(RELEASE) $(REPO_URI)"
_LEFT_OUT = ("doc", "man", "locale", "maven-repo", "zsh", "bash-completion")

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
    """An apt whose state is below ``state``; every call logs to ``log``.

    ``what`` is what it is here for, and ``remedy`` what else its user can do.
    """

    settings: Settings
    suite: str
    what: str
    remedy: str
    state: Path
    log: Path

    @classmethod
    def open(
        cls, settings: Settings, suite: str, what: str, remedy: str, pretended: Iterable[str]
    ) -> PrivateApt:
        """Write the private configuration; raises SetupError where this is no Debian.

        ``pretended`` are packages that apt takes for installed.
        """
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            raise SetupError(f"there is no apt-get on this machine to set up {what} with", remedy)
        if not _KEYRING.is_file():
            raise SetupError(
                "the Debian archive's keyring is missing",
                f"apt-get install debian-archive-keyring, or {remedy}",
            )
        state = settings.cache / "apt" / f"{suite}-{what.rpartition(' ')[2].lower()}"
        apt = cls(settings, suite, what, remedy, state, settings.log("apt"))
        apt._write_configuration(pretended)
        return apt

    @property
    def archives(self) -> Path:
        """Where downloaded packages are."""
        return self.state / "archives"

    def _write_configuration(self, pretended: Iterable[str]) -> None:
        for directory in ("lists/partial", "archives/partial", "state"):
            (self.state / directory).mkdir(parents=True, exist_ok=True)
        # Proxies and certificates of the host, without its hooks (which are lists, and cannot be
        # emptied from a command line).
        connection = self._ask_host("apt-config", "dump", "Acquire")
        targets = self._ask_host(
            "apt-get", "indextargets", "--format", _TARGET_FORMAT, "Created-By: Packages"
        )
        mirror = _mirror(targets, _codename(), self.remedy)
        (self.state / "sources.list").write_text(
            f"deb [signed-by={_KEYRING}] {mirror} {self.suite} main\n", encoding="utf-8"
        )
        (self.state / "status").write_text(
            "".join(_PRETENDED_ENTRY.format(name=name) for name in pretended),
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
            remedy=self.remedy,
        )

    def _get(self, *arguments: str, doing: str) -> str:
        return run(
            ["apt-get", *arguments],
            environ=self.settings.tool_environ() | {"APT_CONFIG": str(self.state / "apt.conf")},
            log=self.log,
            doing=doing,
            remedy=f"check that its mirror offers Debian {self.suite}, or {self.remedy}",
        )

    def download(self, names: Sequence[str], progress: Progress) -> list[Path]:
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
            f"downloading {self.what} ({missing / 1e6:.0f} MB of Debian packages)", amount
        ):
            self._get(
                "install",
                "--download-only",
                *names,
                doing=f"downloading {self.what} from the Debian mirror",
            )
        return sorted(self.archives.glob("*.deb"))


def checked(files: Iterable[Path], lock: Path, settings: Settings, progress: Progress) -> None:
    """Compare downloaded files with a lock file; raises SetupError as pins.check does."""
    described = [describe(path) for path in files]
    locked = parse_lock(lock.read_text(encoding="utf-8"))
    if moved := check(described, locked, settings.pins):
        progress.note(
            f"Debian has moved on: {len(moved)} of {len(described)} packages have another version"
            " than in the lock file; accepted, since the archive has signed them"
            " (BAZELW_PINS=strict refuses)"
        )


def unpack(packages: Iterable[Path], prefix: Path, settings: Settings) -> None:
    """Lay the files of packages out below ``prefix``; nothing is configured."""
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


def _mirror(targets: str, codename: str, remedy: str) -> str:
    """The repository that serves this machine's own release."""
    pairs = [line.split(None, 1) for line in targets.splitlines() if " " in line]
    for release, uri in pairs:
        if release == codename or (not codename and re.fullmatch(r"[a-z]+", release)):
            return uri.strip()
    raise SetupError("this machine's apt configuration names no Debian mirror", remedy)
