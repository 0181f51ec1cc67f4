"""Kernels written in C++, in the store: what their files do to keys, entries and private builds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

KERNELS = """
import pypto.language as pl

SCALE = 2.0


@pl.jit.extern(core_type="aiv", source="cpp/scale.cpp", include_dirs=["inc"])
def scale(x: pl.Tensor, out: pl.Out[pl.Tensor], factor: pl.Scalar[pl.FP32]): ...


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    out = scale(x, out, SCALE)
    return out
"""
SOURCE = """#include "pypto_rt/kernel_abi.h"
#include "../common/unpack.h"
#include <offset.h>

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const ChipTensor* x = tensor(args[0]);
  const auto factor = from_u64<float>(static_cast<uint64_t>(args[2]));
  for (int64_t i = 0; i < x->shapes[0] * x->shapes[1]; ++i) {
    data(args[1])[i] = data(args[0])[i] * factor + OFFSET;
  }
}
"""
FILES = {
    "cpp/scale.cpp": SOURCE,
    "cpp/unused.h": "int unused;\n",
    "common/unpack.h": '#pragma once\n#include "data.h"\n'
    "inline ChipTensor* tensor(int64_t arg) { return reinterpret_cast<ChipTensor*>(arg); }\n",
    "common/data.h": "inline float* data(int64_t arg) {\n"
    "  return tensor_data<float>(reinterpret_cast<ChipTensor*>(arg));\n}\n",
    "inc/offset.h": "#define OFFSET 0.0f\n",
}


def write(house: Any, name: str, text: str) -> None:
    path = house.modules / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def project(house: Any) -> Any:
    """A house whose kernel is written in C++."""
    house.write(KERNELS)
    for name, text in FILES.items():
        write(house, name, text)
    return house


def files_of(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


# -- hits --------------------------------------------------------------------------------------


def test_another_process_gets_the_binaries_and_starts_nothing(project: Any) -> None:
    first = project.run(project.RUN)
    assert first["correct"]
    assert first["stats"]["misses"] == first["stats"]["generation_builds"] == 1
    assert first["stats"]["binary_builds"] == 1
    assert first["stats"]["bypasses"] == 0, first
    second = project.run(project.RUN)
    assert second["correct"]
    assert second["started"] == []
    assert second["stats"]["ready_hits"] == 1
    assert second["stats"]["generation_builds"] == second["stats"]["binary_builds"] == 0
    (generated,) = project.slots("generated")
    packaged = {name.split("/", 2)[2] for name in files_of(generated) if name.startswith("extern/")}
    assert packaged == {
        "0/cpp/scale.cpp",
        "0/common/unpack.h",
        "0/common/data.h",
        "0/inc/offset.h",
    }


def test_no_payload_has_an_absolute_path(project: Any) -> None:
    write(project, "common/data.h", FILES["common/data.h"] + "inline auto here = __FILE__;\n")
    write(project, "inc/offset.h", FILES["inc/offset.h"] + "inline auto there = __FILE__;\n")
    write(project, "cpp/scale.cpp", SOURCE + "auto everywhere() { return here + *there; }\n")
    assert project.run(project.RUN)["correct"]
    for slot in [*project.slots("generated"), *project.slots("ready")]:
        for name, data in files_of(slot).items():
            assert str(project.top).encode() not in data, name
            assert str(project.work).encode() not in data, name


def test_the_same_files_elsewhere_give_the_same_key_and_the_same_bytes(
    project: Any, tmp_path: Path
) -> None:
    write(project, "inc/offset.h", FILES["inc/offset.h"] + "inline auto there = __FILE__;\n")
    write(project, "cpp/scale.cpp", SOURCE + "auto everywhere() { return there; }\n")
    other = type(project)(tmp_path / "some" / "where" / "else")
    shutil.copytree(project.modules, other.modules, dirs_exist_ok=True)
    keys = {house.run(house.WARM)["key"] for house in (project, other)}
    assert len(keys) == 1
    for state in ("generated", "ready"):
        (one,), (two,) = project.slots(state), other.slots(state)
        assert one.relative_to(project.root) == two.relative_to(other.root)
        assert files_of(one) == files_of(two)


PROMOTE = """
compiled = kernels.kernel.compile()
report["stats_before"] = pypto.cache_stats().generated_hits
import shutil
for name in ("cpp", "common", "inc"):
    shutil.rmtree(os.path.join(job["modules"], name))
compiled.complete()
report["key"] = compiled.artifact_key
import torch
x = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))
out = torch.zeros(16, 64)
compiled(x, out)
report["correct"] = torch.equal(out, x * 2)
"""


def test_binaries_are_made_of_the_entry_when_the_originals_are_gone(
    project: Any, tmp_path: Path
) -> None:
    other = type(project)(tmp_path / "other")
    shutil.copytree(project.modules, other.modules, dirs_exist_ok=True)
    project.run(project.COMPILE)
    assert project.slots("ready") == []
    report = project.run(PROMOTE)
    assert report["correct"]
    assert report["stats_before"] == report["stats"]["generated_hits"] == 1
    assert report["stats"]["generation_builds"] == 0
    assert report["stats"]["binary_builds"] == 1
    other.run(other.WARM)
    (promoted,), (built) = project.slots("ready"), other.slots("ready")
    assert files_of(promoted) == files_of(built[0])


EXPORTED = """
import torch
from pypto.runtime import RunConfig
from pypto.runtime.compiled_program import CompiledProgram
target = os.path.join(os.getcwd(), "exported")
kernels.kernel.compile(config=RunConfig(save_kernels=True, save_kernels_dir=target))
import shutil
moved = shutil.move(target, os.path.join(os.getcwd(), "moved"))
for name in ("cpp", "common", "inc"):
    shutil.rmtree(os.path.join(job["modules"], name))
x = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))
out = torch.zeros(16, 64)
CompiledProgram.from_dir(moved)(x, out)
report["correct"] = torch.equal(out, x * 2)
config = {}
exec(open(os.path.join(moved, "kernel_config.py")).read(), config)
report["kernels"] = config["KERNELS"]
"""


def test_an_output_directory_holds_all_that_its_kernels_need(project: Any) -> None:
    report = project.run(EXPORTED)
    assert report["correct"]
    (kernel,) = report["kernels"]
    assert kernel["external"] is True
    (directory,) = kernel["extra_include_dirs"]
    assert directory.startswith("extern/scale_")
    assert directory.endswith("/inc")


# -- keys --------------------------------------------------------------------------------------


def key(house: Any) -> str:
    report = house.run(house.COMPILE)
    assert report["stats"]["bypasses"] == 0, report
    return str(report["key"])


def _replace(name: str, old: str, new: str) -> Callable[[Any], None]:
    def change(house: Any) -> None:
        path = house.modules / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def _touch(house: Any) -> None:
    for name in FILES:
        os.utime(house.modules / name, (1, 1))


def _move(house: Any) -> None:
    house.modules = house.modules.rename(house.top / "elsewhere")


def test_what_keeps_the_key(project: Any) -> None:
    first = key(project)
    for change in (
        _touch,
        _replace("cpp/unused.h", "int", "long"),
        _replace("kernels.py", "import", "# a line\n\nimport"),
        _move,
    ):
        change(project)
        assert key(project) == first


EDITS = {
    "the source": _replace("cpp/scale.cpp", "* factor", "/ factor"),
    "a comment of the source": _replace("cpp/scale.cpp", "\nextern", "// why\nextern"),
    "a header": _replace("common/unpack.h", "inline", "static inline"),
    "a header of a header": _replace("common/data.h", "inline", "static inline"),
    "a header of an include directory": _replace("inc/offset.h", "0.0f", "1.0f"),
    "the core type": _replace("kernels.py", '"aiv"', '"aic"'),
    "an annotation": _replace("kernels.py", "x: pl.Tensor,", "x: pl.InOut[pl.Tensor],"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_changes_the_key(project: Any, name: str) -> None:
    first = key(project)
    EDITS[name](project)
    assert key(project) != first


WITHIN = """
import torch
def run():
    x, out = torch.ones(16, 64), torch.zeros(16, 64)
    kernels.kernel(x, out)
    return out[0, 0].item()
def edit(name, old, new):
    path = Path(job["modules"]) / name
    path.write_text(path.read_text().replace(old, new, 1))
report["results"] = [run(), run()]
os.utime(Path(job["modules"]) / "inc" / "offset.h", (1, 1))
report["results"].append(run())
report["unedited"] = dataclasses.asdict(pypto.cache_stats())
edit("inc/offset.h", "0.0f", "1.0f")
report["results"].append(run())
edit("cpp/scale.cpp", "* factor", "* factor * 10")
report["results"].append(run())
edit("cpp/scale.cpp", "* factor * 10", "* factor")
report["results"].append(run())
"""


@pytest.mark.parametrize("cached", [True, False])
def test_an_edit_between_two_calls_is_noticed(project: Any, cached: bool) -> None:
    report = project.run(WITHIN, cached=cached)
    assert report["results"] == [2.0, 2.0, 2.0, 3.0, 21.0, 3.0]
    assert report["unedited"]["object_hits"] == 2
    assert report["unedited"]["generation_builds"] == report["unedited"]["binary_builds"] == 1
    stats = report["stats"]
    assert stats["generation_builds"] == stats["binary_builds"] == 3
    assert stats["object_hits"] == 3
    assert stats["misses"] == (3 if cached else 0)


def test_why_a_kernel_missed_can_be_told(project: Any) -> None:
    from pypto_store.tools import command_line

    first = key(project)
    EDITS["a header of a header"](project)
    second = key(project)
    assert first != second
    assert project.root is not None
    import io

    out, err = io.StringIO(), io.StringIO()
    edge = command_line.Edge({}, out, err)
    command_line.run(["why", second, "--root", str(project.root)], edge)
    assert "common/data.h" in out.getvalue(), err.getvalue()


# -- private builds ----------------------------------------------------------------------------


def _macro(house: Any) -> str:
    write(
        house,
        "cpp/scale.cpp",
        SOURCE.replace("<offset.h>", "NAME").replace("#", "#define NAME <offset.h>\n#", 1),
    )
    return "cpp/scale.cpp:4: the name of an included file comes from a macro"


def _absolute(house: Any) -> str:
    path = house.modules / "inc" / "offset.h"
    write(house, "cpp/scale.cpp", SOURCE.replace("<offset.h>", f'"{path}"'))
    return f'cpp/scale.cpp:3: "{path}" is absolute'


def _escape(house: Any) -> str:
    write(house, "../offset.h", FILES["inc/offset.h"])
    write(house, "cpp/scale.cpp", SOURCE.replace("<offset.h>", '"../../offset.h"'))
    return 'cpp/scale.cpp:3: "../../offset.h" leads out of the directories'


def _link(house: Any) -> str:
    write(house, "real.h", FILES["inc/offset.h"])
    (house.modules / "inc" / "offset.h").unlink()
    os.symlink("../real.h", house.modules / "inc" / "offset.h")
    return "inc/offset.h: is a symbolic link"


def _system(house: Any) -> str:
    write(house, "cpp/scale.cpp", '#include "cstdint"\n' + SOURCE)
    return 'cpp/scale.cpp:1: "cstdint" is neither beside this file nor in include_dirs'


PRIVATE = {
    "a macro": _macro,
    "an absolute include": _absolute,
    "an escape": _escape,
    "a link": _link,
    "what only the compiler finds": _system,
}
TWICE = """
import torch
x = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))
results = []
for offset in (0.0, 5.0):
    out = torch.zeros(16, 64)
    kernels.kernel(x, out)
    results.append(torch.equal(out, x * 2 + offset))  # twice x is exact: one rounding at most
    for name in ("inc/offset.h", "real.h", "../offset.h"):
        path = Path(job["modules"]) / name
        if path.exists() and not path.is_symlink():
            path.write_text("#define OFFSET 5.0f\\n")
report["results"] = results
"""


@pytest.mark.conforms("cache.56")
@pytest.mark.parametrize("name", PRIVATE)
def test_what_cannot_be_packaged_is_built_privately(project: Any, name: str) -> None:
    reason = PRIVATE[name](project)
    report = project.run(TWICE)
    # The second result is right although no identity covers the file that was edited.
    assert report["results"] == [True, True]
    stats = report["stats"]
    assert stats["requests"] == stats["misses"] == stats["bypasses"] == 2
    assert stats["generation_builds"] == stats["binary_builds"] == 2
    assert stats["object_hits"] == stats["storage_errors"] == stats["invalid_entries"] == 0
    assert f"{project.modules}/{reason}" in stats["last_bypass_reason"]
    assert project.slots("generated") == project.slots("ready") == []
    again = project.run(project.WARM)
    assert again["key"] is None
    assert again["stats"]["ready_hits"] == again["stats"]["generated_hits"] == 0


def test_a_private_build_needs_no_cache(project: Any) -> None:
    _macro(project)
    report = project.run(TWICE, cached=False)
    assert report["results"] == [True, True]
    assert report["stats"]["bypasses"] == report["stats"]["object_hits"] == 0
    assert report["stats"]["disabled_requests"] == report["stats"]["generation_builds"] == 2


DURING = """
from pypto.jit.building import Recipe
import torch
generate = Recipe.generate
def edited(recipe, directory):
    program = generate(recipe, directory)
    path = Path(job["modules"]) / "common" / "data.h"
    path.write_text(path.read_text() + "// again\\n")
    return program
Recipe.generate = edited
x = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))
out = torch.zeros(16, 64)
kernels.kernel(x, out)
report["correct"] = torch.equal(out, x * 2)
report["first"] = dataclasses.asdict(pypto.cache_stats())
Recipe.generate = generate
report["key"] = kernels.kernel.compile().artifact_key
"""


@pytest.mark.conforms("cache.57")
def test_an_edit_during_the_build_keeps_it_private(project: Any) -> None:
    report = project.run(DURING)
    assert report["correct"]
    first = report["first"]
    assert first["misses"] == first["bypasses"] == first["generation_builds"] == 1
    assert "extern source" in first["last_bypass_reason"]
    assert "changed during its build" in first["last_bypass_reason"]
    # The next request finds the files at rest, and publishes.
    assert report["key"] is not None
    assert report["stats"]["misses"] == report["stats"]["generation_builds"] == 2
    (generated,) = project.slots("generated")
    assert any(b"// again" in data for data in files_of(generated).values())


# -- faults of the source ----------------------------------------------------------------------

BROKEN = """
try:
    kernels.kernel.warmup()
except Exception as error:
    report["error"] = {"type": type(error).__name__, "text": str(error), "tail": error.stderr}
"""


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("name", ["cpp/scale.cpp", "common/data.h", "inc/offset.h"])
def test_a_compiler_error_names_the_users_line(project: Any, name: str, private: bool) -> None:
    if private:
        write(project, "cpp/scale.cpp", '#include "cstdint"\n' + SOURCE)
    text = (project.modules / name).read_text()
    write(project, name, text + "\nint wrong = nonsense;\n")
    error = project.run(BROKEN)["error"]
    assert error["type"] == "ToolFailed"
    line = text.count("\n") + 2
    for told in (error["text"], error["tail"]):
        assert "nonsense" in told
        # The compiler spells the way it came, "." and all.
        places = [word for word in told.split() if f"{Path(name).name}:{line}:" in word]
        assert places
        for place in places:
            assert os.path.normpath(place.split(":")[0]) == str(project.modules / name)
    assert project.slots("ready") == []
    write(project, name, text)
    assert project.run(project.RUN)["correct"]


def test_a_source_without_an_entry_is_an_error_of_the_compiler(project: Any) -> None:
    write(project, "cpp/scale.cpp", "int nothing;\n")
    error = project.run(BROKEN)["error"]
    assert error["type"] == "ToolFailed"
    assert "kernel_entry" in error["text"]


def test_a_source_that_is_gone_is_said_to_be(project: Any) -> None:
    step = 'os.unlink(job["modules"] + "/cpp/scale.cpp")\n' + BROKEN
    report = project.run(step)
    assert report["error"]["type"] == "ToolFailed"
    assert f"{project.modules}/cpp/scale.cpp" in report["error"]["text"]
    assert "cannot be read" in report["stats"]["last_bypass_reason"]
