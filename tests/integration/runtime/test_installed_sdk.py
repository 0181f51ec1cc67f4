"""The SDK of this installation: its metadata, its headers and what is built with them."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypto._native as native
import pytest
from elftools.elf.elffile import ELFFile
from pypto.backend import LIMITS, BackendType, ExecutionMode, RuntimeKind, target_of
from pypto.runtime.cpu_level import host_level
from pypto.runtime.errors import ToolchainUnavailable
from pypto.runtime.host import host_compilers, installed_sdk
from pypto.runtime.kernel_compiler import KernelCompiler
from pypto.runtime.sdk import Sdk
from pypto_toolchains.process import ToolFailed

Scale = Callable[..., Path]
RING = RuntimeKind.TENSORMAP_AND_RINGBUFFER


def _kernel(directory: Path) -> Path:
    return directory / "kernels/aiv/scale.cpp"


def test_every_platform_is_a_target() -> None:
    sdk = installed_sdk()
    assert set(sdk.targets) == {"a2a3", "a2a3sim", "a5", "a5sim"}
    for name, target in sdk.targets.items():
        assert target.host == (target_of(name).mode is ExecutionMode.SIM)
        assert (target.incore is not None) == target.host
        assert set(target.orchestration) == set(RuntimeKind)


def test_limits_agree_everywhere() -> None:
    for backend, limits in LIMITS.items():
        fields = {name: getattr(limits, name) for name in type(limits).__slots__}
        del fields["row_bytes"]  # of speed: nothing is refused by it
        assert dict(installed_sdk().limits[backend.arch]) == fields
        assert native.on_chip_limits()[backend.arch] == fields
    assert set(installed_sdk().limits) == {backend.arch for backend in BackendType}


def test_this_machines_level_is_one_of_the_sdks() -> None:
    assert host_level() in installed_sdk().cpu_levels


@pytest.mark.conforms("cache.61")
@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_the_target_header_refuses_without_admission(
    scale: Scale, tmp_path: Path, platform: str
) -> None:
    root = tmp_path / "sdk"
    shutil.copytree(installed_sdk().root, root)
    (root / "sdk.json").chmod(0o644)
    document = json.loads((root / "sdk.json").read_text())
    document["targets"][platform]["incore"]["admission"] = "-DSOMETHING_ELSE"
    (root / "sdk.json").unlink()
    (root / "sdk.json").write_text(json.dumps(document))
    honest = host_compilers()(platform, RING)
    assert honest.compile_incore(_kernel(scale()), "aiv")
    compiler = KernelCompiler(
        platform,
        sdk=Sdk.load(root),
        runtime_name=RING.value,
        cpu_level=host_level(),
        environ={"PATH": "/usr/local/bin:/usr/bin:/bin"},
    )
    with pytest.raises(ToolFailed, match="#error"):
        compiler.compile_incore(_kernel(scale()), "aiv")


@pytest.mark.conforms("cache.61")
def test_the_two_architectures_give_different_kernels(scale: Scale) -> None:
    compile_for = {
        platform: host_compilers()(platform, RING).compile_incore(_kernel(scale()), "aiv")
        for platform in ("a2a3sim", "a5sim")
    }
    assert compile_for["a2a3sim"] != compile_for["a5sim"]


@pytest.mark.conforms("cache.64")
def test_every_orchestration_is_built_with_a_build_id_and_threads() -> None:
    for target in installed_sdk().targets.values():
        for recipe in target.orchestration.values():
            assert "-pthread" in recipe.flags
            assert [flag for flag in recipe.flags if flag.startswith("-Wl,--build-id")]


@pytest.mark.conforms("cache.64")
@pytest.mark.parametrize("kind", ["kernel", *RuntimeKind])
def test_a_library_can_be_unloaded_and_shares_nothing(scale: Scale, kind: Any) -> None:
    directory = scale()
    if kind == "kernel":
        binary = host_compilers()("a2a3sim", RING).compile_incore(_kernel(directory), "aiv")
        entries = {"kernel_entry"}
    else:
        source = directory / "orchestration/scale.cpp"
        binary = host_compilers()("a2a3sim", kind).compile_orchestration(source)
        entries = {
            "aicpu_orchestration_config",
            "aicpu_orchestration_entry",
            "framework_bind_runtime",
        }
    elf: Any = ELFFile(io.BytesIO(binary))
    assert elf.get_section_by_name(".note.gnu.build-id") is not None
    symbols = list(elf.get_section_by_name(".dynsym").iter_symbols())
    defined = {
        symbol.name
        for symbol in symbols
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL"
    }
    assert defined == entries
    # STB_GNU_UNIQUE would merge the libraries' data and pin them in memory.
    assert not [s.name for s in symbols if s["st_info"]["bind"] in ("STB_LOOS", 10)]
    assert not [s.name for s in symbols if s["st_info"]["type"] == "STT_TLS"]
    for name in (".tdata", ".tbss"):
        assert elf.get_section_by_name(name) is None


@pytest.mark.parametrize("platform", ["a2a3", "a5"])
def test_onboard_kernels_are_refused(scale: Scale, platform: str) -> None:
    with pytest.raises(ToolchainUnavailable, match=rf"'{platform}' need .*'{platform}sim'"):
        host_compilers()(platform, RING).compile_incore(_kernel(scale()), "aiv")
