"""What a Python interpreter does before it runs a script, as it tells itself.

Where a launcher's interpreter finds packages depends on its ``pyvenv.cfg``, on ``.pth`` files, on
variables, and on whatever code those start. No outsider can follow that, so the interpreter is
asked: it runs `_PROBE`, which imports nothing of what it is asked about. The answer is kept in a
record, together with a digest over every file that it rests on; it is believed for as long as
those give the same digest again, so that nothing is started to find out that nothing changed.

The limit of this is that hooks are seen as they behave under ``-c``: one that acts only when a
certain program is started is not seen acting.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_store.records import RecordBuilder
from pypto_toolchains.disk import Disk, read_whole
from pypto_toolchains.process import ToolError, run_tool
from pypto_toolchains.records import ProbeRecord, ProbeRecords, sealed, unsealed

# Startup records, on disk in <root>/tools/<digest>.json: a line with the SHA-256 of what follows
# in hex, then (schema 1) {"answer": what `_PROBE` wrote, "observed": sha, "schema": 1}.
RECORD_SCHEMA = 1

# What an interpreter reads of the environment before a script runs. The first ones act through
# what the probe tells; the values of the others count themselves.
PLACING_VARIABLES = (
    "HOME",
    "PYTHONHOME",
    "PYTHONNOUSERSITE",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONSAFEPATH",
    "PYTHONUSERBASE",
)
VALUED_VARIABLES = (
    "PYTHONCASEOK",
    "PYTHONDEVMODE",
    "PYTHONEXECUTABLE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONWARNINGS",
)

_SECONDS = 60.0
_MARK = "pypto-startup "
_BYTECODE = "__pycache__"
_SITE_HOOKS = ("sitecustomize", "usercustomize")
_INITIAL = "__init__"
_MAX_HOOK_BYTES = 1 << 20

# Runs in the launcher's interpreter: where scripts lie, then names to find. What was loaded is
# noted before anything else, and modules are found as a script in that directory would find them.
_PROBE = """\
import sys
loaded = list(sys.modules.items())
search = sys.path[1:] if sys.path[:1] == [""] else sys.path[:]
sys.path[:] = search
import importlib.machinery, importlib.util, json, os, site, sysconfig
if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
    search = sys.path[:] = [sys.argv[1]] + search
library = [os.path.join(sysconfig.get_path(n), "") for n in ("stdlib", "platstdlib")]
library.append(os.path.join(sysconfig.get_config_var("DESTSHARED") or library[0], ""))
def standard(name, file):
    if name.partition(".")[0] not in sys.stdlib_module_names:
        return name == "__main__"
    if file is None:
        return True
    inside = [file[len(d):] for d in library if file.startswith(d)]
    return any(not r.startswith(("site-packages/", "dist-packages/")) for r in inside)
def file_of(module):
    file = getattr(module, "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) else None
def paths_of(found):
    return [os.path.abspath(p) for p in found or ()]
def place(name):
    for other, module in loaded:
        if other == name:
            return [file_of(module), paths_of(getattr(module, "__path__", None))]
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    origin = os.path.abspath(spec.origin) if spec.has_location else None
    return [origin, paths_of(spec.submodule_search_locations)]
sites = site.getsitepackages() + ([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])
print()
print("pypto-startup " + json.dumps({
    "abi": sys.implementation.cache_tag + " " + importlib.machinery.EXTENSION_SUFFIXES[0],
    "library": [os.path.abspath(entry) for entry in library],
    "modules": [
        [name, file_of(module), paths_of(getattr(module, "__path__", None))]
        for name, module in loaded if not standard(name, file_of(module))
    ],
    "places": {name: place(name) for name in sys.argv[2:]},
    "search": [os.path.abspath(entry) for entry in search],
    "sites": [os.path.abspath(entry) for entry in sites],
    "standard": sorted(sys.stdlib_module_names),
    "suffixes": importlib.machinery.all_suffixes(),
    "user": bool(site.ENABLE_USER_SITE),
    "version": sys.version,
}))
"""


class StartupUnknown(Exception):
    """The interpreter does not tell how it starts; the text says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an import finds a package: its file, None for a namespace, and its search path."""

    file: str | None
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Startup:
    """How an interpreter starts. All paths are absolute.

    `search` is the path that a script's imports search, the script's own directory included,
    `library` the directories of the standard library, and `sites` those whose ``.pth`` files are
    obeyed; one of them is in the user's home if `of_user`. A module's file has one of the
    `suffixes`. `standard` are the names of the standard library's modules; `modules` are those that
    are loaded by then and do not belong to it. `places` are those of the names that were asked for,
    None for one that is not found.
    """

    version: str
    abi: str
    suffixes: tuple[str, ...]
    library: tuple[str, ...]
    search: tuple[str, ...]
    sites: tuple[str, ...]
    standard: frozenset[str]
    modules: tuple[tuple[str, Place], ...]
    places: Mapping[str, Place | None]
    of_user: bool


def startup_of(
    interpreter: str,
    scripts: str,
    names: tuple[str, ...],
    environ: Mapping[str, str],
    project_root: str,
    records: ProbeRecords,
    disk: Disk,
) -> tuple[Startup, ProbeRecord | None]:
    """How `interpreter` starts for a script in the directory `scripts`, and where `names` are.

    With it comes the record to keep, if the interpreter had to be asked. Raises StartupUnknown,
    and NotElf, MalformedElf or OSError where a file that takes part cannot be identified.
    """
    digest = _circumstances(interpreter, scripts, names, environ, project_root, disk)
    known = _parse(records.load(digest))
    if known is not None:
        startup, observed = known
        try:
            if observed == _observed(startup, interpreter, disk):
                return startup, None
        except OSError:
            pass  # something it rested on is gone: it is asked again
    answer = _ask(interpreter, scripts, names, environ, project_root)
    startup = _startup(answer)
    content = {
        "answer": answer,
        "observed": _observed(startup, interpreter, disk),
        "schema": RECORD_SCHEMA,
    }
    body = json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")
    return startup, (digest, sealed(body))


def hook_files(startup: Startup, disk: Disk) -> Iterator[str]:
    """The ``.pth`` files that are obeyed, in their order."""
    for site in dict.fromkeys(startup.sites):
        for name in disk.listing(site).split("\0"):
            if name.endswith(".pth"):
                yield os.path.join(site, name)


def archives(startup: Startup, disk: Disk) -> Iterator[str]:
    """The files that are searched as directories are, in their order."""
    for entry in dict.fromkeys((*startup.search, *startup.sites)):
        if disk.exists(entry) and not disk.exists(f"{entry}/."):
            yield entry


def before_the_library(startup: Startup, disk: Disk) -> Iterator[str]:
    """What would be imported in place of a module of the standard library, because it is found
    before that."""
    for entry in startup.search:
        if entry in startup.library:
            return
        if not disk.exists(f"{entry}/."):
            continue
        for name in disk.listing(entry).split("\0"):
            module, dot, rest = name.partition(".")
            if module in startup.standard and (
                dot + rest in startup.suffixes
                if dot
                else any(_initial_files(f"{entry}/{name}", startup.suffixes, disk))
            ):
                yield f"{entry}/{name}"


def _circumstances(
    interpreter: str,
    scripts: str,
    names: tuple[str, ...],
    environ: Mapping[str, str],
    project_root: str,
    disk: Disk,
) -> str:
    record = RecordBuilder("pypto.toolchain.startup/v1")
    record.text("probe", _PROBE)
    record.text("identity", disk.identity(disk.resolved(interpreter)))
    for name, path in (("path", interpreter), ("scripts", scripts), ("cwd", project_root)):
        record.bytes(name, os.fsencode(path))
    record.sequence("names", names)
    for variable in (*PLACING_VARIABLES, *VALUED_VARIABLES):
        value = environ.get(variable)
        record.sequence(variable, () if value is None else (os.fsencode(value),))
    return record.finish().hex


def _observed(startup: Startup, interpreter: str, disk: Disk) -> str:
    """A digest over every file that the answer rests on. OSError where one cannot be read."""
    seen = hashlib.sha256()

    def see(*texts: str) -> None:
        for text in texts:
            told = os.fsencode(text)
            seen.update(b"%d:" % len(told) + told)

    beside = os.path.dirname(interpreter)
    for configuration in (f"{beside}/pyvenv.cfg", f"{os.path.dirname(beside)}/pyvenv.cfg"):
        see(disk.sha256(configuration) if disk.exists(configuration) else "")
    names = sorted({*_SITE_HOOKS, *startup.places, *(name for name, _ in startup.modules)})
    whole = (*startup.library, *startup.sites)
    for archive in archives(startup, disk):
        see(archive, disk.sha256(archive))
    for entry in dict.fromkeys((*startup.search, *startup.sites)):
        # In a user's directory much else may come and go.
        if entry in whole:
            see(entry, *(name for name in disk.listing(entry).split("\0") if name != _BYTECODE))
        see(entry, *_spellings(entry, names, startup.suffixes, disk))
    for file in hook_files(startup, disk):
        see(file, disk.sha256(file))
        see(*_directories_of(file, disk))
    for name, place in startup.modules:
        see(name, "" if place.file is None else disk.sha256(place.file))
    return seen.hexdigest()


def _directories_of(hook: str, disk: Disk) -> Iterator[str]:
    """What a ``.pth`` file adds to the search path: those directories it names that are there."""
    content = read_whole(hook, disk, _MAX_HOOK_BYTES)
    for line in content.removeprefix(b"\xef\xbb\xbf").splitlines():
        named = os.path.join(os.path.dirname(hook), os.fsdecode(line.rstrip()))
        # Lines of another kind do no harm: nothing is there.
        if b"\0" not in line and disk.exists(named):
            yield named


def _spellings(
    entry: str, names: Iterable[str], suffixes: tuple[str, ...], disk: Disk
) -> Iterator[str]:
    """What a directory has under the names of top-level modules.

    A directory is found after all others as long as it has no initial file.
    """
    for name in names:
        if "." not in name:
            for suffix in suffixes:
                if disk.exists(f"{entry}/{name}{suffix}"):
                    yield name + suffix
            if disk.exists(f"{entry}/{name}"):
                yield name
                yield from _initial_files(f"{entry}/{name}", suffixes, disk)


def _initial_files(package: str, suffixes: tuple[str, ...], disk: Disk) -> Iterator[str]:
    """The files of a directory that make it a package, if any does."""
    for suffix in suffixes:
        if disk.exists(f"{package}/{_INITIAL}{suffix}"):
            yield f"{package}/{_INITIAL}{suffix}"


def _ask(
    interpreter: str,
    scripts: str,
    names: tuple[str, ...],
    environ: Mapping[str, str],
    project_root: str,
) -> Any:
    try:
        result = run_tool(
            [interpreter, "-B", "-c", _PROBE, scripts, *names],
            cwd=Path(project_root),
            environ=environ,
            timeout=_SECONDS,
            stage=f"probe {interpreter}",
        )
    except ToolError as error:
        raise StartupUnknown(str(error)) from error
    # Hooks may have written something too.
    told = [line for line in result.stdout.splitlines() if line.startswith(_MARK)]
    if not told:
        raise StartupUnknown(f"{interpreter} does not run what it is given with -c")
    try:
        return json.loads(told[-1].removeprefix(_MARK))
    except ValueError as error:
        raise StartupUnknown(f"{interpreter} answers nonsense: {error}") from error


def _startup(answer: Any) -> Startup:
    """What the probe wrote. Raises StartupUnknown for anything of another form."""
    try:
        return Startup(
            version=_text(answer["version"]),
            abi=_text(answer["abi"]),
            suffixes=tuple(map(_text, answer["suffixes"])),
            library=tuple(map(_text, answer["library"])),
            search=tuple(map(_text, answer["search"])),
            sites=tuple(map(_text, answer["sites"])),
            standard=frozenset(map(_text, answer["standard"])),
            modules=tuple((_text(name), _place(rest)) for name, *rest in answer["modules"]),
            places={
                name: None if place is None else _place(place)
                for name, place in answer["places"].items()
            },
            of_user=bool(answer["user"]),
        )
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise StartupUnknown(f"the interpreter's answer is malformed: {error!r}") from error


def _place(value: Any) -> Place:
    file, paths = value
    return Place(None if file is None else _text(file), tuple(map(_text, paths)))


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{value!r} is no text")
    return value


def _parse(content: bytes | None) -> tuple[Startup, str] | None:
    """The answer and the digest of a record; None for one that is absent or of another form."""
    body = unsealed(content)
    if body is None:
        return None
    try:
        fields = json.loads(body)
        if fields.keys() != {"answer", "observed", "schema"} or fields["schema"] != RECORD_SCHEMA:
            return None
        return _startup(fields["answer"]), fields["observed"]
    except (ValueError, AttributeError, RecursionError, StartupUnknown):
        return None
