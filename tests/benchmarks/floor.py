"""The floor under a READY hit: the least that any validating cache has to do.

One entry of ten files, 200 KB, with a manifest of SHA-256 digests; a shared lock, the exact set of
files, every byte hashed, the library opened, one call. Standard library only.

    python floor.py make DIR      builds the entry with g++
    python floor.py hit DIR       prints JSON: seconds of the first and of a repeated hit
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

SOURCE = """
#include <cstdint>
extern "C" void add(const float* a, const float* b, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}
extern "C" const char ballast[120000] = {1};
"""


def make(directory: Path) -> None:
    """Build the entry."""
    directory.mkdir(parents=True)
    subprocess.run(
        ["g++", "-O2", "-fPIC", "-shared", "-x", "c++", "-", "-o", str(directory / "kernel.so")],
        input=SOURCE.encode(),
        check=True,
    )
    for index in range(8):
        text = "".join(f"// line {line} of generated file {index}\n" for line in range(400))
        (directory / f"source{index}.cpp").write_text(text[:8000], encoding="utf-8")
    files = {}
    for path in sorted(directory.iterdir()):
        content = path.read_bytes()
        files[path.name] = [len(content), hashlib.sha256(content).hexdigest()]
    (directory / "manifest.json").write_text(json.dumps({"files": files}), encoding="utf-8")


def hit(directory: str) -> ctypes._NamedFuncPointer:
    """Validate the whole entry and return its function."""
    lock = os.open(directory + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_SH)
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def read(name: str) -> bytes:
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
        try:
            return os.read(opened, os.fstat(opened).st_size + 1)
        finally:
            os.close(opened)

    files = json.loads(read("manifest.json"))["files"]
    if set(os.listdir(handle)) != {*files, "manifest.json"}:
        raise SystemExit("the entry has other files than its manifest")
    for name, (size, digest) in files.items():
        content = read(name)
        if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
            raise SystemExit(f"{name} does not match the manifest")
    function = ctypes.CDLL(directory + "/kernel.so").add
    function.restype = None
    function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64]
    os.close(handle)
    os.close(lock)
    return function


def main() -> None:
    """Run as a script."""
    action, directory = sys.argv[1:]
    if action == "make":
        make(Path(directory))
        return
    values, out = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)()
    address = ctypes.addressof(values)
    begin = time.perf_counter()
    hit(directory)(address, address, ctypes.addressof(out), 4)
    first = time.perf_counter() - begin
    if list(out) != [2, 4, 6, 8]:
        raise SystemExit("the loaded function gave a wrong result")
    repeated = []
    for _ in range(100):
        begin = time.perf_counter()
        hit(directory)
        repeated.append(time.perf_counter() - begin)
    print(json.dumps({"first_s": first, "repeat_s": sorted(repeated)[50]}))


if __name__ == "__main__":
    main()
