"""Real wheels of an assembler, built here, and real environments that pip installs them into.

The wheel is shaped as those of newer assemblers are: a console script, packages of device code, and
a native compiler, which here passes the work on to the assembler that comes with the product.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pypto.runtime.sdk import default_sdk_root

_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
SITE = f"lib/{_VERSION}/site-packages"
CORE = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
LIBRARY = "mlir/_mlir_libs/libPTOASCompiler.so"

_CLI = """\
import sys


def main():
    import numpy
    from ptoas import _core

    return _core.main(sys.argv)
"""
# Whoever imports the package leaves a mark.
_INIT = """\
import os, sys
open(os.path.join(sys.prefix, "imported"), "w").close()
"""
_LIBRARY_SOURCE = r"""
#include <unistd.h>
extern "C" int run_compiler(const char* program, char** arguments) {
  return execv(program, arguments);
}
"""
_CORE_SOURCE = r"""
#include <Python.h>
#include <dlfcn.h>
#include <string>
#include <vector>
extern "C" int run_compiler(const char* program, char** arguments);
static PyObject* run(PyObject*, PyObject* given) {
  Dl_info here;
  dladdr(reinterpret_cast<void*>(&run), &here);
  std::string home(here.dli_fname);
  std::string program = home.substr(0, home.rfind('/')) + "/_runtime/assembler";
  std::vector<std::string> words;
  for (Py_ssize_t i = 0; i < PyList_Size(given); ++i)
    words.push_back(PyUnicode_AsUTF8(PyList_GetItem(given, i)));
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return PyLong_FromLong(run_compiler(program.c_str(), arguments.data()));
}
static PyMethodDef methods[] = {{"main", run, METH_O, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_core", "", -1, methods};
PyMODINIT_FUNC PyInit__core() { return PyModule_Create(&module); }
"""


def build_natives(directory: Path) -> None:
    """Compile the native parts of the wheel into `directory`/ptoas."""
    home = directory / "ptoas"
    (home / LIBRARY).parent.mkdir(parents=True)
    for name, source in (("library.cpp", _LIBRARY_SOURCE), ("core.cpp", _CORE_SOURCE)):
        (directory / name).write_text(source)
    shared = ["g++", "-shared", "-fPIC", "-Wl,--build-id=sha1"]
    environ = {"PATH": os.environ["PATH"]}
    subprocess.run(
        [*shared, "library.cpp", "-o", str(home / LIBRARY)], cwd=directory, env=environ, check=True
    )
    subprocess.run(
        [
            *shared, f"-I{sysconfig.get_path('include')}", "core.cpp", "-o", str(home / CORE),
            "-Lptoas/mlir/_mlir_libs", "-lPTOASCompiler", "-Wl,-rpath,$ORIGIN/mlir/_mlir_libs",
        ],
        cwd=directory, env=environ, check=True,
    )  # fmt: skip
    (home / "_runtime").mkdir()
    shutil.copy(default_sdk_root() / "bin" / "ptoas", home / "_runtime" / "assembler")
    (home / "_runtime" / "assembler").chmod(0o755)


def assembler_files(natives: Path) -> dict[str, bytes]:
    """What the wheel of the assembler holds beside its records."""
    files = {
        "ptoas/__init__.py": _INIT.encode(),
        "ptoas/_cli.py": _CLI.encode(),
        "ptoas/mlir/__init__.py": b"",
        "ptodsl/__init__.py": b"",
        "TileOps/__init__.py": b"",
        "SoftOps/soft.h": b"// a namespace package: it has no __init__.py\n",
    }
    for path in sorted((natives / "ptoas").rglob("*")):
        if path.is_file():
            files[str(path.relative_to(natives))] = path.read_bytes()
    return files


def write_wheel(
    directory: Path,
    name: str,
    version: str,
    files: Mapping[str, bytes],
    *,
    requires: tuple[str, ...] = (),
    scripts: Mapping[str, str] | None = None,
) -> Path:
    """A wheel of `files`, with its records; `scripts` are console scripts."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    metadata += [f"Requires-Dist: {requirement}\n" for requirement in requires]
    content = {
        **files,
        f"{info}/METADATA": "".join(metadata).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\n"
        b"Tag: py3-none-any\n",
    }
    if scripts:
        rows = "".join(f"{script} = {entry}\n" for script, entry in scripts.items())
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{rows}".encode()
    record = [f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in content.items()]
    content[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    wheel = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in content.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100755 if "_runtime/" in path else 0o100644) << 16
            archive.writestr(entry, data)
    return wheel


def make_environment(directory: Path, *wheels: Path) -> Path:
    """A virtual environment with `wheels`, installed by pip."""
    # What pip and venv are told by the environment of the tests is none of theirs.
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory.parent)}
    subprocess.run(
        [sys.executable, "-I", "-m", "venv", "--without-pip", str(directory)],
        env=environ,
        check=True,
    )
    subprocess.run(
        [
            sys.executable, "-I", "-m", "pip", "--quiet", "--disable-pip-version-check",
            "--python", str(directory / "bin" / "python"),
            "install", "--no-index", "--no-deps", *map(str, wheels),
        ],
        env=environ, check=True,
    )  # fmt: skip
    return directory


def assembler_wheel(directory: Path) -> Path:
    """The wheel of the assembler."""
    natives = directory / "natives"
    if not natives.is_dir():
        build_natives(natives)
    return write_wheel(
        directory,
        "ptoas",
        "0.57",
        assembler_files(natives),
        requires=("numpy>=1.26",),
        scripts={"ptoas": "ptoas._cli:main"},
    )


def numpy_wheel(directory: Path) -> Path:
    """A wheel named numpy, with nothing in it."""
    return write_wheel(
        directory, "numpy", "2.4.0", {"numpy/__init__.py": b"__version__ = '2.4.0'\n"}
    )


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
