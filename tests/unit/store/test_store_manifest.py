from __future__ import annotations

import json

import pytest
from pypto_store.digest import Digest
from pypto_store.manifest import SIZE_LIMIT, FileRecord, Manifest, ManifestError, parse
from pypto_store.testing import GENERATED, READY, ready_spec, sample_key

SHA = "ab" * 32
FILES = (
    FileRecord("a b", 2, SHA, False),
    FileRecord("kernel_config.json", 0, SHA, False),
    FileRecord("x/kernel.bin", 10, SHA, True),
)


def encoded(spec=READY, files=FILES, key=None):
    return Manifest(key or sample_key(), spec, files).encode()


def edited(change, data=None):
    """The canonical bytes of a manifest whose document `change` has edited."""
    document = json.loads(data or encoded())
    change(document)
    return (json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n").encode()


def test_encoding_is_canonical_json():
    data = encoded()
    document = json.loads(data)
    again = json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"
    assert again.encode() == data
    assert document["schema"] == 1
    assert document["files"][2] == {
        "path": "x/kernel.bin",
        "size": 10,
        "sha256": SHA,
        "executable": True,
    }


@pytest.mark.parametrize("spec", [GENERATED, READY])
@pytest.mark.parametrize("files", [FILES, FILES[1:2]])
def test_round_trip(spec, files):
    data = encoded(spec, files)
    expected = Manifest(sample_key(), spec, files)
    assert parse(data) == expected
    assert parse(data, key=sample_key()) == expected
    assert parse(data, key=sample_key(), spec=spec) == expected


def test_another_key_or_spec_is_refused():
    data = encoded()
    with pytest.raises(ManifestError, match="belongs to key"):
        parse(data, key=sample_key("two"))
    with pytest.raises(ManifestError, match="specification"):
        parse(data, key=sample_key(), spec=ready_spec("x86-64"))
    with pytest.raises(ManifestError, match="specification"):
        parse(data, key=sample_key(), spec=GENERATED)


def set_in(document, path, value):
    *parents, last = path
    for step in parents:
        document = document[step]
    document[last] = value


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("schema",), 2, "schema 2"),
        (("schema",), True, "schema True"),
        (("schema",), 1.0, "schema 1.0"),
        (("schema",), "1", "schema"),
        (("extra",), 1, "unknown field 'extra'"),
        (("key",), SHA, "key"),
        (("components",), [], "components is not an object"),
        (("components", "extra"), SHA, "unknown field"),
        (("components", "source"), SHA, "components"),
        (("components", "source"), "x", "components"),
        (("components", "source"), 3, "text"),
        (("spec",), None, "spec is not an object"),
        (("spec", "state"), "done", "state"),
        (("spec", "build_kind"), 1, "text"),
        (("spec", "cpu_level"), "", "cpu_level"),
        (("spec", "required_files"), "a", "list"),
        (("spec", "required_files"), ["gone"], "required file 'gone'"),
        (("spec", "execution"), [1], "text"),
        (("files",), {}, "files is not a list"),
        (("files", 0), "a", "file is not an object"),
        (("files", 0, "extra"), 1, "unknown field"),
        (("files", 0, "size"), True, "type"),
        (("files", 0, "size"), -1, "size"),
        (("files", 0, "size"), 2.0, "type"),
        (("files", 0, "size"), "2", "type"),
        (("files", 0, "size"), None, "type"),
        (("files", 0, "size"), 2**63, "size"),
        (("files", 0, "executable"), 0, "canonical"),
        (("files", 0, "executable"), None, "canonical"),
        (("files", 0, "sha256"), SHA.upper(), "sha256"),
        (("files", 0, "sha256"), "", "sha256"),
        (("files", 0, "sha256"), 1, "type"),
        (("files", 0, "path"), "/etc/passwd", "absolute"),
        (("files", 0, "path"), "../up", "normal"),
        (("files", 0, "path"), "a/./b", "normal"),
        (("files", 0, "path"), "z", "ascending"),
        (("files", 0, "path"), "kernel_config.json", "ascending"),
        (("files", 0, "path"), "\ud800", "UTF-8"),
        (("files", 0, "path"), "artifact_manifest.json", "reserved"),
        (("files", 0, "path"), None, "type"),
        (("files", 0, "path"), "kernel_config.json/below", "ascending"),
    ],
)
@pytest.mark.parametrize("expected", [False, True])
def test_wrong_documents_are_explained(path, value, reason, expected):
    data = edited(lambda document: set_in(document, path, value))
    given = {"key": sample_key(), "spec": READY} if expected else {}
    with pytest.raises(ManifestError) as error:
        parse(data, **given)
    if not expected:
        assert reason in str(error.value) or "type" in reason


def test_a_file_cannot_also_be_a_directory():
    files = (FileRecord("a", 1, SHA, False), FileRecord("a/b", 1, SHA, False), *FILES[1:])
    with pytest.raises(ManifestError, match="both"):
        Manifest(sample_key(), READY, files)
    one = encoded(files=(FileRecord("aXb", 1, SHA, False), *files[0:1], *FILES[1:])[1:])
    sneaky = one.replace(b'"size":1}', b'"size":1},' + json.dumps(
        {"executable": False, "path": "a/b", "sha256": SHA, "size": 1},
        sort_keys=True, separators=(",", ":"),
    ).encode(), 1)  # fmt: skip
    for given in ({}, {"key": sample_key(), "spec": READY}):
        with pytest.raises(ManifestError, match="both"):
            parse(sneaky, **given)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data + b"\n",
        lambda data: b" " + data,
        lambda data: data.replace(b":1,", b": 1,", 1),
        lambda data: data.replace(b'"size":2', b'"size":2,"size":2'),
        lambda data: data.replace(b'"size":2', b'"size":02'),
        lambda data: data.replace(b'"size":0', b'"size":-0'),
        lambda data: data.replace(b'"size":2', b'"size":2e0'),
        lambda data: data.replace(b'"size":2', b'"size":NaN'),
        lambda data: data.replace(b"a b", b"\\u0061 b"),
        lambda data: data.replace(b"kernel.bin", "kernel.bín".encode()),
        lambda data: data.replace(b'"files":[', b'"files":[,'),
        lambda data: data.replace(b"}],", b"},],"),
        lambda data: data.replace(b'"schema":1', b'"schema":1,"schema":1'),
        lambda data: b"",
        lambda data: b"null\n",
        lambda data: b"[" * 100_000,
        lambda data: data.replace(b'"size":2', b'"size":' + b"9" * 5000),
        lambda data: data + b" " * SIZE_LIMIT,
    ],
)
@pytest.mark.parametrize("given", [{}, {"key": sample_key()}, {"key": sample_key(), "spec": READY}])
def test_any_other_spelling_is_refused(change, given):
    data = change(encoded())
    assert data != encoded()
    with pytest.raises(ManifestError):
        parse(data, **given)


def test_duplicate_fields_are_named():
    data = encoded().replace(b'"size":2', b'"size":2,"size":2')
    with pytest.raises(ManifestError, match="'size' is given twice"):
        parse(data)


def test_manifest_larger_than_the_limit_cannot_be_made():
    files = [FileRecord("kernel_config.json", 0, SHA, False)]
    files += [FileRecord(f"z/{n:07d}" + "n" * 240, 0, SHA, False) for n in range(50_000)]
    with pytest.raises(ManifestError, match="larger"):
        Manifest(sample_key(), READY, tuple(files)).encode()


def test_find_and_payload_size():
    manifest = Manifest(sample_key(), READY, FILES)
    assert manifest.payload_size == 12
    assert manifest.find("x/kernel.bin") == FILES[2]
    assert manifest.find("x") is None
    assert Digest(manifest.find("a b").sha256).hex == SHA
