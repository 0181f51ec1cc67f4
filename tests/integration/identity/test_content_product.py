"""The product's own part of an identity by content: package, interpreter, SDK, assembler."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from mutations import House, Mutation, Outcome, check, differences, this_python
from pypto_toolchains import content_policy
from pypto_toolchains.disk import SystemDisk
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identity import ToolchainIdentity

CHANGES, KEEPS, BYPASSES, CAUGHT = Outcome

Edit = Callable[[House], object]


def append(path: Path) -> None:
    """Other content, which a native file does not show: its Build-ID stays."""
    with path.open("ab") as file:
        file.write(b"\n")


@pytest.fixture
def own(house: House) -> House:
    """A house with an interpreter, a library of Python and an assembler of its own."""
    python = house.top / "python" / "python3"
    python.parent.mkdir()
    shutil.copy(this_python(), python)
    library = house.top / "library"
    house.interpreter = dataclasses.replace(
        house.interpreter, executable=str(python), library=lambda: (str(library),)
    )
    library.mkdir()
    (library / "json.py").write_text("loads = None\n")
    (library / "site-packages").mkdir()
    assembler = house.top / "assembler" / "ptoas"
    assembler.parent.mkdir()
    shutil.copy(house.sdk / "bin" / "ptoas", assembler)
    house.environ["PTOAS_ROOT"] = str(assembler.parent)
    return house


# What the `build` policy trusts, because nothing that is published tells it: the contrast.
UNSEEN_BY_BUILD: dict[str, tuple[str, Edit]] = {
    "the extension is patched": ("pypto", lambda h: append(h.native)),
    "the interpreter is patched": ("pypto", lambda h: append(Path(h.interpreter.executable))),
    "the library of Python is patched": ("pypto", lambda h: append(h.top / "library/json.py")),
    "a module appears there": ("pypto", lambda h: (h.top / "library/more.py").touch()),
    "the assembler is patched": ("ptoas", lambda h: append(h.top / "assembler/ptoas")),
}


@pytest.mark.conforms("cache.98")
@pytest.mark.parametrize("name", UNSEEN_BY_BUILD)
def test_what_is_patched_in_place(own: House, name: str) -> None:
    component, edit = UNSEEN_BY_BUILD[name]
    before = own.known("build").digest
    check(own, Mutation(name, component, edit, CHANGES), "content")
    assert own.known("build").digest == before


def launcher(house: House) -> None:
    (house.top / "assembler" / "ptoas").write_text("#!/bin/sh\nexec python3 -m ptoas\n")


def another_pin(house: House) -> None:
    (house.sdk / "pto_isa.pin").write_text("another\n")
    house.build_sdk()


def other_flags(house: House) -> None:
    def edit(metadata: dict[str, object]) -> None:
        targets = metadata["targets"]
        assert isinstance(targets, dict)
        targets["a2a3sim"]["incore"]["flags"].append("-O2")

    house.build_sdk(edit)


def installed_beside(house: House) -> None:
    (house.top / "library" / "site-packages" / "numpy.py").touch()
    (house.top / "library" / "__pycache__").mkdir()
    (house.top / "library" / "__pycache__" / "json.pyc").touch()


TABLE = [
    Mutation("a source is edited", "pypto", lambda h: append(h.package / "ir/op_rows.py"), CHANGES),
    Mutation("part of the runtime is edited", "runtime",
             lambda h: append(h.package / "runtime/worker.py"), CHANGES),
    Mutation("another instruction set", "pto_isa", another_pin, CHANGES),
    Mutation("other flags", "runtime", other_flags, CHANGES),
    Mutation("packages are installed, and bytecode is written", "", installed_beside, KEEPS),
    Mutation("the assembler is an unknown launcher", "ptoas", launcher, BYPASSES, "ptoas"),
    Mutation("the assembler is gone", "ptoas",
             lambda h: (h.top / "assembler/ptoas").unlink(), BYPASSES, "PTOAS_ROOT"),
    Mutation("the extension is gone", "pypto", lambda h: h.native.unlink(), BYPASSES, "_native.so"),
    Mutation("the extension is cut off", "pypto",
             lambda h: h.native.write_bytes(h.native.read_bytes()[:9000]), BYPASSES, "_native.so"),
    Mutation("Python is embedded", "pypto",
             lambda h: setattr(h, "interpreter", dataclasses.replace(h.interpreter, executable="")),
             BYPASSES, "embedded"),
]  # fmt: skip


@pytest.mark.conforms("cache.99")
@pytest.mark.parametrize("mutation", TABLE, ids=str)
def test_other_things_that_happen(own: House, mutation: Mutation) -> None:
    check(own, mutation, "content")


@pytest.mark.conforms("cache.98")
@pytest.mark.parametrize(
    "path",
    [
        "include/pto/pto-inst.hpp",
        "include/pto/sim/elementwise.hpp",
        "include/pypto_rt/kernel_abi.h",
        "src/orchestration_support.cpp",
    ],
)
def test_a_patched_sdk_has_another_key_and_is_refused(own: House, path: str) -> None:
    """Its revision is not the truth any more, whatever the key."""
    before = own.known("content")
    append(own.sdk / path)
    after = own.known("content")
    assert differences(before, after) == {"runtime"}
    refused = own.process().changed("content")
    assert refused is not None
    assert "was changed after it was built" in refused


def test_an_assembler_from_a_wheel_is_known_by_what_it_reports(
    own: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A component whose evidence is no native file gets no other."""
    from pypto_toolchains.evidence import Evidence
    from pypto_toolchains.ptoas import PtoasCapture

    reported = Evidence.of("ptoas", (("ptoas.version", "0.1.1"),))
    monkeypatch.setattr(content_policy, "capture_ptoas", lambda *_: PtoasCapture(reported))
    assert own.facts("ptoas", "content") == {"ptoas.version": "0.1.1"}


@pytest.mark.conforms("cache.99")
def test_without_pyelftools_there_is_no_identity_by_content(
    own: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = own.known("content")
    find_spec = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "elftools" else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    # What another process worked out needs no such package; what a miss would make does.
    assert own.known("content").digest == known.digest
    assert "pip install 'pypto[content]'" in str(own.process().changed("content"))
    own.root = own.top / "empty"
    found = own.capture("content")
    assert isinstance(found, Unavailable)
    assert "pip install 'pypto[content]'" in found.reason


def test_a_compiler_that_cannot_be_identified_any_more_makes_nothing(own: House) -> None:
    process = own.process()
    assert isinstance(process.identity("content"), ToolchainIdentity)
    own.tool("g++", "#!/bin/sh\n")
    refused = process.changed("content")
    assert refused is not None
    assert refused.startswith("device_toolchain: ")
    assert "is a script" in refused


def test_the_loader_of_this_machine_is_asked_before_anything_is_built(
    own: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.known("content")
    assert own.process().changed("content") is None
    monkeypatch.setattr(content_policy.Closure, "unforeseen", lambda *_: "/elsewhere/libx.so")
    refused = own.process().changed("content")
    assert refused is not None
    assert refused.startswith("pypto: ")
    assert "would load /elsewhere/libx.so" in refused


def test_the_library_of_the_running_python_is_part_of_it(house: House) -> None:
    facts = house.facts("pypto", "content")
    places = [name.removeprefix("python.library.") for name in facts if "python.library." in name]
    assert any(Path(place, "json", "__init__.py").is_file() for place in places)
    assert all(len(facts[f"python.library.{place}"]) == 64 for place in places)


def test_a_process_reads_directories_once(own: House, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    tree = SystemDisk.tree

    def counted(disk: SystemDisk, path: str) -> str:
        read.append(path)
        return tree(disk, path)

    monkeypatch.setattr(SystemDisk, "tree", counted)
    process = own.process()
    first = process.identity("content")
    assert isinstance(first, ToolchainIdentity)
    once = list(read)
    assert len(once) == len(set(once)) > 3
    own.environ["PATH"] += f":{own.cwd}"
    again = process.identity("content")
    assert isinstance(again, ToolchainIdentity)
    assert (again.digest, again.components) == (first.digest, first.components)
    assert read == once
    # What a later process rests on has the answers all the same.
    process.identities.remember(again, str(own.root))
    worked_out = own.worked_out
    assert own.known("content").digest == first.digest
    assert own.worked_out == worked_out
    append(own.sdk / "include/pto/pto-inst.hpp")
    assert own.known("content").digest != first.digest


@pytest.mark.conforms("cache.97")
def test_no_two_policies_share_a_key(house: House) -> None:
    assert house.known("build").digest != house.known("content").digest
