"""Compilers that a toolchain's description declares: their commands and their environment."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypto.backend import RuntimeKind
from pypto.runtime.errors import ToolchainUnavailable
from pypto.runtime.host import host_compilers
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.sdk import Sdk
from pypto.runtime.tool_commands import DeclaredTools
from pypto_toolchains.process import ToolFailed
from pypto_toolchains.toolchain_description import (
    COMPONENTS,
    DeclaredComponent,
    DeclaredTool,
    ToolchainDescription,
)

RING = "tensormap_and_ringbuffer"
FAKE_ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00" + bytes(64)
ZIG = DeclaredTool(("tools-zig/zig", "c++", "-target", "here"), "zig")

# What a user's shell may say; none of it may reach a declared tool.
SHELL = {
    "CPATH": "/opt/include",
    "HOME": "/home/user",
    "LANG": "de_DE.UTF-8",
    "LD_PRELOAD": "",
    "PATH": "/home/user/bin",
    "SOURCE_DATE_EPOCH": "1",
    "XDG_CACHE_HOME": "/home/user/.cache",
}

Make = Callable[..., KernelCompiler]
Fake = Callable[..., Any]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "tree" / "f.cpp"
    path.parent.mkdir()
    path.write_text("")
    return path


def described(directory: Path, **tools: DeclaredTool) -> ToolchainDescription:
    components = {name: DeclaredComponent(f"//:{name}", "ab" * 32) for name in COMPONENTS}
    path = str(directory / "identity.json")
    return ToolchainDescription(path, components, tools, "inventory.txt", "cd" * 32)


@pytest.fixture
def make(sdk_root: Path, tmp_path: Path) -> Make:
    def build(
        platform: str = "a2a3sim", *, description: ToolchainDescription | None = None
    ) -> KernelCompiler:
        sdk = Sdk.load(sdk_root)
        description = described(tmp_path, host_cxx=ZIG) if description is None else description
        return KernelCompiler(
            platform,
            sdk=sdk,
            runtime_name=RING,
            cpu_level="x86-64-v3",
            environ={**SHELL, "TMPDIR": str(tmp_path)},
            tools=DeclaredTools(sdk, description),
        )

    return build


def test_it_runs_as_declared_and_without_the_users_environment(
    make: Make, source: Path, sdk_root: Path, fake_compiler: Fake, tmp_path: Path
) -> None:
    fake = fake_compiler(name="zig", output=FAKE_ELF)
    assert make().compile_incore(source, "aiv") == FAKE_ELF
    for call in fake.calls():
        assert call["program"] == str(tmp_path / "tools-zig/zig")
        assert call["argv"][:3] == ["c++", "-target", "here"]
        assert call["cwd"] == str(sdk_root)
        scratch = call["env"]["TMPDIR"]
        assert Path(scratch).parent == tmp_path
        assert call["env"] == {
            "HOME": scratch,
            "LC_ALL": "C",
            "PATH": str(tmp_path / "tools-zig"),
            "TMPDIR": scratch,
            "XDG_CACHE_HOME": scratch,
        }


def test_a_dialect_with_a_link_of_its_own_compiles_each_source_first(
    make: Make, source: Path, fake_compiler: Fake
) -> None:
    fake = fake_compiler(name="zig", output=FAKE_ELF)
    assert make().compile_orchestration(source) == FAKE_ELF
    first, second, link = (call["argv"] for call in fake.calls())
    assert first[first.index("-c") + 1] == str(source)
    assert second[second.index("-c") + 1] == "src/support.cpp"
    made = [call[call.index("-o") + 1] for call in (first, second)]
    assert len(set(made)) == 2
    assert link[link.index("-DLINKED") :][1:3] == made
    assert "-c" not in link
    assert "-DLINKED" not in first
    for arguments in (first, second, link):
        assert {"-fpic", "-DPIC", "-DADDED", "-DLEVEL=3", "-shared"} < set(arguments)
        assert not {"-fPIC", "-std=c++17"} & set(arguments)


def test_a_driver_of_the_sdks_own_dialect_does_it_in_one_command(
    make: Make, source: Path, fake_compiler: Fake, tmp_path: Path
) -> None:
    fake = fake_compiler(name="g++", output=FAKE_ELF)
    gcc = DeclaredTool(("tools-g++/g++",), "gcc")
    make(description=described(tmp_path, host_cxx=gcc)).compile_orchestration(source)
    (call,) = fake.calls()
    assert {"-fPIC", "-std=c++17", "src/support.cpp"} < set(call["argv"])
    assert "-c" not in call["argv"]


def test_where_the_toolchain_lies_is_mapped_away(
    make: Make, source: Path, fake_compiler: Fake, tmp_path: Path
) -> None:
    fake = fake_compiler(name="zig", output=FAKE_ELF)
    farm = tmp_path / "farm"
    (farm / "tools-zig").mkdir(parents=True)
    (farm / "tools-zig/zig").symlink_to(tmp_path / "tools-zig/zig")
    make(description=described(farm, host_cxx=ZIG)).compile_incore(source, "aiv")
    for call in fake.calls():
        assert f"-ffile-prefix-map={farm}=toolchain" in call["argv"]
        assert f"-ffile-prefix-map={tmp_path}/tools-zig=toolchain/tools-zig" in call["argv"]


def test_a_step_that_fails_is_the_last_and_leaves_nothing(
    make: Make, source: Path, fake_compiler: Fake, tmp_path: Path
) -> None:
    fake = fake_compiler("sys.exit('src/support.cpp' in argv)", name="zig", output=FAKE_ELF)
    with pytest.raises(ToolFailed, match=r"compiling orchestration f\.cpp"):
        make().compile_orchestration(source)
    assert len(fake.calls()) == 2
    assert not list(tmp_path.glob("pypto-build-*"))


@pytest.mark.parametrize(
    ("tools", "complaint"),
    [
        ({"other_cxx": ZIG}, r"declares no tool 'host_cxx', only other_cxx"),
        (
            {"host_cxx": dataclasses.replace(ZIG, dialect="clang")},
            r"dialect 'clang', which the SDK at .* does not know",
        ),
        ({"host_cxx": ZIG}, r"tools-zig/zig, the 'host_cxx' of .*, is no executable file"),
    ],
)
def test_a_toolchain_that_cannot_compile_says_why(
    make: Make, source: Path, tmp_path: Path, tools: dict[str, DeclaredTool], complaint: str
) -> None:
    path = str(tmp_path / "identity.json")
    with pytest.raises(ToolchainUnavailable, match=complaint) as caught:
        make(description=described(tmp_path, **tools)).compile_incore(source, "aiv")
    assert path in str(caught.value)


def test_what_is_declared_decides_what_may_be_used_again(
    make: Make, fake_compiler: Fake, tmp_path: Path
) -> None:
    fake_compiler(name="zig", output=FAKE_ELF)
    base = make().reuse_context()
    assert base is not None
    assert not [name for name in base if name.startswith("environment.")]
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "tools-zig").symlink_to(tmp_path / "tools-zig")
    assert make(description=described(moved, host_cxx=ZIG)).reuse_context() == base
    for other in (
        dataclasses.replace(ZIG, argv=(*ZIG.argv, "-g")),
        dataclasses.replace(ZIG, dialect="gcc"),
    ):
        changed = make(description=described(tmp_path, host_cxx=other)).reuse_context()
        assert changed != base
    rebuilt = described(tmp_path, host_cxx=ZIG)
    components = {
        **rebuilt.components,
        "device_toolchain": DeclaredComponent("//:device_toolchain", "ef" * 32),
    }
    rebuilt = dataclasses.replace(rebuilt, components=components)
    assert make(description=rebuilt).reuse_context() != base


def _environ(path: Path | str) -> dict[str, str]:
    return {"PYPTO_CACHE_IDENTITY": "hermetic", "PYPTO_TOOLCHAIN": str(path)}


def _compiler(environ: dict[str, str]) -> KernelCompiler:
    return host_compilers(environ=environ)("a2a3sim", RuntimeKind(RING))


def test_the_environment_selects_declared_tools(
    source: Path, fake_compiler: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = fake_compiler(name="zig", output=FAKE_ELF)
    fields = {"label": "//:x", "digest": "ab" * 32}
    document = {
        "schema": 1,
        "components": dict.fromkeys(COMPONENTS, fields),
        "tools": {"host_cxx": {"argv": ["tools-zig/zig"], "dialect": "zig"}},
        "inventory": {"path": "inventory.txt", "sha256": "ab" * 32},
    }
    (tmp_path / "identity.json").write_text(json.dumps(document))
    monkeypatch.chdir(tmp_path)
    for spelling in (tmp_path / "identity.json", "identity.json"):
        assert _compiler(_environ(spelling)).compile_incore(source, "aiv") == FAKE_ELF
    assert len(fake.calls()) == 4


def test_a_toolchain_that_is_not_there_is_no_reason_to_use_another(tmp_path: Path) -> None:
    with pytest.raises(ToolchainUnavailable, match=r"nowhere/identity\.json: No such file"):
        _compiler({**_environ(tmp_path / "nowhere/identity.json"), "PATH": os.environ["PATH"]})


def test_policy_and_toolchain_belong_together() -> None:
    with pytest.raises(ValueError, match="hermetic needs PYPTO_TOOLCHAIN"):
        _compiler(_environ(""))
    with pytest.raises(ValueError, match="PYPTO_TOOLCHAIN is set but"):
        _compiler({"PYPTO_TOOLCHAIN": "/opt/identity.json"})
