from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pypto_toolchains.gcc_probe as gcc_probe
import pytest
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.gcc import Gcc, identify_gcc, select_driver
from pypto_toolchains.records import ProbeRecords, sealed, unsealed

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture
def environ() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}


@pytest.fixture
def records(tmp_path: Path) -> ProbeRecords:
    return ProbeRecords(str(tmp_path / "tools"))


def outcome(
    environ: dict[str, str], root: Path, records: ProbeRecords, *options: str
) -> Gcc | Unavailable:
    return identify_gcc("g++", options, environ, str(root), records)


def capture(environ: dict[str, str], root: Path, records: ProbeRecords, *options: str) -> Gcc:
    found = outcome(environ, root, records, *options)
    assert isinstance(found, Gcc), found
    return found


@pytest.mark.conforms("cache.91")
def test_names_the_driver_and_every_helper(
    environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    facts = dict(capture(environ, tmp_path, records).facts)
    for name in ("cc1plus", "as", "collect2", "ld", "plugin"):
        assert Path(facts[f"{name}.path"]).is_absolute()
        assert facts[f"{name}.native"].startswith(("build-id:", "sha256:"))
    assert facts["driver.path"] == shutil.which("g++", path=environ["PATH"])
    assert facts["driver.executable"] == os.path.realpath(facts["driver.path"])
    assert facts["driver.executed"] == facts["driver.invoked"]
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

    monkeypatch.setattr(gcc_probe, "run_tool", refuse)
    second = capture(environ, tmp_path, records)
    assert second.record is None
    assert second.facts == first.facts


def _whole(fields: dict[str, object]) -> bytes:
    """A record that is whole and still says something impossible."""
    return sealed(json.dumps(fields).encode())


@pytest.mark.parametrize(
    "damage",
    [
        lambda fields: b"{",
        lambda fields: json.dumps(fields).encode(),
        lambda fields: sealed(b"{"),
        lambda fields: sealed(b"[" * 60_000),
        lambda fields: sealed(b"[]"),
        lambda fields: b" " * (1 << 20),
        lambda fields: _whole({**fields, "schema": 3}),
        lambda fields: _whole({**fields, "schema": 2.0}),
        lambda fields: _whole({**fields, "more": 1}),
        lambda fields: _whole({**fields, "programs": []}),
        lambda fields: _whole({**fields, "programs": [1]}),
        lambda fields: _whole({**fields, "programs": ["/a\0b"]}),
        lambda fields: _whole({**fields, "programs": ["/a"] * 300}),
        lambda fields: _whole({**fields, "specs": [["/a"]]}),
        lambda fields: _whole({**fields, "cross": 1}),
        lambda fields: _whole({**fields, "driver": "/other/g++"}),
        lambda fields: _whole({**fields, "executable": "/other/g++"}),
        lambda fields: _whole({name: fields[name] for name in fields if name != "plugin"}),
        lambda fields: _whole(fields).replace(fields["version"].encode(), b"9"),
    ],
)
def test_a_damaged_record_probes_again(
    damage: object, environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    first = capture(environ, tmp_path, records)
    assert first.record is not None
    digest, content = first.record
    assert callable(damage)
    records.save(digest, damage(json.loads(unsealed(content) or b"")))
    again = capture(environ, tmp_path, records)
    assert again.record == first.record
    assert again.facts == first.facts


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
    assert dict(second.facts)["as.path"] == str(early / "as")
    assert second.facts != first.facts


def test_an_unused_directory_on_the_path_changes_nothing(
    environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    before = capture(environ, tmp_path, records).facts
    environ["PATH"] += f":{tmp_path / 'unused'}"
    assert capture(environ, tmp_path, records).facts == before


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
    facts = dict(capture(environ, tmp_path / "project", records).facts)
    assert facts["as.path"] == str(tools / "as")


def test_a_script_under_the_compilers_name_is_no_driver(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    script = tmp_path / "g++"
    script.write_text('#!/bin/sh\nexec /usr/bin/g++ "$@"\n')
    script.chmod(0o755)
    environ["PATH"] = f"{tmp_path}:{environ['PATH']}"
    driver = select_driver("g++", environ, str(tmp_path))
    assert isinstance(driver, Unavailable)
    assert "script" in driver.reason


def test_a_wrapper_under_the_compilers_name_is_not_recognised(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    found = shutil.which("ld")
    assert found is not None
    shutil.copy(found, tmp_path / "ccache")
    (tmp_path / "g++").symlink_to("ccache")
    environ["PATH"] = f"{tmp_path}:{environ['PATH']}"
    driver = select_driver("g++", environ, str(tmp_path))
    assert isinstance(driver, Unavailable)
    assert "wrapper" in driver.reason


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
    found = outcome(environ, tmp_path, records)
    assert isinstance(found, Unavailable)
    assert "wrapper" in found.reason


def test_a_missing_compiler_says_what_to_install(tmp_path: Path) -> None:
    driver = select_driver("g++", {"PATH": str(tmp_path)}, str(tmp_path))
    assert isinstance(driver, Unavailable)
    assert "install it" in driver.reason


def test_a_specs_file_of_the_driver_is_part_of_it(
    environ: dict[str, str], tmp_path: Path, records: ProbeRecords
) -> None:
    libraries = tmp_path / "lib"
    libraries.mkdir()
    environ["LIBRARY_PATH"] = str(libraries)
    before = capture(environ, tmp_path, records)
    (libraries / "specs").write_text("*lib:\n-lstdc++\n\n")
    after = capture(environ, tmp_path, records)
    assert after.facts != before.facts


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
    facts = dict(capture(environ, tmp_path, records).facts)
    assert facts["ld.path"] == str(preferred)
