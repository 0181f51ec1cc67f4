"""What gives a kernel another key, and what does not."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MANY = """
import torch, warnings
def sample(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, device="meta")
from pypto.runtime import RunConfig
report["keys"] = {name: make() for name, make in [%s]}
"""


def key(house: Any, **options: Any) -> str:
    report = house.run(house.COMPILE, **options)
    assert report["stats"]["bypasses"] == 0, report
    return str(report["key"])


def _edit(old: str, new: str) -> Callable[[Any], None]:
    def change(house: Any) -> None:
        assert old in house.KERNELS
        house.write(house.KERNELS.replace(old, new, 1))

    return change


def _touch(house: Any) -> None:
    os.utime(house.modules / "kernels.py", (1, 1))


def _move(house: Any) -> None:
    house.modules = house.modules.rename(house.top / "elsewhere")


def test_what_keeps_the_key(house: Any) -> None:
    first = key(house)
    for change in (
        _touch,
        _edit("import pypto", "# a line\n\n\nimport pypto"),
        _edit("SCALE = 2.0", "UNUSED = 7\nSCALE = 4.0 / 2"),
        _move,
    ):
        change(house)
        assert key(house) == first
    assert key(house, env={"PATH": os.environ["PATH"] + ":/nowhere", "LANG": "C"}) == first


EDITS = {
    "the kernel": _edit("    out = helper(x, out)\n", "    out = helper(x, out)  #\n"),
    "a helper": _edit("pl.mul(tile, SCALE)", "pl.add(tile, SCALE)"),
    "a global": _edit("SCALE = 2.0", "SCALE = 3.0"),
    "a global's type": _edit("SCALE = 2.0", "SCALE = 2"),
    "an annotation": _edit("x: pl.Tensor[[16, 64]", "x: pl.Tensor[[16, 64 ]"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_changes_the_key(house: Any, name: str) -> None:
    first = key(house)
    EDITS[name](house)
    assert key(house) != first


OBJECTS = """
import dataclasses
import enum
FACTOR = 2.0
class Mode(enum.Enum):
    FAST = 1
    @property
    def scale(self): return FACTOR
@dataclasses.dataclass(frozen=True)
class Config:
    @property
    def scale(self): return FACTOR
CONFIG = Config()
CONFIGS = (CONFIG,)
"""


@pytest.mark.parametrize(
    ("before", "used"),
    [("", "Mode.FAST.scale"), ("", "CONFIGS[0].scale"), ("    c = CONFIG\n", "c.scale")],
)
def test_what_an_object_computes_counts(house: Any, before: str, used: str) -> None:
    text = house.KERNELS.replace("    tile =", before + "    tile =").replace("SCALE)", f"{used})")
    assert used in text
    house.write(OBJECTS + text)
    step = """
keys = [kernels.kernel.compile().artifact_key]
kernels.FACTOR = 3.0
keys.append(kernels.kernel.compile().artifact_key)
report["keys"] = keys
"""
    report = house.run(step)
    assert None not in report["keys"]
    house.write(OBJECTS.replace("2.0", "3.0") + text)
    assert len({*report["keys"], key(house)}) == 2


def test_the_epoch_and_a_tool_change_the_key(house: Any) -> None:
    keys = [key(house), key(house, env={"PYPTO_CACHE_EPOCH": "2"})]
    early = house.top / "early"
    early.mkdir()
    found = shutil.which("as")
    assert found is not None
    shutil.copy(found, early / "as")
    keys.append(key(house, env={"PATH": f"{early}:{os.environ['PATH']}"}))
    assert len(set(keys)) == 3


def test_the_fingerprint_and_extra_sources_change_the_key(house: Any) -> None:
    extra = house.top / "extra.txt"
    extra.write_text("1")
    keys = [
        key(house),
        key(house, cache={"extra_fingerprint": "v1"}),
        key(house, cache={"extra_source_paths": (str(extra),)}),
    ]
    extra.write_text("2")
    keys.append(key(house, cache={"extra_source_paths": (str(extra),)}))
    assert len(set(keys)) == 4


@pytest.fixture
def own_product(house: Any) -> Any:
    """The house with an installation of its own, which may be changed."""
    roots = []
    for root, name in zip(
        house.import_roots, ("pypto", "pypto_store", "pypto_toolchains"), strict=True
    ):
        target = house.top / "product" / name
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(root) / name, target / name, ignore=ignore)
        roots.append(str(target))
    house.import_roots = roots
    return house


def _header(house: Any) -> Path:
    return Path(house.import_roots[0]) / "pypto" / "_sdk" / "include" / "pto" / "pto-inst.hpp"


def _rebuild_sdk(house: Any) -> None:
    """Record the revision of the files as they are, as the build does."""
    sdk = Path(house.import_roots[0]) / "pypto" / "_sdk"
    names = sorted(
        str(path.relative_to(sdk))
        for path in sdk.rglob("*")
        if path.is_file() and path.name != "sdk.json"
    )
    content = hashlib.sha256()
    for name in names:
        digest = hashlib.sha256((sdk / name).read_bytes()).hexdigest()
        content.update(f"{name}\0{digest}\n".encode())
    metadata = json.loads((sdk / "sdk.json").read_text())
    metadata["revision"] = content.hexdigest()
    (sdk / "sdk.json").chmod(0o644)
    (sdk / "sdk.json").write_text(json.dumps(metadata))


def test_a_rebuilt_header_and_an_edited_compiler_change_the_key(own_product: Any) -> None:
    first = key(own_product)
    header = _header(own_product)
    header.chmod(0o644)
    header.write_text(header.read_text() + "\n// edited\n")
    _rebuild_sdk(own_product)
    second = key(own_product)
    printer = Path(own_product.import_roots[0]) / "pypto" / "codegen" / "__init__.py"
    printer.chmod(0o644)
    printer.write_text(printer.read_text() + "\n# edited\n")
    assert len({first, second, key(own_product)}) == 3


def test_a_header_patched_in_place_is_noticed_on_a_miss(own_product: Any) -> None:
    header = _header(own_product)
    header.chmod(0o644)
    header.write_text(header.read_text() + "\n// patched\n")
    report = own_product.run(own_product.COMPILE)
    assert report["key"] is None
    assert report["stats"]["misses"] == report["stats"]["bypasses"] == 1
    assert "changed after it was built" in report["stats"]["last_bypass_reason"]
    assert not own_product.slots("generated")


def test_a_header_patched_in_place_spoils_no_binaries_of_earlier_sources(own_product: Any) -> None:
    own_product.run(own_product.COMPILE)
    header = _header(own_product)
    header.chmod(0o644)
    header.write_text(header.read_text() + "\n// patched\n")
    report = own_product.run(own_product.WARM)
    assert report["key"] is None
    assert report["stats"]["generated_hits"] == report["stats"]["bypasses"] == 1
    assert not own_product.slots("ready")


def test_a_product_installed_elsewhere_gives_the_same_key(own_product: Any) -> None:
    first = key(own_product)
    moved = own_product.top / "moved"
    (own_product.top / "product").rename(moved)
    own_product.import_roots = [str(moved / Path(r).name) for r in own_product.import_roots]
    assert key(own_product) == first


SPECIAL = """
import pypto.language as pl

N = pl.dynamic("N")


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor], s: pl.Scalar[pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), s), [0, 0], out)
    return out


@pl.jit
def dynamic(
    x: pl.Tensor[[N, 64], pl.FP32], out: pl.Out[pl.Tensor[[N, 64], pl.FP32]], k: pl.constexpr = 1
):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), k), [0, 0], out)
    return out
"""

KEYS = """
import torch, warnings
from pypto.backend import BackendType
from pypto.runtime import RunConfig
def t(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, device="meta")
k, d = kernels.kernel, kernels.dynamic
def key(compiled):
    return compiled.artifact_key
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    old = RunConfig(platform="a5sim")
report["keys"] = {
    "base": key(k.compile(t(16, 64), t(16, 64), 1.0)),
    "scalar": key(k.compile(t(16, 64), t(16, 64), 2.0)),
    "shape": key(k.compile(t(32, 64), t(32, 64), 1.0)),
    "dtype": key(k.compile(t(16, 64, dtype=torch.float16), t(16, 64, dtype=torch.float16), 1.0)),
    "platform": key(k.compile(t(16, 64), t(16, 64), 1.0, config=old)),
    "arch": key(
        k.compile(t(16, 64), t(16, 64), 1.0, config=RunConfig(arch=BackendType.Ascend950))
    ),
    "signature": key(d.compile()),
    "samples": key(d.compile(t(16, 64), t(16, 64))),
    "other extent": key(d.compile(t(48, 64), t(48, 64))),
    "constant": key(d.compile(k=2)),
    "typed constant": key(d.compile(k=1.0)),
}
report["same"] = d.compile() is d.compile(t(80, 64), t(80, 64))
"""


def test_specializations(house: Any) -> None:
    house.write(SPECIAL)
    report = house.run(KEYS)
    keys = report["keys"]
    assert report["stats"]["bypasses"] == 0
    assert keys["scalar"] == keys["base"]
    assert keys["platform"] == keys["arch"]
    assert keys["signature"] == keys["samples"] == keys["other extent"]
    assert report["same"]
    distinct = ("base", "shape", "dtype", "platform", "signature", "constant", "typed constant")
    assert len({keys[name] for name in distinct}) == len(distinct)
