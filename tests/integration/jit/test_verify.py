"""``python -m pypto.jit verify`` as its users run it, over entries that were really built."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pypto.jit.surroundings import Surroundings
from pypto.jit.verify_rebuild import Bench, Outcome, Verdict
from pypto.runtime import kernel_config
from pypto.runtime.binary_build import MANIFEST_NAME, build_payload
from pypto.runtime.host import host_compilers
from pypto.runtime.kernel_config import KernelConfig
from pypto_store import ArtifactKey, ArtifactSpec, ArtifactStore, Digest, Published
from pypto_store.layout import resolve
from pypto_store.listing import EntryRow, iterate_entries
from pypto_store.tools.comparison import EvidenceShelf

KERNEL_FILE = "prebuilt/kernel_0.bin"


def verify(
    house: Any, *arguments: str, env: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any], str]:
    """Run the command; gives its status, its report and what it said beside."""
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(house.modules), *house.import_roots]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(house.top),
        **(env or {}),
    }
    result = subprocess.run(
        [sys.executable, "-m", "pypto.jit", "verify", *arguments],
        cwd=house.work,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in result.stderr
    return result.returncode, json.loads(result.stdout or "{}"), result.stderr


def only(report: Mapping[str, Any]) -> dict[str, Any]:
    (entry,) = report["entries"]
    return entry


def everything(house: Any) -> tuple[str, ...]:
    return ("--root", str(house.root), "--all")


def configuration(house: Any, *kernels: str) -> tuple[str, ...]:
    path = house.work / "warm.json"
    document = {
        "schema_version": 1,
        "cache": {"enabled": True, "root": "../cache"},
        "requests": [{"kernel": kernel} for kernel in kernels],
    }
    path.write_text(json.dumps(document))
    return ("--module", "kernels", "--config", str(path))


def rows(house: Any) -> dict[str, EntryRow]:
    return {row.state.value: row for row in iterate_entries(house.root)}


def replace_entry(
    house: Any,
    state: str,
    build: Callable[[Path], None],
    *,
    spec: Callable[[ArtifactSpec], ArtifactSpec] = lambda spec: spec,
    key: ArtifactKey | None = None,
) -> None:
    """Put a valid entry in the place of the one of a state, built by `build`."""
    row = rows(house)[state]
    assert row.manifest is not None
    shutil.rmtree(row.path)
    result = ArtifactStore(house.root).get_or_build(
        key or row.manifest.key, spec(row.manifest.spec), build, private_parent=house.work
    )
    assert isinstance(result, Published)


def built_for(house: Any, level: str, told: str | None = None) -> Callable[[Path], None]:
    """Builds what is in the root for a CPU level, and says that it was for `told`."""
    sources = Path(rows(house)["generated"].path)
    config = KernelConfig.parse((sources / kernel_config.FILE_NAME).read_bytes())
    compiler = host_compilers(cpu_level=level)(config.platform, config.runtime)

    def build(directory: Path) -> None:
        build_payload(sources, compiler, directory)
        manifest = directory / MANIFEST_NAME
        manifest.write_text(manifest.read_text().replace(f'"{level}"', f'"{told or level}"'))

    return build


def copied(row: EntryRow, change: Mapping[str, Callable[[str], str]]) -> Callable[[Path], None]:
    """Builds a copy of an entry's payload with some files changed."""
    source = shutil.copytree(row.path, f"{row.path}.copy")

    def build(directory: Path) -> None:
        shutil.copytree(source, directory, dirs_exist_ok=True)
        (directory / "artifact_manifest.json").unlink()
        for name, edit in change.items():
            (directory / name).write_text(edit((directory / name).read_text()))
        shutil.rmtree(source)

    return build


def test_what_is_in_a_root_is_built_again_to_the_byte(filled: Any) -> None:
    status, report, err = verify(filled, *everything(filled))
    assert (status, report["totals"]["equal"]) == (0, 1), (report, err)
    entry = only(report)
    assert entry["state"] == "ready"
    assert entry["kernel"] == "kernels:kernel"
    assert entry["cpu_level"] == rows(filled)["ready"].spec.cpu_level


def test_a_kernel_and_a_key_choose_entries(filled: Any) -> None:
    key = rows(filled)["ready"].key
    for choice in (("--kernel", "kernel"), ("--kernel", "kernels:kernel"), ("--key", key[:9], key)):
        status, report, _ = verify(filled, "--root", str(filled.root), *choice)
        assert (status, only(report)["key"]) == (0, key)


def test_sources_are_made_from_python_again_where_a_configuration_names_them(filled: Any) -> None:
    filled.write("print('loading')\n" + filled.KERNELS)
    status, report, err = verify(filled, *configuration(filled, "kernel"))
    assert status == 0, (report, err)
    assert [entry["state"] for entry in report["entries"]] == ["generated", "ready"]
    assert report["totals"] == {"equal": 2, "different": 0, "not_comparable": 0}
    assert "loading" in err


def test_nothing_below_the_root_is_written_and_no_lock_is_waited_for(filled: Any) -> None:
    def state() -> dict[str, tuple[int, int, int]]:
        return {
            str(path): (found.st_mtime_ns, found.st_ino, found.st_size)
            for path in (filled.root, *filled.root.rglob("*"))
            for found in (path.lstat(),)
        }

    locks = list(filled.root.rglob("*.lock"))
    assert locks
    held = [path.open("r+") for path in locks]
    for file in held:
        fcntl.flock(file, fcntl.LOCK_EX)
    tree = filled.tree(filled.root)
    manifest = Path(rows(filled)["ready"].path, "artifact_manifest.json")
    os.utime(manifest, ns=(1, manifest.stat().st_mtime_ns))
    before = state()
    for directory in (filled.root, *(path for path in filled.root.rglob("*") if path.is_dir())):
        directory.chmod(0o555)
    inside = {"TMPDIR": str(filled.root / "artifacts")}
    for arguments in (everything(filled), configuration(filled, "kernel")):
        status, report, err = verify(filled, *arguments, env=inside)
        assert status == 0, (report, err)
    assert state() == before
    assert manifest.stat().st_atime_ns == 1, "looking at an entry is no use of it"
    assert filled.tree(filled.root) == tree
    for file in held:
        file.close()


def test_binaries_of_other_flags_are_found_and_named(filled: Any) -> None:
    level = rows(filled)["ready"].spec.cpu_level
    other = "x86-64" if level != "x86-64" else "x86-64-v3"
    replace_entry(filled, "ready", built_for(filled, other, told=level))
    status, report, _ = verify(filled, *everything(filled))
    assert status == 1
    entry = only(report)
    assert entry["outcome"] == "different"
    told = {file["path"]: file for file in entry["files"]}
    assert KERNEL_FILE in told
    assert all(path.startswith("prebuilt/") for path in told)
    assert told[KERNEL_FILE]["expected"] != told[KERNEL_FILE]["actual"]
    assert "section ." in told[KERNEL_FILE]["where"]
    assert ".text" in told[KERNEL_FILE]["where"]


def test_a_level_that_this_processor_may_not_have_is_built_all_the_same(filled: Any) -> None:
    replace_entry(
        filled,
        "ready",
        built_for(filled, "x86-64-v4"),
        spec=lambda spec: ArtifactSpec(
            spec.state, spec.build_kind, spec.required_files, spec.execution, "x86-64-v4"
        ),
    )
    status, report, _ = verify(filled, *everything(filled))
    assert (status, only(report)["outcome"]) == (0, "equal"), report


def test_sources_that_python_no_longer_makes_are_found_and_named(filled: Any) -> None:
    generated = rows(filled)["generated"]
    (name,) = [
        record.path
        for record in generated.manifest.files
        if record.path.endswith(".cpp") and "/aiv/" in record.path
    ]
    build = copied(generated, {name: lambda text: f"// by hand\n{text}"})
    replace_entry(filled, "generated", build)
    status, report, _ = verify(filled, *configuration(filled, "kernel"))
    assert status == 1
    sources, binaries = report["entries"]
    assert (sources["state"], sources["outcome"]) == ("generated", "different")
    (file,) = sources["files"]
    assert file["path"] == name
    assert file["where"].startswith("from line 1: '// by hand' -> ")
    assert binaries["outcome"] == "equal", "a comment compiles to the same binary"


def test_tools_of_another_environment_are_no_difference(filled: Any) -> None:
    status, report, _ = verify(filled, *everything(filled), env={"PYPTO_CACHE_EPOCH": "next"})
    entry = only(report)
    assert (status, entry["outcome"], entry["files"]) == (3, "not_comparable", [])
    assert "epoch: nothing -> next" in entry["reason"]


def test_tools_without_an_identity_compare_nothing(filled: Any) -> None:
    status, report, _ = verify(filled, *everything(filled), env={"PATH": "/nowhere"})
    entry = only(report)
    assert (status, entry["outcome"]) == (3, "not_comparable")
    assert "no identity" in entry["reason"]


def test_another_processor_is_no_difference(filled: Any) -> None:
    ready = rows(filled)["ready"]
    replace_entry(
        filled,
        "ready",
        copied(ready, {}),
        spec=lambda spec: ArtifactSpec(
            spec.state, spec.build_kind, spec.required_files, spec.execution, "armv8-a"
        ),
    )
    status, report, _ = verify(filled, *everything(filled))
    assert (status, only(report)["outcome"]) == (3, "not_comparable")
    assert "armv8-a" in only(report)["reason"]


def test_an_entry_of_a_device_is_no_difference(filled: Any) -> None:
    edit = {kernel_config.FILE_NAME: lambda text: text.replace('"a2a3sim"', '"a2a3"')}
    replace_entry(filled, "generated", copied(rows(filled)["generated"], edit))
    status, report, _ = verify(filled, *everything(filled))
    assert (status, only(report)["outcome"]) == (3, "not_comparable"), report
    assert "device_toolchain" in only(report)["reason"]


@pytest.mark.parametrize("state", ["generated", "ready"])
@pytest.mark.parametrize("damage", ["payload", "manifest", "gone"])
def test_damaged_entries_are_told_and_are_no_difference(
    filled: Any, state: str, damage: str
) -> None:
    slot = Path(rows(filled)[state].path)
    if damage == "gone":
        shutil.rmtree(slot)
    else:
        name = "artifact_manifest.json" if damage == "manifest" else "compiled_meta.json"
        (slot / name).chmod(0o644)
        (slot / name).write_text("{")
    status, report, _ = verify(filled, *everything(filled))
    entry = only(report)
    assert (status, entry["outcome"]) == (3, "not_comparable")
    told = {
        ("gone", "ready"): "no binaries",
        ("gone", "generated"): "not in the root",
    }.get((damage, state), "damaged")
    assert told in entry["reason"]


def test_what_a_configuration_names_and_nobody_built_is_told(filled: Any) -> None:
    filled.write(filled.KERNELS.replace("SCALE = 2.0", "SCALE = 3.0"))
    status, report, _ = verify(filled, *configuration(filled, "kernel"))
    entry = only(report)
    assert (status, entry["outcome"], entry["path"]) == (3, "not_comparable", None)
    assert "no entry of its key" in entry["reason"]


def test_an_empty_root_compares_nothing(house: Any) -> None:
    house.root.mkdir()
    status, report, _ = verify(house, *everything(house))
    assert (status, report["entries"]) == (3, [])


def test_unusable_invocations_exit_with_two_and_say_what_to_do(filled: Any) -> None:
    root = ("--root", str(filled.root))
    for arguments, word in (
        (root, "--all"),
        ((*root, "--all", "--kernel", "kernel"), "--all"),
        ((*root, "--all", "--module", "kernels"), "go together"),
        ((*root, "--kernel", "nothing"), "'nothing'"),
        ((*root, "--key", "XYZ"), "'XYZ'"),
        ((*root, "--key", "0" * 64), "no key starts"),
        ((*root, "--all", "--jobs", "0"), "--jobs"),
        (("--root", str(filled.top / "gone"), "--all"), "gone"),
        (configuration(filled, "nothing"), "nothing"),
    ):
        status, report, err = verify(filled, *arguments)
        assert (status, report) == (2, {}), arguments
        assert word in err, arguments


class SameTools:
    """Stands for a toolchain whose identity is that of an entry, whatever compiles."""

    def __init__(self, environment: Digest, changed: str | None = None) -> None:
        self._environment = environment
        self._changed = changed

    def identity(self, *_: object) -> Any:
        return type("Identity", (), {"digest": self._environment})()

    def changed(self, *_: object) -> str | None:
        return self._changed


def rebuilt(
    house: Any, environ: Mapping[str, str], *, cancel: bool = False, changed: str | None = None
) -> Verdict:
    """What is thought of the READY entry when tools of the same identity build it."""
    found = rows(house)
    tools: Any = SameTools(found["ready"].manifest.key.environment, changed)
    root = str(house.root)
    bench = Bench(
        tools,
        EvidenceShelf(resolve(root)[0]),
        Surroundings(environ, root),
        root,
        os.uname().machine,
    )
    cancelled = threading.Event()
    if cancel:
        cancelled.set()
    return bench.ready(found["ready"], found["generated"], workers=2, cancelled=cancelled)


def with_compiler(directory: Path, script: str) -> dict[str, str]:
    """An environment whose compiler is a script; `$real` in it is the real one."""
    directory.mkdir()
    tool = directory / "g++"
    tool.write_text(f"#!/bin/sh\nreal={shutil.which('g++')}\n{script}\n")
    tool.chmod(0o755)
    return {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"}


RANDOM = "$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')"


def test_a_compiler_that_makes_something_else_each_time_is_found(
    filled: Any, tmp_path: Path
) -> None:
    environ = with_compiler(tmp_path / "bin", f'exec "$real" "$@" -Wl,--defsym=__noise=0x{RANDOM}')
    verdict = rebuilt(filled, environ)
    assert verdict.outcome is Outcome.DIFFERENT
    assert {item.path for item in verdict.differences} == {
        KERNEL_FILE,
        "prebuilt/orchestration.bin",
    }
    assert all(item.where.startswith("first section .") for item in verdict.differences)


def test_a_compiler_that_only_names_its_output_at_random_is_told_as_that(
    filled: Any, tmp_path: Path
) -> None:
    # A Build-ID as long as the real one, so that nothing moves.
    number = RANDOM + RANDOM + "00112233"
    environ = with_compiler(tmp_path / "bin", f'exec "$real" "$@" -Wl,--build-id=0x{number}')
    verdict = rebuilt(filled, environ)
    assert verdict.outcome is Outcome.DIFFERENT
    for item in verdict.differences:
        assert item.where.startswith("only section .note.gnu.build-id"), item


def test_a_compiler_that_does_as_the_real_one_is_equal(filled: Any, tmp_path: Path) -> None:
    environ = with_compiler(tmp_path / "bin", 'exec "$real" "$@"')
    assert rebuilt(filled, environ) == Verdict(Outcome.EQUAL)


def test_what_cannot_be_built_any_more_is_a_difference(filled: Any, tmp_path: Path) -> None:
    verdict = rebuilt(filled, with_compiler(tmp_path / "bin", "echo no such thing >&2; exit 1"))
    assert verdict.outcome is Outcome.DIFFERENT
    assert verdict.differences == ()
    assert verdict.reason is not None
    assert "no such thing" in verdict.reason


def test_an_interrupted_or_impossible_build_is_no_difference(filled: Any, tmp_path: Path) -> None:
    for environ, cancel, word in (
        (with_compiler(tmp_path / "slow", "exec sleep 600"), True, "cancelled"),
        ({**os.environ, "PATH": str(tmp_path)}, False, "not found"),
        ({**os.environ, "TMPDIR": str(tmp_path / "gone")}, False, "gone"),
        (
            {**with_compiler(tmp_path / "hung", "exec sleep 600"), "PYPTO_COMPILER_TIMEOUT": "0.2"},
            False,
            "PYPTO_COMPILER_TIMEOUT",
        ),
    ):
        verdict = rebuilt(filled, environ, cancel=cancel)
        assert verdict.outcome is Outcome.NOT_COMPARABLE, verdict
        assert word in str(verdict.reason)


def test_tools_that_are_not_what_they_say_compare_nothing(filled: Any) -> None:
    verdict = rebuilt(filled, os.environ, changed="runtime: the SDK was changed after it was built")
    assert verdict == Verdict(
        Outcome.NOT_COMPARABLE, "runtime: the SDK was changed after it was built"
    )
