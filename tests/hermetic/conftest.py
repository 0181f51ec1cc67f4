"""The sample kernels, built twice in circumstances that have as little in common as can be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pypto
import pypto_store
import pypto_toolchains
import pytest
from pypto_store.listing import iterate_entries

HERE = Path(__file__).parent
# As imported: the files may be links to another place.
PACKAGES = [
    Path(str(module.__file__)).absolute().parent
    for module in (pypto, pypto_store, pypto_toolchains)
]
SAMPLES = ("sample_kernels.py", "build_samples.py", "extern")


@dataclass(frozen=True, slots=True)
class Built:
    """What one process built: every file of every entry, and what no file may name.

    `files` is by sample, state and path; `telling` are byte strings that tell of the process's
    circumstances.
    """

    files: Mapping[tuple[str, str, str], bytes]
    telling: tuple[bytes, ...]


def build(
    top: Path, *, user: str, serial: bool, umask: str, copy_product: bool, **environ: str
) -> Built:
    """Build all samples below `top`, as a user of that name would."""
    roots = [package.parent for package in PACKAGES]
    if copy_product:
        roots = [top / "product" / package.name for package in PACKAGES]
        for root, package in zip(roots, PACKAGES, strict=True):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(package, root / package.name, ignore=ignored)
    for name in ("samples", "home", "temporary", "work"):
        (top / name).mkdir(parents=True)
    for name in SAMPLES:
        place = top / "samples" / name
        if (HERE / name).is_dir():
            shutil.copytree(HERE / name, place)
        else:
            shutil.copyfile(HERE / name, place)
    result = subprocess.run(
        [
            sys.executable,
            str(top / "samples" / "build_samples.py"),
            str(top / "root"),
            *(["--serial"] if serial else []),
        ],
        cwd=top / "work",
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, roots)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(top / "home"),
            "TMPDIR": str(top / "temporary"),
            "USER": user,
            "LOGNAME": user,
            "SAMPLES_UMASK": umask,
            **environ,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    samples = {key: name for name, key in json.loads(result.stdout).items()}
    files = {
        (samples[row.key], row.state.value, record.path): Path(row.path, record.path).read_bytes()
        for row in iterate_entries(top / "root")
        if row.manifest is not None
        for record in row.manifest.files
    }
    places = (top, *roots, Path(sys.prefix), Path(sys.base_prefix), HERE)
    telling = {str(place) for place in places} | {str(place.resolve()) for place in places} | {user}
    return Built(files, tuple(sorted(map(os.fsencode, telling))))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Built in parallel, beside the product as it is."""
    return build(
        tmp_path_factory.mktemp("one"),
        user="somebody-with-a-name",
        serial=False,
        umask="022",
        copy_product=False,
        LC_ALL="C.UTF-8",
        TZ="UTC",
        PYTHONHASHSEED="1",
    )


@pytest.fixture(scope="session")
def built_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Built one by one, by another user in another place, with a product that was moved."""
    return build(
        tmp_path_factory.mktemp("another") / "a longer" / "way, to it",
        user="someone-else",
        serial=True,
        umask="077",
        copy_product=True,
        LC_ALL="C",
        LANG="de_DE.UTF-8",
        TZ="Asia/Tokyo",
        PYTHONHASHSEED="4711",
        SOURCE_DATE_EPOCH="86400",
    )
