"""What evidence says of a key's inputs: each difference that changes a digest changes a text."""

from __future__ import annotations

import dataclasses
import enum
import importlib.util
import itertools
import sys

import pypto.language as pl
import pytest
from pypto.ir.options import MemoryPlanner
from pypto.jit import evidence as subject
from pypto.jit.application import application_digest
from pypto.jit.binding import Signature
from pypto.jit.names import NameUse
from pypto.jit.policy import CachePolicy
from pypto.jit.source import SourceCapture
from pypto.jit.specialization import Specialization
from pypto.jit.value_text import Undecodable, ValueReader
from pypto.jit.values import encode
from pypto.runtime.options import CompileOptions
from pypto_store import ArtifactKey, Digest
from pypto_toolchains.evidence import Evidence
from pypto_toolchains.identity import ToolchainIdentity
from pypto_toolchains.packages import hash_files

_NUMBER = itertools.count()


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float


KERNEL = """
import pypto.language as pl
from types import SimpleNamespace

SCALE = 2.0
UNUSED = 1
CONFIG = SimpleNamespace(module=SimpleNamespace(tile=(16, 64)), flag=True)

@pl.jit.incore
def helper(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], [CONFIG.module.tile[0], 64])
    out = pl.store(pl.mul(tile, SCALE), [0, 0], out)
    return out

@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    out = helper(x, out)
    return out
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Import a text as the module `kernels_told`."""

    def importing(text):
        path = tmp_path / f"{next(_NUMBER)}" / "kernels_told.py"
        path.parent.mkdir()
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("kernels_told", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "kernels_told", module)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        spec.loader.exec_module(module)
        return module

    return importing


def snapshot_of(module):
    return SourceCapture(module.kernel.declaration).take()


def records_of(module, *, options=None, policy=None, identity=None, arguments=()):
    snapshot = snapshot_of(module)
    bound = Signature("kernel", (), {})._bound(dict(arguments), ())
    specialization = Specialization.of(bound, options or CompileOptions())
    policy = policy or CachePolicy("/r", False, (), None)
    identity = identity or identity_with()
    application = application_digest(
        policy.extra_source_paths, policy.extra_fingerprint, hash_files
    )
    key = ArtifactKey(
        Digest.of(b"f"), identity.digest, snapshot.digest, application, specialization.digest
    )
    found = subject.evidence(key, snapshot, specialization, policy, identity, hash_files)
    return {record.component: record for record in found}


def identity_with(facts=(("driver.version", "12.2"),), settings=(("policy", "build"),)):
    component = Evidence.of("device_toolchain", tuple(facts))
    return ToolchainIdentity(component.digest, (component,), tuple(settings))


def texts(record):
    return {(item.of, item.name): item.value for item in record.inputs}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"), (True, "True"), (..., "..."), (1, "1"), (-255, "-255"), (0.0, "0.0"),
        (-0.0, "-0.0"), (1e300, "1e+300"), (2j, "2j"), ("a\n'", '"a\\n\'"'), (b"\0", "b'\\x00'"),
        ((), "()"), ((1,), "(1,)"), ([1, "x"], "[1, 'x']"), ({"a": (1, 2)}, "{'a': (1, 2)}"),
        (frozenset({1}), "frozenset({1})"), ({2}, "{2}"),
        (Point(1, 2.0), f"{__name__}:Point(1, 2.0)"),
        (Colour.RED, f"{__name__}:Colour.RED = 1"),
    ],
)  # fmt: skip
def test_a_value_reads_back(value, text):
    reader = ValueReader(encode(value, lambda _: None), ())
    assert reader.value() == text
    assert reader.done


def test_a_huge_integer_reads_back():
    assert ValueReader(encode(10**9000, lambda _: None), ()).value() == hex(10**9000)


@pytest.mark.parametrize(
    "data",
    [b"", b"q1:x", b"i3:ab", b"s-1:", b"f12", b"o8:function", b"t9:i1:1", b"i2:zz", b"d2:b1"],
)
def test_what_is_no_encoding_is_said(data):
    with pytest.raises(Undecodable):
        ValueReader(data, ()).value()


def test_the_source_is_told_function_by_function(load):
    record = records_of(load(KERNEL))["source"]
    assert record.subject == "kernels_told:kernel"
    assert record.digest == snapshot_of(sys.modules["kernels_told"]).digest
    told = texts(record)
    helper, kernel = "function kernels_told:helper", "function kernels_told:kernel"
    assert told[(helper, "global SCALE")] == "2.0"
    assert told[(helper, "global CONFIG.module.tile")] == "(16, 64)"
    assert told[(helper, "global pl")] == "module pypto.language"
    assert told[(helper, "text")].startswith("@pl.jit.incore\ndef helper(")
    assert told[(kernel, "global helper")] == "function kernels_told:helper"
    assert told[(kernel, "kind")] == "orchestration"
    assert told[(helper, "defaults")] == "(None, None)"
    assert not any("UNUSED" in name for _, name in told)
    assert not any(value.startswith("sha256") for value in told.values()), told


def differing(one, other):
    before, after = texts(one), texts(other)
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("SCALE = 2.0", "SCALE = -2.0", "global SCALE"),
        ("SCALE = 2.0", "SCALE = 2", "global SCALE"),
        ("tile=(16, 64)", "tile=(16, 32)", "global CONFIG.module.tile"),
        ("pl.mul(tile, SCALE)", "pl.add(tile, SCALE)", "text"),
        ("@pl.jit.incore\n", "@pl.jit.inline\n", "kind"),
    ],
)
def test_what_changes_the_source_is_what_differs(load, old, new, name):
    before = records_of(load(KERNEL))["source"]
    after = records_of(load(KERNEL.replace(old, new)))["source"]
    assert before.digest != after.digest
    assert ("function kernels_told:helper", name) in differing(before, after)
    assert len(differing(before, after)) <= 2  # the decorator is text, too


def test_a_name_that_reads_like_a_mark_is_no_mark(load):
    module = load(KERNEL.replace("CONFIG.module.tile[0]", "CONFIG.module.tile[0] + CONFIG.name.n"))
    module.CONFIG.name = type("Named", (), {"n": 3})()
    told = texts(records_of(module)["source"])
    assert told[("function kernels_told:helper", "global CONFIG.name.n")] == "3"
    assert told[("function kernels_told:helper", "global CONFIG.module.tile")] == "(16, 64)"


def test_a_name_of_ours_below_an_attribute_that_reads_like_a_mark():
    use = NameUse("CONFIG", (("module",),))
    encoding = b"module\0name\0pypto.language:load\0module"
    assert list(subject._paths(use, encoding, ())) == [("module", "pypto.language:load")]


def test_a_closure_is_told_and_its_indentation_is_not(load):
    inner = "\n".join("    " + line for line in KERNEL.partition("@pl.jit\n")[2].splitlines())
    text = (
        KERNEL.partition("@pl.jit\n")[0]
        + "def make(n):\n    @pl.jit\n"
        + inner.replace("out = helper(x, out)", "out = helper(x, out)\n        m = n")
        + "\n    return kernel\nkernel = make(7)\n"
    )
    told = texts(records_of(load(text))["source"])
    of = "function kernels_told:make.<locals>.kernel"
    assert told[(of, "closure n")] == "7"
    assert told[(of, "text")].startswith("    @pl.jit\n")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"platform": "a5sim"}, "platform"),
        ({"memory_planner": next(iter(MemoryPlanner))}, "memory_planner"),
        ({"analyze_auto_scopes_for_deps": True}, "auto_deps"),
    ],
)
def test_each_option_of_the_key_is_told(load, change, name):
    module = load(KERNEL)
    before = records_of(module)["specialization"]
    after = records_of(module, options=CompileOptions(**change))["specialization"]
    assert before.digest != after.digest
    assert differing(before, after) == {("option", name)}


def test_parameters_are_told_by_shape_dtype_and_value(load):
    module = load(KERNEL)
    kernel = module.kernel
    snapshot, signature = kernel._source()
    bound = signature.bind_signature({})
    record = records_of(module, arguments=bound.arguments)["specialization"]
    told = texts(record)
    assert told[("parameter x", "dtype")] == "FP32"
    assert told[("parameter x", "shape")] == "[16, 64]"
    from pypto.ir.nodes import DynDim, TensorType
    from pypto.language.source import ConstValue

    arguments = {
        "x": TensorType((DynDim("n"), 64), pl.FP16),
        "tile": ConstValue((1, "two")),
    }
    told = texts(records_of(module, arguments=arguments)["specialization"])
    assert told[("parameter x", "shape")] == "[dynamic, 64]"
    assert told[("parameter x", "dtype")] == "FP16"
    assert told[("parameter tile", "value")] == "(1, 'two')"
    del snapshot


def test_the_application_is_told_by_file(load, tmp_path):
    module = load(KERNEL)
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "a.py").write_text("1")
    (tmp_path / "weights.bin").write_bytes(b"w")
    policy = CachePolicy(
        "/r", False, (str(tmp_path / "extra"), str(tmp_path / "weights.bin")), "revision 7"
    )
    before = records_of(module, policy=policy)["application"]
    told = texts(before)
    assert told[("fingerprint", "text")] == "revision 7"
    assert ("extra source 1: extra", "file a.py") in told
    (tmp_path / "extra" / "a.py").write_text("2")
    after = records_of(module, policy=policy)["application"]
    assert differing(before, after) == {("extra source 1: extra", "file a.py")}


def test_inputs_that_changed_meanwhile_are_not_told(load, tmp_path):
    """Evidence under the digest of other files would explain a difference that is none."""
    module = load(KERNEL)
    path = tmp_path / "a.bin"
    path.write_bytes(b"1")
    policy = CachePolicy("/r", False, (str(path),), None)
    snapshot = snapshot_of(module)
    bound = Signature("kernel", (), {})._bound({}, ())
    specialization = Specialization.of(bound, CompileOptions())
    identity = identity_with()
    key = ArtifactKey(
        Digest.of(b"f"),
        identity.digest,
        snapshot.digest,
        application_digest(policy.extra_source_paths, None, hash_files),
        specialization.digest,
    )
    arguments = (key, snapshot, specialization, policy, identity, hash_files)
    assert "application" in {record.component for record in subject.evidence(*arguments)}
    path.write_bytes(b"2")
    assert "application" not in {record.component for record in subject.evidence(*arguments)}
    path.unlink()
    assert "application" not in {record.component for record in subject.evidence(*arguments)}


def test_tools_and_settings_are_told(load):
    module = load(KERNEL)
    before = records_of(module)["environment"]
    newer = identity_with(
        facts=(("driver.version", "12.3"),), settings=(("policy", "build"), ("CPATH", "/x"))
    )
    after = records_of(module, identity=newer)["environment"]
    assert differing(before, after) == {
        ("device_toolchain", "driver.version"),
        ("setting", "CPATH"),
    }
    assert texts(before)[("device_toolchain", "driver.version")] == "12.2"
    absent = identity_with(settings=(("policy", "build"), ("CPATH", None)))
    assert ("setting", "CPATH") not in texts(records_of(module, identity=absent)["environment"])


def test_what_cannot_be_read_back_is_told_by_its_digest(load):
    module = load(KERNEL)
    snapshot = snapshot_of(module)
    position = next(
        number for number, (declared, _) in enumerate(snapshot.functions)
        if declared.unit.endswith("helper")
    )  # fmt: skip
    fields = list(snapshot.fields)
    scale = b"\0" + encode(2.0, lambda _: None)
    odd = [b"\xff" if item == scale else item for item in fields[position]]
    assert odd != list(fields[position])
    fields[position] = tuple(odd)
    told = {
        (item.of, item.name): item.value
        for item in subject._sources(dataclasses.replace(snapshot, fields=tuple(fields)))
    }
    assert told[("function kernels_told:helper", "global SCALE")].startswith("sha256 ")
