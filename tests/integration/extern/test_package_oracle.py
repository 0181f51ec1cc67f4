"""Packages against g++: it opens in the copy what it opens in the original, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hypothesis import event, given, settings
from hypothesis import strategies as st
from pypto.ir.external import ExternalKernel, ExternalPart
from pypto.language.extern_package import read_package

SOURCE = "home/src/kernel.cpp"
DIRECTORIES = ("home/src", "home/src/sub", "home", "home/inc", "home/inc/sub", "away/inc", "away")
NAMES = ("x.h", "y.h", "z.h")
STEPS = (*("",) * 8, *("sub/",) * 2, "../", "../inc/", "../src/", "../../away/", "./", "inc/")
PLACES = [f"{directory}/{name}" for directory in DIRECTORIES for name in NAMES]

_includes = st.tuples(
    st.sampled_from(("#include {}", "#include {}", "#if __has_include({})\n#endif")),
    st.sampled_from(('"{}"', '"{}"', "<{}>")),
    st.sampled_from(STEPS),
    st.sampled_from(NAMES),
).map(lambda made: made[0].format(made[1].format(made[2] + made[3])))
_texts = st.lists(_includes, min_size=1, max_size=2).map("\n".join)
_sources = st.lists(_includes, min_size=2, max_size=4).map("\n".join)
# A tree with most of the files there can be; None is one that is not there.
_trees = st.lists(
    st.one_of(_texts, _texts, _texts, st.none()), min_size=len(PLACES), max_size=len(PLACES)
)
_searched = st.lists(
    st.sampled_from(("home/inc", "home/src", "away/inc", "home/inc/sub")), min_size=1, max_size=3
)


def opened(source: Path, directories: list[Path]) -> set[str] | None:
    """The files that g++ opens, None if there is one that it does not find."""
    result = subprocess.run(
        ["g++", "-std=c++20", "-w", "-MM", *(f"-I{path}" for path in directories), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        return None
    return {os.path.realpath(name) for name in result.stdout.replace("\\\n", " ").split()[1:]}


@settings(max_examples=250, deadline=None, derandomize=True)
@given(_trees, _sources, _searched, st.booleans())
def test_a_copy_is_read_like_its_original(
    tree: list[str | None], text: str, searched: list[str], declared: bool
) -> None:
    top = Path(os.path.realpath(tempfile.mkdtemp()))
    try:
        for name, body in (*zip(PLACES, tree, strict=True), (SOURCE, text)):
            if body is None:
                continue
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            # Equal files would be one to `#pragma once`.
            (top / name).write_text(f"#pragma once\n// {name}\n{body}\n")
        for directory in DIRECTORIES:
            (top / directory).mkdir(parents=True, exist_ok=True)
        kernel = ExternalKernel(
            parts=(ExternalPart("aiv", str(top / SOURCE)),),
            include_dirs=tuple(str(top / name) for name in searched),
            home=str(top / "home") if declared else None,
        )
        package = read_package(kernel)
        if package.problem is not None:
            event(package.problem.split('" ')[-1].split("> ")[-1][:30])
            return
        truth = opened(top / SOURCE, [top / name for name in searched])
        origins = {str(top / "copy" / file.path): file.origin for file in package.files}
        assert truth is None or truth <= set(origins.values())
        event(f"{len(origins)} files")
        for file in package.files:
            path = top / "copy" / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
        copied = opened(
            top / "copy" / package.parts[0].source,
            [top / "copy" / name for name in package.include_dirs],
        )
        assert (copied is None) == (truth is None)
        if copied is not None and truth is not None:
            assert {origins[path] for path in copied} == truth
    finally:
        shutil.rmtree(top)
