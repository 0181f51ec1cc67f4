"""Standalone assemblers, real executables made by g++: some work, some do not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from pypto.runtime.sdk import default_sdk_root

BUNDLED = default_sdk_root() / "bin" / "ptoas"

# Translates as ours does, as long as the program has this name.
ONLY_THE_SAMPLE = r"""
#include <cstdio>
#include <cstring>
#include <unistd.h>
int main(int, char** argv) {
  for (char** word = argv; *word; ++word)
    if (std::strstr(*word, "ptoas_sample")) execv(PROGRAM, argv);
  std::fputs("not in the mood\n", stderr);
  return 3;
}
"""
FAILING = r"""
#include <cstdio>
int main() {
  for (int i = 0; i < 2000; ++i) std::fputs("a lot of notes\n", stderr);
  std::fputs("loc(1:2): error: unknown operation\n", stderr);
  return 1;
}
"""
OF_ANOTHER_DIALECT = r"""
#include <cstdio>
int main() {
  std::puts("#include \"common/pto_instr.hpp\"\n__global__ AICORE void sample() {}");
}
"""
SILENT = "int main() {}\n"


def make_program(source: str, directory: Path, *options: str) -> Path:
    """Compile `source` to the executable ``directory/ptoas``."""
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "ptoas"
    text = directory / "ptoas.cpp"
    text.write_text(source)
    subprocess.run(
        [
            *("g++", f'-DPROGRAM="{BUNDLED}"', "-Wl,--build-id=sha1"),
            *(str(text), "-o", str(program), *options),
        ],
        env={"PATH": os.environ["PATH"]},
        check=True,
    )
    text.unlink()
    return program


def make_unstartable(directory: Path) -> Path:
    """An executable that needs a library which is not there."""
    library = directory / "libMissingPart.so.1"
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "part.cpp"
    source.write_text('extern "C" int part() { return 0; }\n')
    environ = {"PATH": os.environ["PATH"]}
    subprocess.run(
        ["g++", "-shared", "-fPIC", f"-Wl,-soname,{library.name}", str(source), "-o", str(library)],
        env=environ,
        check=True,
    )
    program = make_program(
        'extern "C" int part();\nint main() { return part(); }\n', directory, str(library)
    )
    library.unlink()
    source.unlink()
    return program


def without_build_id(path: Path) -> None:
    """Take its Build-ID from an executable."""
    subprocess.run(
        ["objcopy", "--remove-section", ".note.gnu.build-id", str(path)],
        env={"PATH": os.environ["PATH"]},
        check=True,
    )
