from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import subprocess
from pathlib import Path

import pypto_toolchains.gcc as gcc
import pytest
from pypto_toolchains.evidence import Evidence, Unavailable
from pypto_toolchains.gcc import Capture, capture_gcc, select_driver
from pypto_toolchains.records import ProbeRecords

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture
def environ() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}


@pytest.fixture
def records(tmp_path: Path) -> ProbeRecords:
    return ProbeRecords(str(tmp_path / "tools"))


def capture(environ: dict[str, str], root: Path, records: ProbeRecords) -> Capture:
    return capture_gcc("g++", environ, str(root), records)


def evidence(captured: Capture) -> Evidence:
    assert isinstance(captured.outcome, Evidence), captured.outcome
    return captured.outcome


def test_names_the_driver_and_every_helper(
    environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    facts = dict(evidence(capture(environ, tmp_path, records)).facts)
    for name in ("driver", "cc1plus", "as", "collect2", "ld"):
        assert Path(facts[f"{name}.path"]).is_absolute()
        assert facts[f"{name}.native"].startswith(("build-id:", "sha256:"))
    assert facts["driver.version"]


def test_a_kept_record_answers_without_starting_anything(
    environ: dict[str, str],
    tmp_path: Path,
    records: ProbeRecords,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = capture(environ, tmp_path, records)
    assert first.record is not None
    assert records.save(*first.record)

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a subprocess was started")

    monkeypatch.setattr(gcc, "run_tool", refuse)
    second = capture(environ, tmp_path, records)
    assert second.record is None
    assert evidence(second).digest == evidence(first).digest


def _checked(fields: dict[str, object]) -> bytes:
    """A record that is whole and still says something impossible."""
    plain = {name: value for name, value in fields.items() if name != "sha256"}
    encoded = json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()
    return json.dumps({**plain, "sha256": hashlib.sha256(encoded).hexdigest()}).encode()


@pytest.mark.parametrize(
    "damage",
    [
        lambda fields: b"{",
        lambda fields: b"[" * 60_000,
        lambda fields: b"[]",
        lambda fields: b" " * (1 << 20),
        lambda fields: _checked({**fields, "schema": 2}),
        lambda fields: _checked({**fields, "schema": True}),
        lambda fields: _checked({**fields, "more": 1}),
        lambda fields: _checked({**fields, "programs": []}),
        lambda fields: _checked({**fields, "programs": [1]}),
        lambda fields: _checked({**fields, "driver": "/other/g++"}),
        lambda fields: json.dumps({**fields, "version": "9" + fields["version"]}).encode(),
        lambda fields: json.dumps({**fields, "sha256": None}).encode(),
        lambda fields: json.dumps({**fields, "version": math.nan}).encode(),
    ],
)
def test_a_damaged_record_probes_again(
    damage: object, environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    first = capture(environ, tmp_path, records)
    assert first.record is not None
    digest, content = first.record
    assert callable(damage)
    records.save(digest, damage(json.loads(content)))
    again = capture(environ, tmp_path, records)
    assert again.record == first.record
    assert evidence(again).digest == evidence(first).digest


def test_a_pipe_in_the_place_of_a_record_is_not_waited_for(
    environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    first = capture(environ, tmp_path, records)
    assert first.record is not None
    (tmp_path / "tools").mkdir()
    os.mkfifo(tmp_path / "tools" / f"{first.record[0]}.json")
    again = capture(environ, tmp_path, records)
    assert again.record == first.record
    assert records.save(*first.record)
    assert capture(environ, tmp_path, records).record is None


def test_a_helper_that_appears_earlier_on_the_path_is_noticed(
    environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    early = tmp_path / "early"
    early.mkdir()
    environ["PATH"] = f"{early}:{environ['PATH']}"
    first = capture(environ, tmp_path, records)
    assert first.record is not None
    records.save(*first.record)
    found = shutil.which("ld")
    assert found is not None
    shutil.copy(found, early / "as")
    second = capture(environ, tmp_path, records)
    assert dict(evidence(second).facts)["as.path"] == str(early / "as")
    assert evidence(second).digest != evidence(first).digest


def test_an_unused_directory_on_the_path_changes_nothing(
    environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    before = evidence(capture(environ, tmp_path, records)).digest
    environ["PATH"] += f":{tmp_path / 'unused'}"
    assert evidence(capture(environ, tmp_path, records)).digest == before


def test_a_relative_entry_is_taken_from_the_project_root(
    environ: dict[str, str],
    tmp_path: Path,
    records: ProbeRecords,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tools = tmp_path / "project" / "bin"
    tools.mkdir(parents=True)
    found = shutil.which("as")
    assert found is not None
    shutil.copy(found, tools / "as")
    environ["PATH"] = "bin:" + environ["PATH"]
    monkeypatch.chdir(tmp_path)
    facts = dict(evidence(capture(environ, tmp_path / "project", records)).facts)
    assert facts["as.path"] == str(tools / "as")


def test_a_script_under_the_compilers_name_is_no_driver(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    script = tmp_path / "g++"
    script.write_text('#!/bin/sh\nexec /usr/bin/g++ "$@"\n')
    script.chmod(0o755)
    environ["PATH"] = f"{tmp_path}:{environ['PATH']}"
    outcome = select_driver("g++", environ, str(tmp_path))
    assert isinstance(outcome, Unavailable)
    assert "script" in outcome.reason


def test_a_wrapper_under_the_compilers_name_is_not_recognised(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    found = shutil.which("ld")
    assert found is not None
    shutil.copy(found, tmp_path / "ccache")
    (tmp_path / "g++").symlink_to("ccache")
    environ["PATH"] = f"{tmp_path}:{environ['PATH']}"
    outcome = select_driver("g++", environ, str(tmp_path))
    assert isinstance(outcome, Unavailable)
    assert "wrapper" in outcome.reason


def test_a_native_wrapper_under_the_compilers_name_is_found_out(
    tmp_path: Path, environ: dict[str, str], records: ProbeRecords
) -> None:
    # Such as a compiler cache that was copied over the name instead of linked to it.
    real = shutil.which("g++", path=environ["PATH"])
    source = tmp_path / "wrapper.c"
    source.write_text(
        "#include <unistd.h>\nint main(int n, char **v) "
        f'{{ v[0] = "{real}"; return execv(v[0], v); }}\n'
    )
    subprocess.run([str(real), "-x", "c", str(source), "-o", str(tmp_path / "g++")], check=True)
    environ["PATH"] = f"{tmp_path}:{environ['PATH']}"
    outcome = capture(environ, tmp_path, records).outcome
    assert isinstance(outcome, Unavailable)
    assert "wrapper" in outcome.reason


def test_a_missing_compiler_says_what_to_install(tmp_path: Path) -> None:
    outcome = select_driver("g++", {"PATH": str(tmp_path)}, str(tmp_path))
    assert isinstance(outcome, Unavailable)
    assert "install g++" in outcome.reason


def test_a_specs_file_of_the_driver_is_part_of_it(
    environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    libraries = tmp_path / "lib"
    libraries.mkdir()
    environ["LIBRARY_PATH"] = str(libraries)
    before = evidence(capture(environ, tmp_path, records))
    (libraries / "specs").write_text("*lib:\n-lstdc++\n\n")
    after = evidence(capture(environ, tmp_path, records))
    assert before.digest != after.digest


def test_a_record_made_with_relative_search_paths_serves_its_directory_alone(
    environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    def record_name(search: str, root: str) -> str:
        (tmp_path / root).mkdir(exist_ok=True)
        made = capture({**environ, "COMPILER_PATH": search}, tmp_path / root, records).record
        assert made is not None
        return made[0]

    assert record_name("bin", "one") != record_name("bin", "two")
    assert record_name("/nowhere", "one") == record_name("/nowhere", "two")


def test_the_linker_under_its_preferred_name_is_the_one_named(
    environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    linker = shutil.which("ld", path=environ["PATH"])
    assert linker is not None
    preferred = tmp_path / "bin" / "real-ld"
    preferred.parent.mkdir()
    shutil.copy(linker, preferred)
    environ["COMPILER_PATH"] = str(preferred.parent)
    facts = dict(evidence(capture(environ, tmp_path, records)).facts)
    assert facts["ld.path"] == str(preferred)
