"""What the actions of a kernel cache put out, and what they say of what they cannot do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# The fixture's class; conftest is no module to import from.
Workshop = Any


def _succeeded(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", "an action says nothing unless it fails"


def _refused(done: subprocess.CompletedProcess[str], status: int, *told: str) -> None:
    assert done.returncode == status, done.stderr
    for line in done.stderr.splitlines():
        if line.startswith("error: //"):
            assert line.startswith("error: //serving:ready_kernels: "), line
    for text in ("//serving:ready_kernels", *told):
        assert text in done.stderr, done.stderr


def _use(root: Path, modules: Path, environ: dict[str, str], cwd: Path) -> dict[str, Any]:
    """The counters of a process that asks for both kernels under a read-only root."""
    script = (
        "import dataclasses, json, sys\n"
        "started = []\n"
        "sys.addaudithook(lambda event, detail: started.append(event)"
        " if event in {'subprocess.Popen', 'os.posix_spawn', 'os.exec', 'os.system'} else None)\n"
        "import kernels, pypto\n"
        "kernels.scale.warmup(); kernels.shift.warmup()\n"
        "print(json.dumps({**dataclasses.asdict(pypto.cache_stats()), 'started': started}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=cwd,
        env={
            **environ,
            "PYPTO_CACHE": "1",
            "PYPTO_CACHE_READONLY": "1",
            "PYPTO_CACHE_DIR": str(root),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counters: dict[str, Any] = json.loads(done.stdout)
    return counters


def test_a_root_is_complete_and_the_same_wherever_it_is_made(
    workshop: Workshop, tmp_path: Path
) -> None:
    _succeeded(workshop.generate())
    _succeeded(workshop.compile("sources", "root", "x86-64", "x86-64-v3"))
    # Another directory and another shell, and each kernel by itself.
    other = type(workshop)(
        tmp_path / "another" / "place",
        {
            "CPATH": "/opt/include",
            "LD_LIBRARY_PATH": "lib:",
            "PATH": "/nowhere:/usr/bin",
            "HOME": str(tmp_path),
        },
    )
    _succeeded(other.generate("scale=sources/scale", "shift=sources/shift"))
    for kernel in ("scale", "shift"):
        levels = ("x86-64", "x86-64-v3")
        _succeeded(other.compile(f"sources/{kernel}", f"binaries/{kernel}", *levels))
    parts = ("--part", "binaries/scale", "--part", "binaries/shift")
    _succeeded(other.run("assemble.py", "--out", "root", *parts))
    assert workshop.files("root") == other.files("root")

    names = set(workshop.files("root"))
    kinds = {name.partition("/")[0] for name in names}
    assert kinds == {"STORE", "artifacts", "evidence", "facts", "tools"}
    assert len([name for name in names if name.endswith("orchestration.bin")]) == 4
    for content in workshop.files("root").values():
        assert os.fsencode(tmp_path) not in content, "a root names no directory it was made in"

    used = _use(
        workshop.top / "root",
        workshop.modules,
        {**workshop.environ, "LD_LIBRARY_PATH": "/opt/lib", "PATH": "/usr/local/bin:/usr/bin"},
        tmp_path,
    )
    assert used["ready_hits"] == 2
    assert used["misses"] == used["bypasses"] == used["storage_errors"] == 0
    assert used["generation_builds"] == used["binary_builds"] == 0
    assert used["started"] == []


def test_an_edit_of_one_kernel_leaves_the_sources_of_the_others(workshop: Workshop) -> None:
    _succeeded(workshop.generate("scale=before/scale", "shift=before/shift"))
    text = (workshop.modules / "kernels.py").read_text()
    workshop.write("# A line more.\n" + text.replace("SCALE = 2.0", "SCALE = 3.0"))
    _succeeded(workshop.generate("scale=after/scale", "shift=after/shift"))
    assert workshop.files("before/shift") == workshop.files("after/shift")
    assert workshop.files("before/scale") != workshop.files("after/scale")


def test_wrong_configurations_name_the_target_and_what_to_do(workshop: Workshop) -> None:
    _refused(workshop.generate(module="kernel"), 2, "'kernel' cannot be imported", "deps has to")
    workshop.request("scale", "scales")
    _refused(workshop.generate(), 2, "kernels.json", "requests[1].kernel", "'scales'", "no such")
    workshop.request("scale", "shift", cache={"enabled": True})
    _refused(workshop.generate(), 2, "kernels.json: cache is for the build", "leave it out")
    workshop.request()
    _refused(workshop.generate(), 2, "kernels.json: requests is empty")
    workshop.config.write_text("{")
    _refused(workshop.generate(), 2, "kernels.json is not valid JSON")
    _refused(workshop.generate(config="none.json"), 2, "none.json cannot be read")
    assert not (workshop.top / "sources").exists()


def test_names_in_the_target_and_in_the_configuration_have_to_agree(workshop: Workshop) -> None:
    _refused(
        workshop.generate("scale=sources/scale"),
        2,
        "kernels.json requests 'shift', which kernels does not have; add it",
    )
    workshop.request("scale")
    _refused(
        workshop.generate("scale=sources/scale", "shift=sources/shift"),
        2,
        "kernels has 'shift', which kernels.json does not request",
    )


def test_a_kernel_that_does_not_compile_is_named_with_its_line(workshop: Workshop) -> None:
    text = (workshop.modules / "kernels.py").read_text()
    workshop.write(text.replace("pl.add(tile, SHIFT)", "pl.ad(tile, SHIFT)"))
    # Whatever is checked first: the message says which kernel, and where it is wrong.
    done = workshop.generate()
    assert done.returncode != 0
    _refused(done, done.returncode, "shift", "pl.ad")


def test_a_request_that_is_never_stored_is_refused(workshop: Workshop) -> None:
    requests = [{"kernel": "scale", "run_config": {"dump_passes": True}}]
    workshop.config.write_text(json.dumps({"schema_version": 1, "requests": requests}))
    _refused(workshop.generate(), 1, "kernel scale", "diagnostics", "never stored")


def test_a_kernel_without_a_key_says_why(workshop: Workshop) -> None:
    workshop.environ["PYPTO_TOOL_PATH"] = "/nowhere"
    _refused(workshop.generate(), 1, "kernel scale", "it has no key", "g++")


def test_a_toolchain_of_the_build_is_found_from_the_directory_of_the_action(
    workshop: Workshop,
) -> None:
    del workshop.environ["PYPTO_TOOL_PATH"]
    workshop.environ |= {
        "PYPTO_CACHE_IDENTITY": "hermetic",
        "PYPTO_TOOLCHAIN": "toolchain/identity.json",
    }
    place = str(workshop.top / "toolchain" / "identity.json")
    _refused(workshop.generate(), 1, "kernel scale: it has no key", place)


def test_cpp_that_does_not_compile_is_named_by_kernel_and_level(workshop: Workshop) -> None:
    (workshop.modules / "broken.cpp").write_text("this is no C++\n")
    workshop.write(
        "import pypto.language as pl\n"
        "\n"
        "@pl.jit.extern(core_type='aiv', source='broken.cpp')\n"
        "def broken(x: pl.Tensor, out: pl.Out[pl.Tensor]): ...\n"
        "\n"
        "@pl.jit\n"
        "def scale(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):\n"
        "    out = broken(x, out)\n"
        "    return out\n"
    )
    workshop.request("scale")
    _succeeded(workshop.generate())
    _refused(workshop.compile("sources", "root"), 1, "kernels:scale (x86-64)", "broken.cpp")


def test_levels_are_those_of_the_sdk(workshop: Workshop) -> None:
    _succeeded(workshop.generate())
    _refused(workshop.compile("sources", "root", "x86-64-v9"), 2, "'x86-64-v9'", "x86-64-v3")


def test_binaries_are_made_by_the_toolchain_of_their_sources_only(workshop: Workshop) -> None:
    _succeeded(workshop.generate())
    workshop.environ["PYPTO_CACHE_EPOCH"] = "2"
    _refused(workshop.compile("sources", "root"), 1, "kernels:scale", "another toolchain")


def test_parts_that_disagree_are_not_put_together(tmp_path: Path, workshop: Workshop) -> None:
    for part, content in (("one", "1"), ("two", "2")):
        (workshop.top / part).mkdir()
        (workshop.top / part / "same").write_text(content)
    done = workshop.run("assemble.py", "--out", "out", "--part", "one", "--part", "two")
    assert done.returncode == 1
    assert "two/same differs" in done.stderr


@pytest.mark.parametrize("variable", ["PYPTO_CACHE", "PYPTO_CACHE_DIR", "PYPTO_TOOL_PATH"])
def test_whoever_starts_a_program_has_the_last_word(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.syspath_prepend(workshop.environ["PYTHONPATH"].split(os.pathsep)[1])
    import pypto_kernel_cache

    environ = {"HOME": "/home/user"}
    given = {"values": {"PYPTO_CACHE": "1"}, "paths": {"PYPTO_CACHE_DIR": "../x.root"}}
    assert pypto_kernel_cache.use("/a/b", **given, environ=environ) is True
    assert environ == {"HOME": "/home/user", "PYPTO_CACHE": "1", "PYPTO_CACHE_DIR": "/a/x.root"}
    decided = {variable: "0"}
    assert pypto_kernel_cache.use("/a/b", **given, environ=decided) is False
    assert decided == {variable: "0"}
