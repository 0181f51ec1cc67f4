"""Validating one entry, beside a C loop that reads and hashes the same files (row 2).

The C side opens, reads and hashes ten files of 200 KB in all with libcrypto, one after the other.
Ours, with the validator that requests use, also reads the manifest, enumerates the tree and
compares.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

from measure import Comparison, interleave, parser, report, timed
from pypto.jit.native_validation import best_validator
from pypto_store import ArtifactKey, ArtifactSpec, ArtifactStore, Digest, Hit, Published, State

RUNS = 15

LOOP = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
extern "C" unsigned char* SHA256(const unsigned char*, size_t, unsigned char*);
extern "C" int hash_all(const char** paths, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status)) return -1;
    unsigned char* buffer = static_cast<unsigned char*>(malloc(status.st_size));
    if (read(fd, buffer, status.st_size) != status.st_size) return -1;
    close(fd);
    unsigned char digest[32];
    SHA256(buffer, status.st_size, digest);
    sum += digest[0];
    free(buffer);
  }
  return sum;
}
"""
FILES = {f"payload/part{index}.bin": (index + 1) * 3_636 for index in range(10)}


def fill(directory: Path) -> Path:
    """Write the files, with new content, below `directory`, and return that."""
    for name, size in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
    return directory


def compare(runs: int) -> list[Comparison]:
    """Publish one entry, then time both sides in turn."""
    with tempfile.TemporaryDirectory() as scratch:
        store = ArtifactStore(Path(scratch) / "root", validator=best_validator())
        blank = Digest("0" * 64)
        key = ArtifactKey(blank, blank, blank, blank, blank)
        spec = ArtifactSpec(State.READY, "program", tuple(FILES), ("a2a3sim",), "x86-64")
        built = store.get_or_build(key, spec, fill, private_parent=Path(scratch) / "private")
        if not isinstance(built, Published):
            raise SystemExit(f"the entry was not published: {built}")
        paths = [os.fsencode(f"{built.entry.path}/{name}") for name in FILES]
        library = f"{scratch}/loop.so"
        subprocess.run(
            [
                "g++",
                "-O2",
                "-shared",
                "-fPIC",
                "-x",
                "c++",
                "-",
                "-o",
                library,
                "-l:libcrypto.so.3",
            ],
            input=LOOP.encode(),
            check=True,
        )
        loop = ctypes.CDLL(library).hash_all
        array = (ctypes.c_char_p * len(paths))(*paths)

        def ours() -> float:
            def look() -> None:
                if not isinstance(store.lookup(key, spec), Hit):
                    raise SystemExit("the entry is not valid")

            return timed(look, 20)

        def base() -> float:
            def look() -> None:
                if loop(array, len(paths)) <= 0:
                    raise SystemExit("the C loop could not read the files")

            return timed(look, 20)

        ours_s, base_s = interleave(ours, base, runs)
    return [Comparison("2", "validate one entry", ours_s, "C read + SHA-256", base_s, runs, 1.25)]


if __name__ == "__main__":
    chosen = parser(__doc__, RUNS).parse_args()
    report(compare(chosen.runs), chosen)
