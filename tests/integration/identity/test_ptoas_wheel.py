"""An assembler that pip installed as a wheel: what changes its identity, and what takes it away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from mutations import House, Mutation, Outcome, check
from ptoas_edits import (
    Edit,
    another_numpy,
    append,
    as_uv_writes_it,
    create,
    env,
    extended,
    first_line,
    info,
    interpreter_copied,
    launcher,
    linked_out,
    on_python_path,
    other_interpreter_build,
    rebuilt,
    redirected,
    remove,
    shadowed_by_hook,
    site,
    variable,
    without_file,
    without_interpreter,
)
from ptoas_wheels import CORE, LIBRARY, SITE, assembler_wheel, make_environment, numpy_wheel
from pypto_toolchains.disk import SYSTEM_DISK
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.ptoas_wheel import wheel_facts
from pypto_toolchains.records import ProbeRecords

RECORDS = ("METADATA", "WHEEL", "RECORD")

# Imported by a hook of every environment here, as tools of development leave such ones.
_HOOK = "import startup_hook\n"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> tuple[House, Path]:
    """A house whose assembler is an installed wheel, and a copy of that environment."""
    top = tmp_path_factory.mktemp("wheel")
    environment = make_environment(top / "env", assembler_wheel(top), numpy_wheel(top))
    (environment / SITE / "a_hook.pth").write_text(_HOOK)
    (environment / SITE / "startup_hook.py").write_text("import helper_of_hook\n")
    (environment / SITE / "helper_of_hook.py").write_text("")
    # Its first start writes bytecode, which is a change where nothing else may be one.
    subprocess.run([environment / "bin" / "python", "-c", ""], env={}, check=True)
    copy = top / "pristine"
    shutil.copytree(environment, copy, symlinks=True)
    house = House(top / "house")
    return house, copy


@pytest.fixture
def wheel_house(pristine: tuple[House, Path], tmp_path: Path) -> House:
    """That house, its environment as it was installed, and an empty store."""
    house, copy = pristine
    environment = copy.with_name("env")
    shutil.rmtree(environment)
    shutil.copytree(copy, environment, symlinks=True)
    house.top = tmp_path
    house.root = tmp_path / "root"
    house.environ = {"PATH": os.environ["PATH"], "PTOAS_ROOT": str(environment)}
    return house


def beside_the_script(name: str) -> Edit:
    """A module in the directory of the command's script, where its imports look first."""
    return lambda house: (env(house) / "bin" / name).write_text("")


def directory_beside_the_script(name: str) -> Edit:
    return lambda house: (env(house) / "bin" / name).mkdir()


CHANGING: list[tuple[str, Edit]] = [
    *(
        (f"{record} of {project} is edited", append(info(project, record)))
        for project in ("ptoas", "numpy")
        for record in RECORDS
    ),
    ("numpy is upgraded", another_numpy),
    ("the native compiler is rebuilt", rebuilt(CORE)),
    ("its library is rebuilt", rebuilt(LIBRARY)),
    ("a pth file is added", create("b.pth", "/nowhere\n")),
    ("a pth file is edited", append("a_hook.pth", "# more\n")),
    ("a pth file is removed", remove("a_hook.pth")),
    ("a hook that runs code is added", create("c.pth", "import sys; sys.x = 1\n")),
    ("a startup module is edited", append("startup_hook.py")),
    ("what it imports is edited", append("helper_of_hook.py")),
    ("sitecustomize appears", create("sitecustomize.py")),
    ("the script is another installer's", launcher(as_uv_writes_it)),
    ("PYTHONPATH gets a directory", variable("PYTHONPATH", "/nowhere/else")),
    ("the hash seed is set", variable("PYTHONHASHSEED", "7")),
]

KEEPING: list[tuple[str, Edit]] = [
    ("another command is installed", beside_the_script("other")),
    ("another package is installed", create("other/__init__.py")),
    ("a directory like a module's lies beside the script", directory_beside_the_script("colorsys")),
    ("bytecode is written", create("__pycache__/x.pyc")),
    ("files are touched", lambda house: os.utime(site(house, "ptoas/_cli.py"), (1, 1))),
    ("PATH gets an unused directory", variable("PATH", f"{os.environ['PATH']}:/nowhere/else")),
    ("the user is another", variable("HOME", "/nowhere/else")),
    # What a wheel's record says is believed, as a Build-ID is.
    ("a file of the wheel is patched", append("ptoas/_cli.py")),
]

BYPASSING: list[tuple[str, Edit, str]] = [
    ("ptoas is redirected", redirected("ptoas"), "no record of a wheel for ptoas"),
    *(
        (f"{name} is redirected", redirected(name), f"{name} is imported from")
        for name in ("ptodsl", "TileOps", "SoftOps")
    ),
    ("numpy is redirected", redirected("numpy"), "no record of a wheel for numpy"),
    ("a namespace is extended", extended("SoftOps"), "SoftOps is searched in"),
    ("a hook puts a package before it", shadowed_by_hook("ptodsl"), "ptodsl is imported from"),
    ("PYTHONPATH has ptoas", on_python_path("ptoas/__init__.py"), "no record of a wheel"),
    ("PYTHONPATH has numpy", on_python_path("numpy/__init__.py"), "no record of a wheel for numpy"),
    (
        "PYTHONPATH has a module of that name",
        on_python_path("TileOps.py"),
        "TileOps is imported from",
    ),
    (
        "a module of that name lies beside the script",
        beside_the_script("ptodsl.py"),
        "ptodsl is imported from",
    ),
    (
        "a module of Python's own lies beside the script",
        beside_the_script("re.py"),
        "bin/re.py stands before Python's own module",
    ),
    (
        "PYTHONPATH has a package of Python's own",
        on_python_path("colorsys/__init__.py"),
        "colorsys stands before Python's own module",
    ),
    ("PYTHONPATH is relative", variable("PYTHONPATH", "python"), "relative"),
    ("PYTHONPATH has an empty entry", variable("PYTHONPATH", "/nowhere:"), "empty entry"),
    ("the package is a link", linked_out("ptoas"), "leads out of"),
    ("a subpackage is a link", linked_out("ptoas/mlir"), "leads out of"),
    ("the native compiler is a link", linked_out(f"ptoas/{CORE}"), "leads out of"),
    ("a package of the wheel is gone", remove("ptodsl"), "does not find"),
    ("the compiler is gone", remove("ptoas"), "finds none"),
    (
        "it requires more",
        append(info("ptoas", "METADATA"), "Requires-Dist: ml-dtypes\n"),
        "requires 'ml-dtypes'",
    ),
    (
        "it requires an extra",
        append(info("ptoas", "METADATA"), "Requires-Dist: numpy[more]\n"),
        "requires 'numpy[more]'",
    ),
    (
        "numpy requires something",
        append(info("numpy", "METADATA"), "Requires-Dist: other\n"),
        "requires 'other'",
    ),
    ("numpy is missing", remove("numpy"), "requires numpy"),
    *(
        (f"{record} of {project} is missing", remove(info(project, record)), f"{record} is missing")
        for project in ("ptoas", "numpy")
        for record in RECORDS
    ),
    ("there are two records", create("ptoas-0.58.dist-info/METADATA"), "several records"),
    ("there is no record", remove("ptoas-0.57.dist-info"), "no record of a wheel"),
    (
        "the record is another project's",
        create(info("ptoas", "METADATA"), "Name: other\nVersion: 1\n"),
        "another project",
    ),
    (
        "the record is of another form",
        create(info("ptoas", "WHEEL"), "Wheel-Version: 2.0\n"),
        "Wheel-Version",
    ),
    ("it holds local builds", create("ptoas/_online/x"), "local builds in _online"),
    ("another package holds local builds", create("ptodsl/_online/x"), "local builds in _online"),
    (
        "a module stands before the native compiler",
        create("ptoas/_core.py"),
        "_core.py is no file of the ptoas wheel",
    ),
    ("the native compiler is gone", remove(f"ptoas/{CORE}"), "no native compiler"),
    ("the native compiler is a script", create(f"ptoas/{CORE}", "#!/bin/sh\n"), "ELF"),
    ("its library is gone", remove(f"ptoas/{LIBRARY}"), "No such file"),
    ("the script searches PATH", first_line("#!/usr/bin/env python3"), "no launcher"),
    (
        "the script has an option",
        launcher(lambda text: text.replace("\n", " -E\n", 1)),
        "no launcher",
    ),
    ("the script does more", launcher(lambda text: f"{text}import os\n"), "no launcher"),
    (
        "the script is a shell's",
        launcher(lambda text: '#!/bin/sh\nexec python3 -m ptoas "$@"\n'),
        "no launcher",
    ),
    (
        "the script starts another program",
        launcher(lambda text: text.replace("ptoas._cli", "other._cli")),
        "not the command of",
    ),
    (
        "the record does not list the script",
        create(info("ptoas", "RECORD"), "ptoas/__init__.py,,\n"),
        "RECORD does not list",
    ),
    ("the interpreter is gone", without_interpreter, "No such file"),
    (
        "the interpreter is a script",
        interpreter_copied(lambda path: path.write_text("#!/bin/sh\n")),
        "ELF",
    ),
    ("a hook makes a module of nothing", create("d.pth", without_file("made_up")), "no file holds"),
    ("a hook has the package already", create("d.pth", without_file("ptodsl")), "ptodsl"),
    ("there is no program", lambda h: (env(h) / "bin" / "ptoas").unlink(), "PTOAS_ROOT"),
]

TABLE = [
    *(Mutation(name, "ptoas", edit, Outcome.CHANGES) for name, edit in CHANGING),
    *(Mutation(name, "", edit, Outcome.KEEPS) for name, edit in KEEPING),
]
BYPASSES = [
    Mutation(name, "ptoas", edit, Outcome.BYPASSES, reason) for name, edit, reason in BYPASSING
]


@pytest.mark.conforms("cache.88")
@pytest.mark.parametrize("mutation", TABLE, ids=str)
def test_an_installed_wheel(wheel_house: House, mutation: Mutation) -> None:
    check(wheel_house, mutation)


@pytest.mark.conforms("cache.89")
@pytest.mark.parametrize("mutation", BYPASSES, ids=str)
def test_what_cannot_be_identified(wheel_house: House, mutation: Mutation) -> None:
    check(wheel_house, mutation)


def later(house: House) -> Path:
    """A directory that may appear."""
    return house.top / "later"


def named_by_hook(house: House) -> None:
    create("a_later.pth", f"# not there yet\n\n{later(house)}\n")(house)


def on_python_path_later(house: House) -> None:
    house.environ["PYTHONPATH"] = str(later(house))


def in_archive(house: House, content: str) -> None:
    with zipfile.ZipFile(later(house), "w") as archive:
        archive.writestr("more.py", content)


def appears(name: str) -> Edit:
    def edit(house: House) -> None:
        (later(house) / name).parent.mkdir(parents=True, exist_ok=True)
        (later(house) / name).write_text("")

    return edit


def namespace(name: str) -> Edit:
    """A directory that is no package yet, before the real one."""

    def edit(house: House) -> None:
        on_python_path_later(house)
        (later(house) / name).mkdir(parents=True)

    return edit


APPEARING: list[tuple[str, Edit, Edit, Outcome, str]] = [
    (
        "a directory of a pth file appears",
        named_by_hook,
        appears("sitecustomize.py"),
        Outcome.CHANGES,
        "",
    ),
    (
        "a directory of PYTHONPATH appears",
        on_python_path_later,
        appears("sitecustomize.py"),
        Outcome.CHANGES,
        "",
    ),
    (
        "a directory of PYTHONPATH gets a module of Python's own",
        on_python_path_later,
        appears("typing.py"),
        Outcome.BYPASSES,
        "typing.py stands before Python's own module",
    ),
    (
        "a namespace becomes a package",
        namespace("ptoas"),
        appears("ptoas/__init__.py"),
        Outcome.BYPASSES,
        "no record of a wheel for ptoas",
    ),
    (
        "an archive is written anew",
        lambda house: (on_python_path_later(house), in_archive(house, "")),
        lambda house: in_archive(house, "x = 1\n"),
        Outcome.CHANGES,
        "",
    ),
]


@pytest.mark.conforms("cache.88")
@pytest.mark.parametrize(
    ("prepare", "apply", "expect", "reason"),
    [row[1:] for row in APPEARING],
    ids=[row[0].replace(" ", "_") for row in APPEARING],
)
def test_what_appears_where_it_was_searched_before(
    wheel_house: House, prepare: Edit, apply: Edit, expect: Outcome, reason: str
) -> None:
    prepare(wheel_house)
    check(wheel_house, Mutation("it appears", "ptoas", apply, expect, reason))


# Some of each kind: this policy takes the same evidence for such an assembler.
_BY_CONTENT = (
    "the native compiler is rebuilt",
    "another package is installed",
    "ptodsl is redirected",
)


@pytest.mark.parametrize(
    "mutation", [found for found in [*TABLE, *BYPASSES] if found.name in _BY_CONTENT], ids=str
)
def test_an_installed_wheel_by_content(wheel_house: House, mutation: Mutation) -> None:
    check(wheel_house, mutation, "content")


@pytest.mark.conforms("cache.88")
def test_another_build_of_its_interpreter(wheel_house: House) -> None:
    interpreter_copied(lambda path: None)(wheel_house)
    edit = interpreter_copied(other_interpreter_build)
    check(wheel_house, Mutation("it is rebuilt", "ptoas", edit, Outcome.CHANGES))


@pytest.mark.conforms("cache.88")
def test_an_environment_whose_path_has_a_space(
    wheel_house: House, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Installers write another script for those."""
    wheels = sorted(env(wheel_house).parent.glob("*.whl"))
    environment = make_environment(tmp_path_factory.mktemp("a space") / "my env", *wheels)
    assert (environment / "bin" / "ptoas").read_text().startswith("#!/bin/sh\n")
    before = wheel_house.facts("ptoas")
    wheel_house.environ["PTOAS_ROOT"] = str(environment)
    facts = wheel_house.facts("ptoas")
    assert facts["launcher"] != before["launcher"]
    assert facts["ptoas.WHEEL"] == before["ptoas.WHEEL"]


def test_packages_of_a_user_are_looked_for_in_each_home(wheel_house: House) -> None:
    configuration = env(wheel_house) / "pyvenv.cfg"
    text = configuration.read_text()
    configuration.write_text(text.replace("packages = false", "packages = true"))
    wheel_house.environ["HOME"] = str(wheel_house.top / "one")
    # It may not be recalled, since nothing that is looked at again tells of another home.
    assert not wheel_house.known().recallable
    process = wheel_house.process()
    assert not isinstance(process.identity(), Unavailable)
    (wheel_house.top / "other" / ".local" / SITE / "SoftOps").mkdir(parents=True)
    wheel_house.environ["HOME"] = str(wheel_house.top / "other")
    found = process.identity()
    assert isinstance(found, Unavailable)
    assert "SoftOps is searched in" in found.reason


def test_a_program_that_does_not_work(wheel_house: House) -> None:
    script = site(wheel_house, "ptoas/_cli.py")
    works = script.read_text()
    script.write_text(f"{works}raise SystemExit('there is no licence')\n")
    found = wheel_house.capture()
    assert isinstance(found, Unavailable)
    assert "cannot be used" in found.reason
    assert "there is no licence" in found.reason
    script.write_text(works)  # a refusal is not remembered
    assert wheel_house.known()


@pytest.mark.conforms("cache.90")
def test_discovery_imports_no_part_of_the_compiler(wheel_house: House) -> None:
    script, mark = str(env(wheel_house) / "bin" / "ptoas"), env(wheel_house) / "imported"

    def discover() -> None:
        nowhere = ProbeRecords(None)
        wheel_facts(script, wheel_house.environ, str(wheel_house.sdk), nowhere, SYSTEM_DISK)

    discover()
    assert not mark.exists()
    wheel_house.known()  # the assembler is tried, as a program
    assert mark.exists()
    mark.unlink()
    append("startup_hook.py")(wheel_house)
    discover()
    assert not mark.exists()


@pytest.mark.conforms("cache.90")
def test_a_hook_alone_leaves_it_an_identity(wheel_house: House) -> None:
    facts = wheel_house.facts("ptoas")
    assert facts["startup.startup_hook"].startswith(str(site(wheel_house, "startup_hook.py")))
    assert "startup.helper_of_hook" in facts
    assert f"pth.{site(wheel_house, 'a_hook.pth')}" in facts
    assert wheel_house.known().recallable
    assert sys.version in facts["python.version"]
