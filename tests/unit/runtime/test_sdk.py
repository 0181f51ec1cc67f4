from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypto.backend import RuntimeKind
from pypto.runtime.sdk import Sdk, SdkError


def _rewrite(root: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = root / "sdk.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_a_good_sdk_is_read_whole(sdk_root: Path) -> None:
    sdk = Sdk.load(sdk_root)
    assert sdk.root == sdk_root
    assert sdk.revision == "ab" * 32
    target = sdk.target("a2a3sim")
    assert target.incore is not None
    assert target.incore.core_flags["aic"] == ("-DCUBE=1",)
    assert set(target.orchestration) == set(RuntimeKind)
    assert sdk.target("a2a3").incore is None
    assert sdk.limits["a2a3"]["vec_bytes"] == 196608
    assert sdk.dialects["gcc"].link is None
    assert sdk.dialects["zig"].link == ("-DLINKED",)
    assert sdk.dialects["zig"].spelled(["-O1", "-fPIC"]) == ("-O1", "-fpic", "-DPIC", "-DADDED")
    with pytest.raises(TypeError):
        sdk.tools["host_cxx"] = "other"  # type: ignore[index]


def test_an_absent_sdk_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SdkError, match=r"sdk\.json: cannot be read.*reinstall"):
        Sdk.load(tmp_path / "nowhere")


def test_an_absent_target_names_the_others(sdk_root: Path) -> None:
    _rewrite(sdk_root, lambda document: document["targets"].pop("a5"))
    with pytest.raises(SdkError, match=r"no target 'a5'.*a2a3sim"):
        Sdk.load(sdk_root).target("a5")


def _set(*path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


def _drop(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


_INCORE = ("targets", "a2a3sim", "incore")


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        (_set("schema", value=1), "schema"),
        (_set("schema", value=3), "schema"),
        (_set("schema", value=True), "schema"),
        (_set("extra", value=1), "extra"),
        (_drop("limits"), "limits"),
        (_set("revision", value="AB" * 32), "revision"),
        (_set("revision", value="ab"), "revision"),
        (_set("tools", value=["g++"]), "tools"),
        (_set("tools", "host_cxx", value=""), "host_cxx"),
        (_drop("dialects"), "dialects"),
        (_drop("dialects", "gcc"), "dialects lacks 'gcc'"),
        (_drop("dialects", "zig", "adds"), "adds"),
        (_set("dialects", "zig", "more", value=[]), "more"),
        (_set("dialects", "zig", "instead", value=[]), r"dialects\.zig\.instead"),
        (_set("dialects", "zig", "instead", "-O1", value="-O2"), r"dialects\.zig\.instead\.-O1"),
        (_set("dialects", "zig", "link", value="-s"), r"dialects\.zig\.link"),
        (_set("targets", "a4sim", value={}), "a4sim"),
        (_set("targets", "a2a3sim", "arch", value="a5"), "arch"),
        (_set("targets", "a2a3sim", "host", value=1), "host"),
        (_set("targets", "a2a3sim", "color", value=1), "color"),
        (_set("targets", "a2a3sim", "orchestration", "other", value={}), "other"),
        (_set(*_INCORE, "tool", value="clang"), "clang"),
        (_set(*_INCORE, "flags", value="-O2"), "flags"),
        (_set(*_INCORE, "flags", value=["-O2", 3]), r"flags\[1\]"),
        (_set(*_INCORE, "forced_header", value="/abs.hpp"), "forced_header"),
        (_set(*_INCORE, "forced_header", value="../up.hpp"), "forced_header"),
        (_set(*_INCORE, "include_dirs", value=["include/./x"]), "include_dirs"),
        (_set(*_INCORE, "admission", value="ADMITTED"), "admission"),
        (_drop(*_INCORE, "core_flags", "aic"), "aic"),
        (_set("cpu_levels", "x86-64", value="-march=x86-64"), "cpu_levels"),
        (_set("limits", "a2a3", "vec_bytes", value=True), "vec_bytes"),
    ],
)
def test_metadata_that_breaks_its_grammar_names_file_and_culprit(
    sdk_root: Path, change: Callable[[dict[str, Any]], None], culprit: str
) -> None:
    _rewrite(sdk_root, change)
    with pytest.raises(SdkError, match=rf"sdk\.json: .*{culprit}"):
        list(Sdk.load(sdk_root).targets.values())


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": 1, "schema": 1}', "\xff"])
def test_metadata_that_is_no_json_object_is_refused(sdk_root: Path, text: str) -> None:
    (sdk_root / "sdk.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(SdkError, match=r"sdk\.json"):
        Sdk.load(sdk_root)
