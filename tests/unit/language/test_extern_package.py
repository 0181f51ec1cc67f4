"""What an artifact gets of an extern kernel, and which kernels it cannot get."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pypto.ir.external import ExternalKernel, ExternalPart
from pypto.language import extern_package
from pypto.language.extern_package import ExternPackage, read_package

ENTRY = 'extern "C" void kernel_entry(long long*) {}\n'


class Tree:
    """Files below a directory, and the kernel that is declared in one of them."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.sources: dict[str, str] = {"aiv": "kernel.cpp"}
        self.include_dirs: list[str] = []
        self.home: str | None = "."
        self.provided: tuple[str, ...] = ()
        self.write("kernel.cpp", ENTRY)

    def path(self, name: str) -> str:
        return os.path.normpath(self.top / name)

    def write(self, name: str, text: str = "") -> None:
        (self.top / name).parent.mkdir(parents=True, exist_ok=True)
        (self.top / name).write_text(text)

    def read(self, **changes: bool) -> ExternPackage:
        kernel = ExternalKernel(
            parts=tuple(ExternalPart(core, self.path(name)) for core, name in self.sources.items()),
            include_dirs=tuple(map(self.path, self.include_dirs)),
            home=None if self.home is None else self.path(self.home),
            dual_aiv_dispatch=changes.get("dual", False),
        )
        return read_package(kernel, self.provided)

    def places(self) -> dict[str, str]:
        """Where each file is in the package, by its own name."""
        package = self.read()
        assert package.problem is None
        return {
            os.path.relpath(file.origin, self.top): file.path.split("/", 2)[2]
            for file in package.files
        }


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


def test_every_include_is_taken_along_at_its_place(tree: Tree) -> None:
    tree.sources = {"aiv": "cpp/kernel.cpp"}
    tree.include_dirs = ["../inc", "more"]
    tree.write(
        "cpp/kernel.cpp", '#include "beside.h"\n#include "../up.h"\n#include <deep/angle.h>\n'
    )
    tree.write("cpp/beside.h", '#include "beside.h"\n#include "deep/angle.h"\n#include <vector>\n')
    tree.write("cpp/unused.h")
    tree.write("up.h", '#if FEATURE\n#include "maybe.h"\n#endif\n')
    tree.write("maybe.h")
    tree.write("more/deep/angle.h", '#include "next.h"\n')
    tree.write("more/deep/next.h")
    tree.write("../inc/never.h")
    package = tree.read()
    assert package.problem is None
    assert tree.places() == {
        "cpp/beside.h": "0/cpp/beside.h",
        "cpp/kernel.cpp": "0/cpp/kernel.cpp",
        "maybe.h": "0/maybe.h",
        "more/deep/angle.h": "0/more/deep/angle.h",
        "more/deep/next.h": "0/more/deep/next.h",
        "up.h": "0/up.h",
    }
    top = os.path.commonpath([file.path for file in package.files])
    assert top.startswith("extern/kernel_")
    assert [part.source for part in package.parts] == [
        next(file.path for file in package.files if file.path.endswith("cpp/kernel.cpp"))
    ]
    assert [path.split("/")[-1] for path in package.include_dirs] == ["more"]
    assert {file.data for file in package.files if file.path.endswith("maybe.h")} == {b""}


def test_include_directories_come_in_order_after_the_files_own(tree: Tree) -> None:
    tree.home = None
    tree.sources = {"aiv": "cpp/kernel.cpp"}
    tree.include_dirs = ["a", "b"]
    tree.write("cpp/kernel.cpp", '#include "x.h"\n#include <y.h>\n#include "z.h"\n')
    for name in ("cpp/x.h", "cpp/y.h", "a/x.h", "b/x.h", "b/y.h", "a/z.h", "b/z.h"):
        tree.write(name)
    assert set(tree.places()) == {"cpp/kernel.cpp", "cpp/x.h", "b/y.h", "a/z.h"}
    assert set(tree.places().values()) == {"0/kernel.cpp", "0/x.h", "2/y.h", "1/z.h"}


def test_directories_that_lead_to_each_other_stay_together(tree: Tree) -> None:
    tree.home = None
    tree.sources = {"aiv": "src/kernel.cpp"}
    tree.include_dirs = ["inc", "apart"]
    tree.write("src/kernel.cpp", '#include "../inc/x.h"\n#include <y.h>\n')
    tree.write("inc/x.h")
    tree.write("apart/y.h")
    assert tree.places() == {
        "src/kernel.cpp": "0/src/kernel.cpp",
        "inc/x.h": "0/inc/x.h",
        "apart/y.h": "1/y.h",
    }


def test_an_include_may_leave_a_directory_and_come_back(tree: Tree) -> None:
    tree.home = None
    tree.sources = {"aiv": "src/kernel.cpp"}
    tree.write("src/kernel.cpp", '#include "../src/x.h"\n#include "../../tree/src/y.h"\n')
    tree.write("src/x.h")
    tree.write("src/y.h")
    assert tree.places() == {
        "src/kernel.cpp": "0/tree/src/kernel.cpp",
        "src/x.h": "0/tree/src/x.h",
        "src/y.h": "0/tree/src/y.h",
    }


def test_what_every_kernel_is_compiled_with_is_left_out(tree: Tree) -> None:
    tree.write("sdk/pto/inst.hpp")
    tree.write("inc/pto/inst.hpp")
    tree.write(
        "kernel.cpp", '#include "pto/inst.hpp"\n#include <pto/inst.hpp>\n#include <vector>\n'
    )
    tree.include_dirs = ["inc"]
    tree.provided = (tree.path("sdk"),)
    assert set(tree.places()) == {"kernel.cpp"}


def test_a_question_takes_along_what_there_is(tree: Tree) -> None:
    tree.write("kernel.cpp", '#if __has_include("there.h") || __has_include("missing.h")\n#endif\n')
    tree.write("there.h")
    assert set(tree.places()) == {"kernel.cpp", "there.h"}


def test_both_sources_of_a_mixed_kernel(tree: Tree) -> None:
    tree.sources = {"aic": "cube.cpp", "aiv": "vector.cpp"}
    tree.write("cube.cpp", '#include "both.h"\n')
    tree.write("vector.cpp", '#include "both.h"\n')
    tree.write("both.h")
    package = tree.read()
    assert [part.core_type for part in package.parts] == ["aic", "aiv"]
    assert set(tree.places()) == {"cube.cpp", "vector.cpp", "both.h"}


# -- identity --------------------------------------------------------------------------------


def _sample(tree: Tree) -> None:
    tree.sources = {"aiv": "cpp/kernel.cpp"}
    tree.include_dirs = ["inc"]
    tree.write("cpp/kernel.cpp", SOURCE)
    tree.write("cpp/x.h", "int x;\n")
    tree.write("cpp/other.h", "int other;\n")
    tree.write("inc/y.h", "int y;\n")


def _move(tree: Tree) -> None:
    tree.top = tree.top.rename(tree.top.parent / "elsewhere")


def _write(name: str, text: str) -> Callable[[Tree], None]:
    return lambda tree: tree.write(name, text)


def _say(field: str, value: object) -> Callable[[Tree], None]:
    return lambda tree: setattr(tree, field, value)


def _all(*steps: Callable[[Tree], None]) -> Callable[[Tree], None]:
    def take(tree: Tree) -> None:
        for step in steps:
            step(tree)

    return take


SOURCE = '#include "x.h"\n#include <y.h>\n'
KEEPS: dict[str, Callable[[Tree], None]] = {
    "nothing": lambda tree: None,
    "another time": lambda tree: os.utime(tree.path("cpp/x.h"), (1, 1)),
    "another place": _move,
    "a file nobody includes": _write("cpp/other.h", "long other;\n"),
    "a copy of the tree": lambda tree: setattr(
        tree, "top", Path(shutil.copytree(tree.top, tree.top.parent / "copy"))
    ),
}
CHANGES: dict[str, Callable[[Tree], None]] = {
    "the source": _write("cpp/kernel.cpp", SOURCE + "\n"),
    "an include": _write("cpp/x.h", "int  x;\n"),
    "an include of an include": _all(
        _write("cpp/x.h", '#include "other.h"\n'), _write("cpp/other.h", "long other;\n")
    ),
    "a file of an include directory": _write("inc/y.h", "long y;\n"),
    "a file that comes before": _all(
        _say("include_dirs", ["first", "inc"]), _write("first/y.h", "int y;\n")
    ),
    "the name of the source": _all(
        _write("cpp/k.cpp", SOURCE), _say("sources", {"aiv": "cpp/k.cpp"})
    ),
    "the core type": _say("sources", {"aic": "cpp/kernel.cpp"}),
    "where the files are to each other": _all(
        _write("deep/inc/y.h", "int y;\n"), _say("include_dirs", ["deep/inc"])
    ),
}


@pytest.mark.parametrize("name", KEEPS)
def test_what_keeps_the_digest(tree: Tree, name: str) -> None:
    _sample(tree)
    before = tree.read()
    KEEPS[name](tree)
    after = tree.read()
    assert after.digest == before.digest
    assert [(file.path, file.data) for file in after.files] == [
        (file.path, file.data) for file in before.files
    ]


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_digest(tree: Tree, name: str) -> None:
    _sample(tree)
    before = tree.read()
    CHANGES[name](tree)
    after = tree.read()
    assert after.problem is None
    assert after.digest != before.digest


def test_the_dispatch_is_in_the_digest(tree: Tree) -> None:
    tree.sources = {"aic": "kernel.cpp", "aiv": "kernel.cpp"}
    assert tree.read(dual=True).digest != tree.read(dual=False).digest


def test_which_source_is_whose_is_in_the_digest(tree: Tree) -> None:
    tree.write("a.cpp", '#include "b.cpp"\n')
    tree.write("b.cpp", '#include "a.cpp"\n')
    tree.sources = {"aic": "a.cpp", "aiv": "b.cpp"}
    one = tree.read()
    tree.sources = {"aic": "b.cpp", "aiv": "a.cpp"}
    other = tree.read()
    assert [file.data for file in one.files] == [file.data for file in other.files]
    assert one.digest != other.digest


def test_the_order_of_the_search_is_in_the_digest(tree: Tree) -> None:
    tree.write("kernel.cpp", "#include <x.h>\n#include <y.h>\n")
    tree.write("a/x.h")
    tree.write("b/y.h")
    tree.include_dirs = ["a", "b"]
    one = tree.read()
    tree.include_dirs = ["b", "a"]
    assert tree.read().digest != one.digest


def test_a_new_file_that_comes_first_is_noticed(tree: Tree) -> None:
    tree.include_dirs = ["a", "b"]
    tree.write("a/none.h")
    tree.write("b/x.h", "int x;\n")
    tree.write("kernel.cpp", '#include "x.h"\n')
    before = tree.read()
    tree.write("a/x.h", "int x;\n")
    assert tree.read().digest != before.digest


# -- what stays private ------------------------------------------------------------------------


def _link(tree: Tree, name: str, target: str) -> None:
    os.symlink(tree.path(target), tree.path(name))


def _linked_file(tree: Tree) -> None:
    tree.write("kernel.cpp", '#include "x.h"\n')
    tree.write("real.h")
    _link(tree, "x.h", "real.h")


def _linked_directory(tree: Tree) -> None:
    tree.write("kernel.cpp", '\n#include "sub/x.h"\n')
    tree.write("real/x.h")
    _link(tree, "sub", "real")


def _pipe(tree: Tree) -> None:
    tree.write("kernel.cpp", '#include "x.h"\n')
    os.mkfifo(tree.path("x.h"))


def _escape(tree: Tree) -> None:
    tree.write("kernel.cpp", '\n\n#include "../out.h"\n')
    tree.write("../out.h")


def _unrelated_home(tree: Tree) -> None:
    # The declaring file's directory counts only if something of the kernel is below it.
    tree.home = "../home"
    tree.write("../home/x.h")
    tree.write("kernel.cpp", '#include "../home/x.h"\n')


def _system_name(tree: Tree) -> None:
    tree.include_dirs = ["inc"]
    tree.write("inc/string.h")


def _system_directory(tree: Tree) -> None:
    tree.include_dirs = ["inc"]
    tree.write("inc/bits/own.h")


def _out_of_an_include_directory(tree: Tree) -> None:
    tree.include_dirs = ["inc/deep"]
    tree.write("inc/deep/y.h")
    tree.write("inc/x.h")
    tree.write("kernel.cpp", "#include <../x.h>\n")


def _detour(tree: Tree) -> None:
    tree.write("kernel.cpp", '#include "sub/../x.h"\n')
    tree.write("sub/y.h")
    tree.write("x.h")


def _far(tree: Tree) -> None:
    tree.home = None
    steps = "../" * (len(tree.top.parts) + 5)
    tree.write("kernel.cpp", f'#include "{steps}usr/include/string.h"\n')


def _absolute(tree: Tree) -> None:
    tree.write("x.h")
    tree.write("kernel.cpp", f'int a;\n#include "{tree.path("x.h")}"\n')


def _asked_absolutely(tree: Tree) -> None:
    tree.write("x.h")
    tree.write("kernel.cpp", f'#if __has_include("{tree.path("x.h")}")\n#endif\n')


def _only_the_compiler_knows(tree: Tree) -> None:
    tree.write("kernel.cpp", '#ifdef NEVER\n#include "cstdint"\n#endif\n')


def _macro(tree: Tree) -> None:
    tree.write("kernel.cpp", '#include "x.h"\n')
    tree.write("x.h", '#define Y "y.h"\n#include Y\n')


def _long_name(tree: Tree) -> None:
    tree.write("kernel.cpp", '#include "artifact_manifest.json"\n#include "a/' + "b" * 300 + '"\n')


def _gone(tree: Tree) -> None:
    os.unlink(tree.path("kernel.cpp"))


PROBLEMS: dict[str, tuple[Callable[[Tree], None], str, str]] = {
    "a link to a file": (_linked_file, "x.h", "symbolic link"),
    "a link to a directory": (_linked_directory, "sub", "symbolic link"),
    "a pipe": (_pipe, "x.h", "no regular file"),
    "an escape": (_escape, "kernel.cpp:3", '"../out.h" leads out of the directories'),
    "the directory of the declaring file": (_unrelated_home, "kernel.cpp:1", "leads out of"),
    "a file of a system header's name": (_system_name, "inc/string.h", "headers of the system"),
    "a directory of the system's": (_system_directory, "inc/bits", "headers of the system"),
    "out of an include directory": (
        _out_of_an_include_directory,
        "kernel.cpp:1",
        "leads out of an include directory",
    ),
    "a detour": (_detour, "kernel.cpp:1", "into a directory and back"),
    "far away": (_far, "kernel.cpp:1", "leads out of the directories"),
    "an absolute include": (_absolute, "kernel.cpp:2", "is absolute"),
    "an absolute question": (_asked_absolutely, "kernel.cpp:1", "is absolute"),
    "what only the compiler knows": (_only_the_compiler_knows, "kernel.cpp:2", "neither beside"),
    "a macro": (_macro, "x.h:2", "from a macro"),
    "a long name": (_long_name, "kernel.cpp:1", "neither beside"),
    "a file that is gone": (_gone, "kernel.cpp", "cannot be read"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_cannot_be_packaged_says_where_and_why(tree: Tree, name: str) -> None:
    arrange, where, why = PROBLEMS[name]
    arrange(tree)
    package = tree.read()
    assert package.problem is not None
    assert package.problem.startswith(f"{tree.path(where)}: ")
    assert why in package.problem
    assert package.files == ()
    assert [part.source for part in package.parts] == [tree.path("kernel.cpp")]
    assert package.include_dirs == tuple(map(tree.path, tree.include_dirs))


def test_an_include_by_way_of_the_root_stays_private(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.home = None
    tree.sources = {"aiv": "src/kernel.cpp"}
    tree.include_dirs = ["inc"]
    tree.write("src/kernel.cpp", '#include "../inc/x.h"\n')
    tree.write("inc/x.h")
    assert tree.read().problem is None
    monkeypatch.setattr(os.path, "commonpath", lambda paths: "/")  # as of /opt/a and /srv/b
    assert "root of the file system" in str(tree.read().problem)


def test_directories_named_like_headers_are_no_trouble(tree: Tree) -> None:
    tree.include_dirs = ["inc"]
    tree.write("inc/memory/pool.h")
    tree.write("kernel.cpp", "#include <memory/pool.h>\n")
    assert set(tree.places()) == {"kernel.cpp", "inc/memory/pool.h"}


def test_what_may_not_be_read(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("kernel.cpp", '#include "x.h"\n')
    tree.write("x.h")
    real = os.open

    def refuse(path: str, flags: int) -> int:
        if path == tree.path("x.h"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", refuse)  # root may read everything
    package = tree.read()
    assert package.problem == f"{tree.path('x.h')}: cannot be read: Permission denied"


def test_what_may_not_be_looked_for(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("kernel.cpp", '\n#include "closed/x.h"\n')
    real = os.stat

    def refuse(path: str) -> os.stat_result:
        if path == tree.path("closed/x.h"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "stat", refuse)
    package = tree.read()
    assert package.problem is not None
    assert package.problem.startswith(f"{tree.path('kernel.cpp')}:2: ")
    assert "cannot be looked for" in package.problem


def test_a_problem_has_a_digest_of_its_own(tree: Tree) -> None:
    good = tree.read()
    tree.write("kernel.cpp", ENTRY + "#include NAME\n")
    bad = tree.read()
    assert bad.digest not in (good.digest, tree.read(dual=True).digest)
    tree.write("kernel.cpp", ENTRY + "#include NAME2\n")
    assert tree.read().digest != bad.digest


def test_the_amount_is_limited(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("kernel.cpp", '#include "x.h"\n#include "y.h"\n')
    tree.write("x.h")
    tree.write("y.h", "int y;\n" * 100)
    for limit, value, text in (("_MAX_FILES", 2, "at most 2 files"), ("_MAX_BYTES", 500, "y.h")):
        with monkeypatch.context() as patch:
            patch.setattr(extern_package, limit, value)
            package = tree.read()
            assert package.problem is not None
            assert text in package.problem
    assert tree.read().problem is None
