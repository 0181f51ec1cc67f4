"""What a toolchain directory says is what is in it, and nothing of where it was made."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import toolchain_directory
from toolchain_directory import Tool, assemble

COMPILER, HEADER = b"the compiler", b"a header"

Make = Callable[[str], Path]
Labels = Mapping[str, str]
Places = Mapping[str, Path]
Tools = Sequence[Tool]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_the_inventory_has_a_line_for_each_file_in_order_of_path(make: Make) -> None:
    lines = (make("out") / "inventory.txt").read_text().splitlines()
    assert lines == [
        f"{_sha256(COMPILER)} {len(COMPILER)} x device_toolchain cc/bin/c++",
        f"{_sha256(HEADER)} {len(HEADER)} - device_toolchain cc/include/a/a.h",
        f"{_sha256(HEADER)} {len(HEADER)} - device_toolchain cc/include/b.h",
    ]


def test_every_component_is_known_by_a_digest_of_what_it_is(make: Make) -> None:
    out = make("out")
    inventory = _sha256((out / "inventory.txt").read_bytes())
    document = json.loads((out / "identity.json").read_text())
    assert document == {
        "schema": 1,
        "components": {
            "device_toolchain": {"label": "//x:kernel_compiler", "digest": inventory},
            "pto_isa": {"label": "//x:pto_isa", "digest": "2" * 64},
            "ptoas": {"label": "//x:ptoas", "digest": _sha256(b"the assembler")},
            "runtime": {"label": "//x:sdk", "digest": "1" * 64},
        },
        "tools": {
            "host_cxx": {"argv": ["cc/bin/c++", "-target", "x86_64"], "dialect": "clang"},
            "aarch64_cxx": {"argv": ["cc/bin/c++", "-target", "aarch64"], "dialect": "clang"},
        },
        "inventory": {"path": "inventory.txt", "sha256": inventory},
    }


def test_only_programs_are_executable(make: Make, sources: Places) -> None:
    (sources["cc/include"] / "b.h").chmod(0o777)
    out = make("out")
    assert stat.S_IMODE((out / "cc/bin/c++").stat().st_mode) == 0o755
    assert stat.S_IMODE((out / "cc/include/b.h").stat().st_mode) == 0o644


def test_place_time_and_links_leave_no_trace(
    make: Make, tmp_path: Path, sdk: Path, sources: Places, labels: Labels, tools: Tools
) -> None:
    """As in a sandbox, where every input is a link, or in another output base."""
    farm = tmp_path / "another" / "place"
    for path in [*sdk.rglob("*"), *sources["cc/include"].rglob("*"), sources["cc/bin/c++"]]:
        if path.is_file():
            link = farm / path.relative_to(tmp_path)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    links = {place: farm / path.relative_to(tmp_path) for place, path in sources.items()}
    other = tmp_path / "deep" / "er"
    other.mkdir(parents=True)
    one = make("one")
    for path in sources["cc/include"].rglob("*"):
        os.utime(path, (1, 1))
    labels = dict(reversed(labels.items()))
    assemble(other, farm / "sdk", labels, tools[::-1], dict(reversed(links.items())))
    assert _tree(other) == _tree(one)
    assert not any(path.is_symlink() for path in other.rglob("*"))


def test_a_byte_of_any_file_changes_its_component(make: Make, sdk: Path, sources: Places) -> None:
    def digests(name: str) -> dict[str, str]:
        document = json.loads((make(name) / "identity.json").read_text())
        return {key: value["digest"] for key, value in document["components"].items()}

    before = digests("before")
    (sources["cc/include"] / "a" / "a.h").write_bytes(HEADER + b" ")
    header = digests("header")
    (sdk / "bin" / "ptoas").write_bytes(b"another assembler")
    assembler = digests("assembler")
    assert {key for key in before if before[key] != header[key]} == {"device_toolchain"}
    assert {key for key in before if header[key] != assembler[key]} == {"ptoas"}


def test_a_linked_directory_counts_with_its_files(
    make: Make, tmp_path: Path, sources: Places
) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "c.h").write_bytes(HEADER)
    (sources["cc/include"] / "linked").symlink_to(tmp_path / "linked")
    assert (make("out") / "cc/include/linked/c.h").read_bytes() == HEADER


@pytest.mark.parametrize("place", ["/cc/x", "cc/../x", "x", "cc/a\nb"])
def test_a_place_outside_the_directory_of_a_tool_is_refused(
    tmp_path: Path, sdk: Path, sources: Places, labels: Labels, tools: Tools, place: str
) -> None:
    with pytest.raises(SystemExit, match="is no place for a file of a tool"):
        assemble(tmp_path / "out", sdk, labels, tools, {place: sources["cc/bin/c++"]})


def test_a_tool_without_its_program_is_named(
    tmp_path: Path, sdk: Path, sources: Places, labels: Labels
) -> None:
    tool = Tool("host_cxx", ("cc/bin/g++",), "gcc")
    with pytest.raises(SystemExit, match=r"the program of host_cxx is cc/bin/g\+\+, and no file"):
        assemble(tmp_path / "out", sdk, labels, [tool], sources)


def test_a_component_without_a_label_is_named(
    tmp_path: Path, sdk: Path, labels: Labels, tools: Tools
) -> None:
    labels = {name: label for name, label in labels.items() if name != "ptoas"}
    with pytest.raises(SystemExit, match="no label is given for ptoas"):
        assemble(tmp_path / "out", sdk, labels, tools, {})


def test_the_script_runs_on_a_bare_interpreter(
    make: Make, tmp_path: Path, sdk: Path, sources: Places, labels: Labels, tools: Tools
) -> None:
    parameters = ["--out", str(tmp_path / "by-script"), "--sdk", str(sdk)]
    for name, label in labels.items():
        parameters += ["--label", f"{name}={label}"]
    for tool in tools:
        fields = {"name": tool.name, "argv": tool.argv, "dialect": tool.dialect}
        parameters += ["--tool", json.dumps(fields)]
    for place, source in sources.items():
        parameters += ["--file", f"{place}={source}"]
    arguments = tmp_path / "arguments"
    arguments.write_text("\n".join(parameters))
    script = toolchain_directory.__file__
    subprocess.run([sys.executable, "-I", "-S", "-B", script, f"@{arguments}"], check=True)
    assert _tree(tmp_path / "by-script") == _tree(make("here"))
