"""The toolchain directory that Bazel makes of zig is what its identity says, and says no place."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    not {"PYPTO_TEST_TOOLCHAIN", "PYPTO_TEST_SDK"} <= os.environ.keys(),
    reason="Bazel's outputs are not here: bazelw test //tests/hermetic/zig/...",
)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@pytest.fixture(scope="module")
def toolchain() -> Path:
    return Path(os.environ["PYPTO_TEST_TOOLCHAIN"])


@pytest.fixture(scope="module")
def identity(toolchain: Path) -> Any:
    return json.loads((toolchain / "identity.json").read_text())


@pytest.fixture(scope="module")
def inventory(toolchain: Path) -> dict[str, tuple[str, int, str, str]]:
    """(sha256, size, mark, component) by path."""
    found = {}
    for line in (toolchain / "inventory.txt").read_text().splitlines():
        sha256, size, mark, component, path = line.split(" ", 4)
        found[path] = sha256, int(size), mark, component
    return found


def test_the_inventory_is_every_file_and_its_digest(
    toolchain: Path, inventory: dict[str, tuple[str, int, str, str]]
) -> None:
    there = {
        (Path(parent) / name).relative_to(toolchain).as_posix()
        for parent, _, names in os.walk(toolchain, followlinks=True)
        for name in names
    }
    assert there - inventory.keys() == {"identity.json", "inventory.txt"}
    assert inventory.keys() <= there
    wrong = [
        path
        for path, (sha256, size, _, _) in inventory.items()
        if (toolchain / path).stat().st_size != size or _sha256(toolchain / path) != sha256
    ]
    assert wrong == []
    assert list(inventory) == sorted(inventory, key=os.fsencode)


def test_the_compiler_is_known_by_its_inventory(
    toolchain: Path, identity: Any, inventory: dict[str, tuple[str, int, str, str]]
) -> None:
    assert {component for _, _, _, component in inventory.values()} == {"device_toolchain"}
    assert [path for path, (_, _, mark, _) in inventory.items() if mark == "x"] == ["zig/zig"]
    digest = _sha256(toolchain / "inventory.txt")
    assert identity["components"]["device_toolchain"]["digest"] == digest
    assert identity["inventory"] == {"path": "inventory.txt", "sha256": digest}


def test_the_rest_is_known_by_the_sdk_of_the_same_build(identity: Any) -> None:
    sdk = Path(os.environ["PYPTO_TEST_SDK"])
    digests = {name: value["digest"] for name, value in identity["components"].items()}
    assert digests["runtime"] == json.loads((sdk / "sdk.json").read_text())["revision"]
    assert digests["pto_isa"] == (sdk / "pto_isa.pin").read_text().strip()
    assert digests["ptoas"] == _sha256(sdk / "bin" / "ptoas")


def test_components_name_the_targets_that_declare_them(identity: Any) -> None:
    labels = {name: value["label"] for name, value in identity["components"].items()}
    assert labels == {
        "device_toolchain": "//toolchains/zig:kernel_compiler",
        "pto_isa": "//toolchains:pto_isa",
        "ptoas": "//toolchains:ptoas",
        "runtime": "//pypto/pypto:_sdk",
    }


def test_nothing_says_where_it_was_made(toolchain: Path) -> None:
    for name in ("identity.json", "inventory.txt"):
        text = (toolchain / name).read_text()
        # A path that starts at the root, behind a quote, a space or an equals sign; labels have two
        # slashes.
        assert re.findall(r"""(?:^|[\s"'=])/(?!/)\S*""", text) == []
        for part in ("bazel-out", "execroot"):
            assert part not in text


def test_the_tools_are_paths_of_the_inventory(
    identity: Any, inventory: dict[str, tuple[str, int, str, str]]
) -> None:
    assert set(identity["tools"]) == {"host_cxx", "aarch64_cxx"}
    for tool in identity["tools"].values():
        assert tool["argv"][0] in inventory
        assert tool["dialect"] == "zig"
