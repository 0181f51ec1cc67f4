"""The parser of a toolchain's identity.json."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypto_toolchains.disk import SystemDisk, WatchedDisk
from pypto_toolchains.toolchain_description import (
    DeclaredComponent,
    DeclaredTool,
    DescriptionError,
    parse_description,
    read_description,
)

PATH = "/somewhere/toolchain/identity.json"

DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "components": {
        "device_toolchain": {"label": "//toolchains/zig:kernel", "digest": "a1" * 32},
        "pto_isa": {"label": "//native/isa:headers", "digest": "b2" * 32},
        "ptoas": {"label": "//native/ptoas", "digest": "c3" * 32},
        "runtime": {"label": "//pypto/pypto:_sdk", "digest": "d4" * 32},
    },
    "tools": {
        "host_cxx": {"argv": ["zig/zig", "c++", "-target", "x86_64-linux-gnu"], "dialect": "zig"},
        "aarch64_cxx": {"argv": ["bin/g++"], "dialect": "gcc"},
    },
    "inventory": {"path": "inventory.txt", "sha256": "e5" * 32},
}

Change = Callable[[dict[str, Any]], object]


def put(*path: str, value: object) -> Change:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


def drop(*path: str) -> Change:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


def test_a_description_is_read_whole() -> None:
    found = parse_description(json.dumps(DOCUMENT).encode(), PATH)
    assert found.path == PATH
    assert found.directory == "/somewhere/toolchain"
    assert found.components["runtime"] == DeclaredComponent("//pypto/pypto:_sdk", "d4" * 32)
    assert set(found.components) == {"device_toolchain", "pto_isa", "ptoas", "runtime"}
    assert found.tools["host_cxx"] == DeclaredTool(
        ("zig/zig", "c++", "-target", "x86_64-linux-gnu"), "zig"
    )
    assert list(found.tools) == ["aarch64_cxx", "host_cxx"]
    assert (found.inventory_path, found.inventory_sha256) == ("inventory.txt", "e5" * 32)


def test_nothing_of_it_can_be_changed() -> None:
    found = parse_description(json.dumps(DOCUMENT).encode(), PATH)
    with pytest.raises(TypeError):
        found.tools["host_cxx"] = found.tools["aarch64_cxx"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        found.path = "/other"  # type: ignore[misc]


_ARGV = ("tools", "host_cxx", "argv")


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        (drop("schema"), "lacks 'schema'"),
        (put("schema", value=2), "schema is 2"),
        (put("schema", value=True), "schema must be an integer"),
        (put("schema", value="1"), "schema must be an integer"),
        (put("more", value=1), "unknown 'more'"),
        (drop("components"), "lacks 'components'"),
        (put("components", value=[]), "components must be an object"),
        (drop("components", "ptoas"), "components lacks 'ptoas'"),
        (put("components", "pypto", value={}), "components has unknown 'pypto'"),
        (put("components", "ptoas", value="c3" * 32), r"components\.ptoas must be an object"),
        (drop("components", "ptoas", "label"), r"components\.ptoas lacks 'label'"),
        (put("components", "ptoas", "label", value=""), r"components\.ptoas\.label"),
        (put("components", "ptoas", "more", value=1), r"components\.ptoas has unknown"),
        (drop("components", "runtime", "digest"), r"components\.runtime lacks 'digest'"),
        (put("components", "runtime", "digest", value="D4" * 32), r"components\.runtime\.digest"),
        (put("components", "runtime", "digest", value="d4"), "64 lower-case hex digits"),
        (put("components", "runtime", "digest", value=12), r"components\.runtime\.digest"),
        (drop("tools"), "lacks 'tools'"),
        (put("tools", value={}), "tools lacks 'host_cxx'"),
        (drop("tools", "host_cxx"), "tools lacks 'host_cxx'"),
        (put("tools", "host_cxx", value=["g++"]), r"tools\.host_cxx must be an object"),
        (drop(*_ARGV), r"tools\.host_cxx lacks 'argv'"),
        (put(*_ARGV, value="zig/zig c++"), r"tools\.host_cxx\.argv must be an array"),
        (put(*_ARGV, value=[]), r"tools\.host_cxx\.argv has 0 arguments"),
        (put(*_ARGV, value=["zig/zig"] + ["-g"] * 64), r"tools\.host_cxx\.argv has 65 arguments"),
        (put(*_ARGV, value=["zig/zig", 3]), r"tools\.host_cxx\.argv\[1\]"),
        (put(*_ARGV, value=["/usr/bin/g++"]), r"argv\[0\] must be a normal relative path"),
        (put(*_ARGV, value=["../zig/zig"]), r"argv\[0\] must be a normal relative path"),
        (put(*_ARGV, value=["zig/../../zig"]), r"argv\[0\] must be a normal relative path"),
        (put(*_ARGV, value=["./zig"]), r"argv\[0\] must be a normal relative path"),
        (put(*_ARGV, value=["zig\0"]), r"argv\[0\] must be a normal relative path"),
        (put(*_ARGV, value=["zig/zig", "a\0b"]), r"argv\[1\] must not name a path"),
        (put(*_ARGV, value=["zig/zig", "-I/usr/include"]), r"argv\[1\] must not name a path"),
        (put(*_ARGV, value=["zig/zig", "--sysroot=up/../.."]), r"argv\[1\] must not name a path"),
        (put("tools", "host_cxx", "dialect", value="msvc"), r"dialect is 'msvc'"),
        (put("tools", "host_cxx", "dialect", value=None), r"tools\.host_cxx\.dialect"),
        (put("tools", "host_cxx", "cwd", value="x"), r"tools\.host_cxx has unknown 'cwd'"),
        (drop("inventory", "sha256"), "inventory lacks 'sha256'"),
        (put("inventory", "path", value="/inventory.txt"), r"inventory\.path"),
        (put("inventory", "path", value="../inventory.txt"), r"inventory\.path"),
        (put("inventory", "path", value="a\0b"), r"inventory\.path"),
        (put("inventory", "sha256", value="e5" * 31), r"inventory\.sha256"),
    ],
)
def test_what_breaks_the_grammar_is_named_with_the_file(change: Change, culprit: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    change(document)
    with pytest.raises(DescriptionError, match=rf"^{PATH}: .*{culprit}.*; install the toolchain"):
        parse_description(json.dumps(document).encode(), PATH)


@pytest.mark.parametrize(
    ("data", "culprit"),
    [
        (b"", "not valid JSON"),
        (b"[]", "must be an object"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"1" * 5000, "not valid JSON"),
        (b'{"schema": ' + b"1" * 5000 + b"}", "not valid JSON"),
        (rb'{"schema": 1, "tools": {"\ud800": 1}}', "not valid JSON"),
        (json.dumps(DOCUMENT).replace("inventory.txt", r"\ud800").encode(), "not valid JSON"),
        (b" " * (1 << 18) + b"{}", "larger than 262144 bytes"),
        (json.dumps(DOCUMENT).replace("{", '{"schema": 1, ', 1).encode(), "more than once"),
    ],
)
def test_what_is_no_document_is_refused(data: bytes, culprit: str) -> None:
    with pytest.raises(DescriptionError, match=rf"^{PATH}: .*{culprit}"):
        parse_description(data, PATH)


def test_it_is_read_where_it_is_and_asked_of_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    path.write_text(json.dumps(DOCUMENT))
    disk = WatchedDisk(SystemDisk())
    assert read_description(str(path), disk).path == str(path)
    assert [(kind, name) for kind, name, _ in disk.observations] == [("sha256", str(path))]


def test_one_that_is_a_link_lies_where_the_link_is(tmp_path: Path) -> None:
    (tmp_path / "content").write_text(json.dumps(DOCUMENT))
    (tmp_path / "tree").mkdir()
    link = tmp_path / "tree" / "identity.json"
    link.symlink_to("../content")
    assert read_description(str(link)).directory == str(tmp_path / "tree")


def test_a_change_between_the_looks_is_no_description(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    path.write_text(json.dumps(DOCUMENT))

    class Hasty(SystemDisk):
        def sha256(self, name: str) -> str:
            found = super().sha256(name)
            path.write_text(json.dumps(DOCUMENT) + "\n")
            return found

    with pytest.raises(DescriptionError, match="changed while it was read"):
        read_description(str(path), Hasty())


def _unreadable(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("make", "culprit"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "Is a directory"),
        (_unreadable, "Too many levels of symbolic links"),
    ],
)
def test_what_cannot_be_read_says_what_the_variable_names(
    tmp_path: Path, make: Callable[[Path], object], culprit: str
) -> None:
    path = tmp_path / "identity.json"
    make(path)
    with pytest.raises(DescriptionError, match=rf"cannot read {path}: {culprit}.*PYPTO_TOOLCHAIN"):
        read_description(str(path))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    os.mkfifo(path)
    with pytest.raises(DescriptionError, match="no regular file"):
        read_description(str(path))
