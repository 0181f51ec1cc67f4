"""Which helpers a driver runs, as found without running it, against what it really runs.

Every directory that is searched gets helpers at random, which do nothing but write down which file
they are. The driver is then run in earnest, and what was found has to be what has run.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from compilers import GccInstallation, build_program
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.gcc import Gcc, identify_gcc
from pypto_toolchains.gcc_probe import probe
from pypto_toolchains.records import ProbeRecords

ROUNDS = 25
SEED_VARIABLE = "COMPILER_SEARCH_SEED"  # another one tries other arrangements
NAMES = ("cc1plus", "as", "collect2", "ld", "real-ld", "collect-ld", "specs")
LINKERS = ("ld", "real-ld", "collect-ld")

# Notes which file it is, and makes the output that it was asked for.
FAKE = """
    char self[4096] = "";
    readlink("/proc/self/exe", self, sizeof self - 1);
    FILE *log = fopen("/proc/self/fd/9", "a");
    if (log) { fprintf(log, "%s\\n", self); fclose(log); }
    for (int at = 1; at + 1 < argc; at++)
        if (strcmp(argv[at], "-o") == 0) { FILE *out = fopen(argv[at + 1], "w"); fclose(out); }
    return 0;
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """One random arrangement: where things may be planted, and how the driver is run."""

    installation: GccInstallation
    project: Path
    places: tuple[Path, ...]
    environ: Mapping[str, str]
    options: tuple[str, ...]


def arrange(top: Path, random_: random.Random) -> Setting:
    made = GccInstallation.make(top / "gcc")
    project = top / "project"
    project.mkdir()
    machine, version = made.machine, made.version

    def directory(name: str) -> tuple[str, list[Path]]:
        """A directory as a variable names it, and those that are searched on its account."""
        below = project if random_.random() < 0.4 else top
        path = below / name
        path.mkdir(exist_ok=True)
        spelling = name if below == project else str(path)
        return spelling, [path / machine / version, path / machine, path]

    places = [
        made.programs,
        made.programs.parent,
        made.tools / machine / version,
        made.tools / machine,
        made.tools,
    ]
    environ = {"PATH": os.environ["PATH"]}
    options = []
    for index in range(random_.randrange(3)):
        spelling, searched = directory(f"path{index}")
        environ["PATH"] = f"{spelling}:{environ['PATH']}"
        places.append(searched[-1])
    if random_.random() < 0.3:
        environ["PATH"] = f":{environ['PATH']}"
        places.append(project)
    if random_.random() < 0.5:
        spelled = []
        for index in range(random_.randrange(1, 3)):
            spelling, searched = directory(f"compiler{index}")
            spelled.append(spelling)
            places += searched
        environ["COMPILER_PATH"] = ":".join(spelled)
    if random_.random() < 0.3:
        spelling, searched = directory("library")
        environ["LIBRARY_PATH"] = spelling
        places += searched
    if random_.random() < 0.4:
        spelling, searched = directory("option")
        options += ["-B", spelling + "/"] if random_.random() < 0.5 else [f"-B{spelling}/"]
        places += searched
    if random_.random() < 0.2:
        other = GccInstallation.make(top / "prefix")
        environ["GCC_EXEC_PREFIX"] = f"{top}/prefix/lib/gcc/"
        places += [other.programs, other.tools]
    return Setting(made, project, tuple(places), environ, tuple(options))


def plant(setting: Setting, fake: Path, random_: random.Random, times: int) -> None:
    for _ in range(times):
        place = random_.choice(setting.places)
        target = place / random_.choice(NAMES)
        kind = random_.choice(["file", "file", "file", "link", "plain", "directory", "nothing"])
        if target.is_dir() and not target.is_symlink():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if target.name == "specs":
            target.write_text(f"*made_up_{random_.randrange(100)}:\n\n")
        elif kind == "file":
            os.link(fake, target)
        elif kind == "link":
            target.symlink_to(fake if random_.random() < 0.5 else "nowhere")
        elif kind == "plain":
            shutil.copy(fake, target)
            target.chmod(0o644)
        elif kind == "directory":
            target.mkdir()


def really_run(setting: Setting, top: Path) -> tuple[set[str], set[str]] | None:
    """The planted helpers that ran and the specs files that were read, or None if it failed."""
    log = top / "log"
    log.write_text("")
    with log.open("a") as file:
        done = subprocess.run(
            [
                "/bin/sh", "-c", 'exec 9>>"$0" && exec "$@"', log,
                setting.installation.driver, *setting.options,
                "-v", "-x", "c++", os.devnull, "-shared", "-nostdlib", "-o", top / "out.so",
            ],
            cwd=setting.project, env={**setting.environ, "LC_ALL": "C"},
            stdout=file, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        return None
    read = {
        os.path.realpath(setting.project / line.removeprefix("Reading specs from "))
        for line in done.stderr.splitlines()
        if line.startswith("Reading specs from ")
    }
    return set(log.read_text().split()), read


def compare(setting: Setting, found: Gcc, ran: set[str], read: set[str], fake: Path) -> None:
    """What was found is what ran; where nothing planted ran, nothing planted was found."""
    inode = fake.stat().st_ino
    ours = {
        os.path.realpath(path)
        for name, path in found.helpers.items()
        if os.stat(path).st_ino == inode
        # A planted collect2 starts no linker.
        and not (name == "ld" and os.stat(found.helpers["collect2"]).st_ino == inode)
    }
    assert ours == {os.path.realpath(path) for path in ran}
    assert read <= {os.path.realpath(path) for path, _ in found.report.specs}


def test_what_is_found_is_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = os.environ.get(SEED_VARIABLE, "1")
    compared = planted = probes = 0

    def counted(*arguments: Any) -> object:
        nonlocal probes
        probes += 1
        return probe(*arguments)

    monkeypatch.setattr("pypto_toolchains.gcc.probe", counted)
    fake = build_program(tmp_path / "fake", FAKE)
    for number in range(ROUNDS):
        random_ = random.Random(f"{seed} {number}")
        top = tmp_path / str(number)
        top.mkdir()
        setting = arrange(top, random_)
        records = ProbeRecords(str(top / "tools"))
        plant(setting, fake, random_, random_.randrange(6))
        for _ in range(3):
            found = identify_gcc(
                str(setting.installation.driver),
                setting.options,
                setting.environ,
                str(setting.project),
                records,
            )
            really = really_run(setting, top)
            if really is None:
                continue
            told = f"seed {seed}, round {number}: {setting}"
            if isinstance(found, Unavailable) and "finds no 'collect2'" in found.reason:
                continue  # the driver does with less; we do not
            assert isinstance(found, Gcc), (told, found)
            try:
                compare(setting, found, *really, fake)
            except AssertionError as error:
                raise AssertionError(told) from error
            compared += 1
            planted += bool(really[0])
            if found.record is not None:
                assert records.save(*found.record)
            # The record of the first time serves the next, whatever appears or goes meanwhile.
            plant(setting, fake, random_, random_.randrange(1, 4))
        shutil.rmtree(top)
    assert compared > ROUNDS
    assert planted > ROUNDS // 2
    # Only a specs file asks for another probe.
    assert probes < compared


def test_an_option_that_brings_in_other_tools_is_refused(tmp_path: Path) -> None:
    made = GccInstallation.make(tmp_path / "gcc")
    for option in ("-flto", "-flto=auto", "-specs=x", "--specs=x", "-fplugin=x.so", "-wrapper",
                   "-gsplit-dwarf", "@options", "-Bdir"):  # fmt: skip
        found = identify_gcc(
            str(made.driver), ("-O1", option), {}, str(tmp_path), ProbeRecords(None)
        )
        assert isinstance(found, Unavailable)
        assert option in found.reason


def test_the_linker_that_an_option_names(tmp_path: Path) -> None:
    made = GccInstallation.make(tmp_path / "gcc")
    linker = build_program(made.tools / "ld.gold")
    found = identify_gcc(
        str(made.driver), ("-fuse-ld=gold",), {"PATH": os.environ["PATH"]}, str(tmp_path),
        ProbeRecords(None),
    )  # fmt: skip
    assert isinstance(found, Gcc)
    assert os.path.samefile(found.helpers["ld"], linker)
