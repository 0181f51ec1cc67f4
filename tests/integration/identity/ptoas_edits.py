"""What may happen to an environment that an assembler is installed in, as edits of a house."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from mutations import House, other_build_id, this_python
from ptoas_wheels import SITE, make_environment, write_wheel

Edit = Callable[[House], object]


def env(house: House) -> Path:
    """The environment that the assembler is installed in."""
    return Path(house.environ["PTOAS_ROOT"])


def site(house: House, name: str = "") -> Path:
    """A file of its packages."""
    return env(house) / SITE / name


def info(project: str, record: str) -> str:
    """The path of a record below the packages."""
    version = {"ptoas": "0.57", "numpy": "2.4.0"}[project]
    return f"{project}-{version}.dist-info/{record}"


def append(name: str, text: str = "\n") -> Edit:
    """Add to a file of the packages."""

    def edit(house: House) -> None:
        path = site(house, name)
        path.write_text(path.read_text() + text)

    return edit


def create(name: str, text: str = "") -> Edit:
    """Make a file among the packages."""

    def edit(house: House) -> None:
        path = site(house, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return edit


def remove(name: str) -> Edit:
    """Remove a file or directory of the packages."""

    def edit(house: House) -> None:
        path = site(house, name)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    return edit


def rebuilt(name: str) -> Edit:
    """Another build of a native file."""
    return lambda house: other_build_id(site(house, f"ptoas/{name}"))


def linked_out(name: str) -> Edit:
    """Move a part of the packages away and leave a link in its place."""

    def edit(house: House) -> None:
        elsewhere = house.top / "elsewhere"
        shutil.move(site(house, name), elsewhere)
        site(house, name).symlink_to(elsewhere)

    return edit


def launcher(change: Callable[[str], str]) -> Edit:
    """Edit the command's script."""

    def edit(house: House) -> None:
        script = env(house) / "bin" / "ptoas"
        script.write_text(change(script.read_text()))

    return edit


def first_line(line: str) -> Edit:
    """Another first line for the script."""
    return launcher(lambda text: line + text[text.index("\n") :])


def as_uv_writes_it(text: str) -> str:
    """The script in the words of the other installer, after the lines that name its interpreter."""
    return text[: text.index("# -*- coding")] + (
        "# -*- coding: utf-8 -*-\nimport sys\nfrom ptoas._cli import main\n"
        'if __name__ == "__main__":\n'
        '    if sys.argv[0].endswith("-script.pyw"):\n'
        "        sys.argv[0] = sys.argv[0][:-11]\n"
        '    elif sys.argv[0].endswith(".exe"):\n'
        "        sys.argv[0] = sys.argv[0][:-4]\n"
        "    sys.exit(main())\n"
    )


def without_interpreter(house: House) -> None:
    """Remove what the script names."""
    for python in (env(house) / "bin").glob("python*"):
        python.unlink()


def variable(name: str, value: str) -> Edit:
    """Set a variable."""

    def edit(house: House) -> None:
        house.environ[name] = value

    return edit


def on_python_path(name: str, text: str = "") -> Edit:
    """A directory on PYTHONPATH that has a module or package of this name."""

    def edit(house: House) -> None:
        path = house.top / "more" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        house.environ["PYTHONPATH"] = str(house.top / "more")

    return edit


def redirected(package: str) -> Edit:
    """What an editable install does: a finder, installed by a hook, that leads elsewhere."""

    def edit(house: House) -> None:
        source = house.top / "source" / package
        source.mkdir(parents=True)
        (source / "__init__.py").write_text("")
        site(house, "redirecting_finder.py").write_text(
            "import importlib.util, sys\n"
            "class Finder:\n"
            "    def find_spec(name, path=None, target=None):\n"
            f"        if name == {package!r}:\n"
            f"            return importlib.util.spec_from_file_location(name,\n"
            f"                {str(source / '__init__.py')!r},\n"
            f"                submodule_search_locations=[{str(source)!r}])\n"
            "sys.meta_path.insert(0, Finder)\n"
        )
        site(house, "redirect.pth").write_text("import redirecting_finder\n")

    return edit


def shadowed_by_hook(package: str) -> Edit:
    """A hook that puts a directory before all others."""

    def edit(house: House) -> None:
        package_file = house.top / "shadow" / package / "__init__.py"
        package_file.parent.mkdir(parents=True)
        package_file.write_text("")
        line = f"import sys; sys.path.insert(0, {str(house.top / 'shadow')!r})\n"
        site(house, "shadow.pth").write_text(line)

    return edit


def extended(package: str) -> Edit:
    """A second directory of a namespace package, which a hook adds to the search path."""

    def edit(house: House) -> None:
        (house.top / "portion" / package).mkdir(parents=True)
        site(house, "portion.pth").write_text(f"{house.top / 'portion'}\n")

    return edit


def interpreter_copied(change: Callable[[Path], object]) -> Edit:
    """The environment's interpreter becomes a file of its own."""

    def edit(house: House) -> None:
        python = env(house) / "bin" / "python"
        python.unlink()
        shutil.copy(this_python(), python)
        change(python)

    return edit


def other_interpreter_build(path: Path) -> None:
    """Another build of an interpreter, which may have no Build-ID to tell it by."""
    try:
        other_build_id(path)
    except AssertionError:
        path.write_bytes(path.read_bytes() + b"\n")


def another_numpy(house: House) -> None:
    """NumPy is upgraded."""
    wheel = write_wheel(house.top, "numpy", "2.5.0", {"numpy/__init__.py": b""})
    make_environment(house.top / "other", wheel)
    remove("numpy")(house)
    remove("numpy-2.4.0.dist-info")(house)
    for name in ("numpy", "numpy-2.5.0.dist-info"):
        shutil.copytree(house.top / "other" / SITE / name, site(house, name))


def without_file(package: str) -> str:
    """A hook's line that makes a module which no file holds."""
    return f"import sys, types; sys.modules[{package!r}] = types.ModuleType({package!r})\n"
