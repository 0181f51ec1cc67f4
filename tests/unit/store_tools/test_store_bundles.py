"""Bundles: what `export` writes and `import` takes, and what neither does."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import tarfile

import pytest
import zstandard
from pypto_store import ArtifactStore, Hit, State, crash_points, iterate_entries
from pypto_store.bundle import frame
from pypto_store.bundle.faults import BundleError
from pypto_store.bundle.index import SIZE_LIMIT, Index, parse_index
from pypto_store.bundle.unpacking import unpack
from pypto_store.evidence import EvidenceRecord, Input, load
from pypto_store.layout import Layout
from pypto_store.locks import acquire
from pypto_store.testing import GENERATED, PAYLOAD, READY, payload_builder, sample_key, snapshot
from pypto_store.tools import quantities, selection

KEY = sample_key("one").digest.hex


@pytest.fixture
def bundle(root, command, tmp_path):
    """A bundle of the whole root."""
    path = tmp_path / "all.tar.zst"
    assert command("export", "--root", root, "--all", "-o", path).status == 0
    return path


def members(path):
    """Names and bytes in a bundle, read by other people's code."""
    with (
        zstandard.ZstdDecompressor().stream_reader(io.BytesIO(path.read_bytes())) as stream,
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        return {member.name: archive.extractfile(member).read() for member in archive}


def entries(root):
    """Modes and bytes of all entries; inodes and the rest of the root are its own."""
    return {
        path: (mode, data)
        for path, (mode, _, data) in snapshot(root).items()
        if path.startswith("artifacts")
    }


def packed(content):
    compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
    out = io.BytesIO()
    with compressor.stream_writer(out, closefd=False) as stream:
        stream.write(content)
    return out.getvalue()


def unpacked(path):
    return zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()


# -- what a bundle is


def test_a_bundle_makes_an_equal_store_elsewhere(root, bundle, command, tmp_path):
    done = command("import", "--root", tmp_path / "far" / "root", bundle)
    assert done.status == 0
    assert done.document["counts"]["imported"] == 4
    assert entries(tmp_path / "far" / "root") == entries(root)
    store = ArtifactStore(tmp_path / "far" / "root", readonly=True)
    assert isinstance(store.lookup(sample_key("one"), READY), Hit)
    assert isinstance(store.lookup(sample_key("two", "elsewhere"), GENERATED), Hit)


def test_equal_entries_give_equal_bytes(root, bundle, command, tmp_path):
    there = tmp_path / "there"
    command("import", "--root", there, bundle)
    os.utime(there / "STORE", (1, 1))
    again = tmp_path / "again.tar.zst"
    done = command("export", "--root", there, "--all", "-o", again)
    assert again.read_bytes() == bundle.read_bytes()
    assert done.document["sha256"] == hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert done.document["size"] == bundle.stat().st_size


def test_a_bundle_begins_with_its_index_and_holds_each_content_once(bundle):
    found = members(bundle)
    names = list(found)
    assert names[0] == "pypto-bundle.json"
    index = json.loads(found["pypto-bundle.json"])
    assert index["schema"] == 1
    assert len(index["entries"]) == 4
    digests = [blob["sha256"] for blob in index["blobs"]]
    assert names[1:] == [f"blobs/{digest}" for digest in digests] == sorted(names[1:])
    assert {hashlib.sha256(found[f"blobs/{digest}"]).hexdigest(): None for digest in digests} == (
        dict.fromkeys(digests)
    )
    assert sorted(found[name] for name in names[1:]) == sorted(PAYLOAD.values())
    assert b"/" + b"tmp" not in found["pypto-bundle.json"]


def test_importing_again_changes_nothing(bundle, command, tmp_path):
    command("import", "--root", tmp_path / "there", bundle)
    before = snapshot(tmp_path / "there")
    done = command("import", "--root", tmp_path / "there", bundle)
    assert done.status == 0
    assert done.document["counts"]["present"] == 4
    assert snapshot(tmp_path / "there") == before


def test_executable_and_plain_files_of_one_content_keep_their_modes(command, tmp_path):
    def build(directory):
        for name, mode in (("a", 0o755), ("b", 0o644), ("kernel_config.json", 0o644)):
            (directory / name).write_bytes(b"same")
            (directory / name).chmod(mode)

    ArtifactStore(tmp_path / "root").get_or_build(
        sample_key(), READY, build, private_parent=tmp_path / "p"
    )
    command("export", "--root", tmp_path / "root", "--all", "-o", tmp_path / "b")
    command("import", "--root", tmp_path / "there", tmp_path / "b")
    found = ArtifactStore(tmp_path / "there").lookup(sample_key(), READY)
    modes = {name: os.access(found.entry.path / name, os.X_OK) for name in ("a", "b")}
    assert modes == {"a": True, "b": False}


def test_exporting_is_no_use_of_an_entry(root, command, tmp_path):
    manifests = [os.path.join(row.path, "artifact_manifest.json") for row in iterate_entries(root)]
    for path in manifests:
        os.utime(path, (5, 10))
    command("export", "--root", root, "--all", "-o", tmp_path / "b")
    assert {os.stat(path).st_atime for path in manifests} == {5}


# -- choosing


def test_keys_choose_entries_by_their_beginning(root, command, tmp_path):
    done = command("export", "--root", root, KEY[:6], "-o", tmp_path / "b")
    assert {entry["key"] for entry in done.document["entries"]} == {KEY}
    assert len(done.document["entries"]) == 3


@pytest.mark.parametrize("words", [[], ["--all", KEY], ["--kernel", "add", "--all"]])
def test_exactly_one_choice_is_wanted(root, command, tmp_path, words):
    done = command("export", "--root", root, *words, "-o", tmp_path / "b")
    assert done.status == 2
    assert "say what to export" in done.err
    assert not (tmp_path / "b").exists()


def test_evidence_chooses_by_kernel_and_travels_only_when_asked(root, command, tmp_path):
    record = EvidenceRecord.of(
        "source", sample_key("one").source, [Input("add", "file", "/home/me/k.py")], "m:add"
    )
    ArtifactStore(root).keep_evidence([record])
    done = command("export", "--root", root, "--kernel", "m:add", "-o", tmp_path / "b")
    assert {entry["key"] for entry in done.document["entries"]} == {KEY}
    assert done.document["evidence_records"] == 0
    assert b"/home/me" not in unpacked(tmp_path / "b")
    refused = command("export", "--root", root, "--kernel", "m:mul", "-o", tmp_path / "c")
    assert refused.status == 1

    words = ["--all", "--with-evidence", "-o", tmp_path / "d"]
    assert command("export", "--root", root, *words).document["evidence_records"] == 1
    done = command("import", "--root", tmp_path / "there", tmp_path / "d")
    assert done.document["evidence_records"] == 1
    assert load(Layout(str(tmp_path / "there")), record.digest) == record


# -- damage


def test_damaged_entries_are_left_out_and_told(root, command, tmp_path):
    row = next(row for row in iterate_entries(root) if row.state is State.READY)
    file = os.path.join(row.path, "prebuilt/kernel_0.bin")
    os.unlink(file)  # its bytes are shared with others
    with open(file, "wb") as out:
        out.write(b"x" * len(PAYLOAD["prebuilt/kernel_0.bin"]))
    done = command("export", "--root", root, "--all", "-o", tmp_path / "b")
    assert done.status == 1
    assert [damage["path"] for damage in done.document["damaged"]] == [row.path]
    assert len(json.loads(members(tmp_path / "b")["pypto-bundle.json"])["entries"]) == 3


def test_a_file_that_changes_while_it_is_packed_gives_no_bundle(
    root, command, tmp_path, monkeypatch
):
    real = selection.validate_payload

    def validate(descriptor, files):
        real(descriptor, files)
        place = os.readlink(f"/proc/self/fd/{descriptor}") + "/kernels/aiv/add.cpp"
        os.unlink(place)
        with open(place, "wb") as out:
            out.write(PAYLOAD["kernels/aiv/add.cpp"].swapcase())

    monkeypatch.setattr(selection, "validate_payload", validate)
    done = command("export", "--root", root, KEY, "-o", tmp_path / "b")
    assert done.status == 2
    assert "changed since it was validated" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_a_damaged_slot_is_told_and_stays(root, bundle, command, tmp_path):
    there = tmp_path / "there"
    slot = there / os.path.relpath(next(iterate_entries(root)).path, root)
    slot.mkdir(parents=True)
    (slot / "artifact_manifest.json").write_bytes(b"{}")
    done = command("import", "--root", there, bundle)
    assert done.status == 1
    assert done.document["counts"] == {
        "imported": 3, "present": 0, "other": 0, "damaged": 1, "failed": 0,
    }  # fmt: skip
    told = next(entry for entry in done.document["entries"] if entry["fate"] == "damaged")
    assert str(slot) in told["reason"]
    assert [path.name for path in slot.iterdir()] == ["artifact_manifest.json"]
    assert (slot / "artifact_manifest.json").read_bytes() == b"{}"


def test_a_valid_entry_of_other_bytes_stays(bundle, command, tmp_path):
    there = tmp_path / "there"
    other = dict(PAYLOAD, empty=b"not so empty")
    store = ArtifactStore(there)
    store.get_or_build(
        sample_key("one"), READY, payload_builder(other), private_parent=tmp_path / "p"
    )
    done = command("import", "--root", there, bundle)
    assert done.status == 0
    assert done.document["counts"]["other"] == 1
    assert store.lookup(sample_key("one"), READY).entry.read("empty") == b"not so empty"


def test_a_store_that_cannot_be_written_fails_by_entry_and_leaves_nothing(
    bundle, command, tmp_path, monkeypatch
):
    built = []

    def count(point):
        if point == "import.entry":
            built.append(len(list(tmp_path.glob("pypto-import-*/private/*"))))

    monkeypatch.setattr(os, "mkdir", refuse_below(tmp_path / "there" / "artifacts", os.mkdir))
    with crash_points.armed(count):
        done = command("import", "--root", tmp_path / "there", "--scratch", tmp_path, bundle)
    assert built == [1, 1, 1, 1]
    assert done.status == 1
    assert done.document["counts"]["failed"] == 4
    assert "No space left" in done.document["entries"][0]["reason"]
    assert not list(tmp_path.glob("pypto-import-*"))


def test_a_store_that_cannot_be_locked_is_told_at_once(bundle, command, tmp_path, monkeypatch):
    monkeypatch.setattr("pypto_store.tools.import_._LOCK_SECONDS", 0.2)
    layout = Layout(str(tmp_path / "there"))
    with acquire(layout.store_lock, shared=False, timeout=1):
        done = command("import", "--root", tmp_path / "there", bundle)
    assert (done.status, "cannot lock" in done.err) == (3, True)
    monkeypatch.setattr(os, "mkdir", refuse_below(tmp_path / "other", os.mkdir))
    done = command("import", "--root", tmp_path / "other", bundle)
    assert (done.status, "No space left" in done.err) == (2, True)
    assert list(iterate_entries(tmp_path / "there")) == []


def refuse_below(top, call):
    def refusing(path, *arguments, **named):
        if os.fspath(path).startswith(str(top)):
            raise OSError(28, os.strerror(28), path)
        return call(path, *arguments, **named)

    return refusing


# -- hostile files: nothing below the root is touched


def refused(command, tmp_path, data, *words):
    """Import `data`, which must be refused without a trace; what was said."""
    path = tmp_path / "hostile"
    path.write_bytes(data)
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    done = command("import", "--root", tmp_path / "there", "--scratch", scratch, *words, path)
    assert done.status == 2, done
    assert not (tmp_path / "there").exists()
    assert not list(scratch.iterdir())
    return done.err


def test_every_truncation_is_refused(bundle, command, tmp_path):
    data = bundle.read_bytes()
    for size in [*range(0, 40), *range(40, len(data), 97), *range(len(data) - 8, len(data))]:
        assert "hostile: " in refused(command, tmp_path, data[:size]), size


def test_what_follows_the_end_is_refused(bundle, command, tmp_path):
    data = bundle.read_bytes()
    for more in (b"x", packed(b"x"), b"\x50\x2a\x4d\x18\x01\0\0\0x"):
        assert "follows the end" in refused(command, tmp_path, data + more)
    assert "follows the end" in refused(command, tmp_path, packed(unpacked(bundle) + bytes(512)))


@pytest.mark.parametrize("data", [b"", b"no bundle", b"\x28\xb5\x2f\xfd"], ids=repr)
def test_other_files_are_refused(command, tmp_path, data):
    refused(command, tmp_path, data)


def archived(members):
    """A tar file of (TarInfo, bytes)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        end = archive.offset
    # Without the padding to a whole tape record.
    return out.getvalue()[:end] + bytes(1024)


def member(name, **fields):
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


HOSTILE = {
    "parent": {"name": "../escape"},
    "absolute": {"name": "/tmp/escape"},
    "symbolic link": {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
    "hard link": {"type": tarfile.LNKTYPE, "linkname": "pypto-bundle.json"},
    "device": {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3},
    "pipe": {"type": tarfile.FIFOTYPE},
    "directory": {"type": tarfile.DIRTYPE},
    "sparse": {"type": tarfile.GNUTYPE_SPARSE},
    "contiguous": {"type": tarfile.CONTTYPE},
    "old style": {"type": tarfile.AREGTYPE},
    "another mode": {"mode": 0o4755},
    "an owner": {"uid": 1000, "uname": "me"},
    "a time": {"mtime": 1},
    "extended header": {"pax_headers": {"path": "../escape"}},
    "extended size": {"pax_headers": {"size": "99"}},
    "long name": {"name": "blobs/" + "a" * 300},
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("where", ["index", "content"])
def test_members_of_another_spelling_are_refused(bundle, command, tmp_path, case, where):
    ordered = list(members(bundle).items())
    changed = 0 if where == "index" else 1
    made = []
    for number, (name, data) in enumerate(ordered):
        fields = HOSTILE[case] if number == changed else {}
        keep = fields.get("type", tarfile.REGTYPE) in (tarfile.REGTYPE, tarfile.AREGTYPE)
        made.append((member(**{"name": name, **fields}), data if keep else b""))
    told = refused(command, tmp_path, packed(archived(made)))
    assert ("does not begin with" if where == "index" else "something else where") in told


def test_people_may_pack_a_bundle_anew(bundle, command, tmp_path):
    """What the cases above change, and nothing else, is what makes them refused."""
    ordered = [(member(name), data) for name, data in members(bundle).items()]
    (tmp_path / "anew").write_bytes(packed(archived(ordered)))
    done = command("import", "--root", tmp_path / "there", tmp_path / "anew")
    assert done.document["counts"]["imported"] == 4


def test_a_member_too_many_or_twice_is_refused(bundle, command, tmp_path):
    ordered = [(member(name), data) for name, data in members(bundle).items()]
    last = ordered[-1]
    for made in ([*ordered, last], [*ordered, (member("x"), b"")], ordered[:-1], ordered[::-1]):
        refused(command, tmp_path, packed(archived(made)))


def test_other_bytes_under_a_digest_are_refused(bundle, command, tmp_path):
    content = bytearray(unpacked(bundle))
    at = content.index(PAYLOAD["kernels/aiv/add.cpp"])
    content[at] ^= 1
    assert "other bytes than its digest says" in refused(command, tmp_path, packed(bytes(content)))


def test_every_byte_between_the_members_is_compared(bundle, command, tmp_path):
    content = unpacked(bundle)
    index = len(members(bundle)["pypto-bundle.json"])
    gaps = [512 + index, 512 + index - index % 512 + 511, len(content) - 1024, len(content) - 1]
    for at in gaps:
        assert content[at] == 0
        changed = bytearray(content)
        changed[at] = 1
        refused(command, tmp_path, packed(bytes(changed)))


def test_contents_that_change_before_they_are_published_are_noticed(bundle, command, tmp_path):
    """The store believes what a builder gives it, so this is the last look at a failing disk."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def spoil(point):
        if point == "import.verified":
            for place in scratch.glob("*/contents/*"):
                place.write_bytes(place.read_bytes().swapcase())

    with crash_points.armed(spoil):
        done = command("import", "--root", tmp_path / "there", "--scratch", scratch, bundle)
    assert done.status == 2
    assert "has changed" in done.err
    assert list(iterate_entries(tmp_path / "there")) == []
    assert not list(scratch.iterdir())


def test_a_bomb_is_refused_before_it_is_unpacked(bundle, command, tmp_path):
    assert "limit of 100" in refused(command, tmp_path, bundle.read_bytes(), "--max-size", "100")
    zeros = packed(bytes(300 * 1024 * 1024))
    assert len(zeros) < 100_000
    assert "does not begin with" in refused(command, tmp_path, zeros)
    huge = member("pypto-bundle.json", size=SIZE_LIMIT + 1).tobuf(tarfile.USTAR_FORMAT)
    assert "larger than" in refused(command, tmp_path, packed(huge + bytes(10_000_000)))


def test_a_frame_that_wants_much_memory_is_refused(bundle, command, tmp_path):
    parameters = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = compressor.compress(unpacked(bundle)) + compressor.flush()
    assert "too much memory" in refused(command, tmp_path, data)


def test_reading_keeps_little_in_memory(tmp_path, monkeypatch):
    """However well something packs, one step unpacks to little."""
    sizes = []
    real = frame.FrameReader._unpack_some

    def measured(reader):
        data = real(reader)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(frame.FrameReader, "_unpack_some", measured)
    reader = frame.FrameReader(io.BytesIO(packed(bytes(200 * 1024 * 1024))), lambda _: None)
    for _ in range(400):
        reader.exactly(512 * 1024)
    reader.finish()
    assert max(sizes) <= 32 * 1024 * 1024


def test_a_disk_that_is_too_small_is_told_before_anything_is_written(bundle, tmp_path, monkeypatch):
    class Full:
        f_bavail, f_frsize = 1, 512

    monkeypatch.setattr(os, "statvfs", lambda _: Full)
    (tmp_path / "contents").mkdir()
    with pytest.raises(BundleError, match="512 left"), bundle.open("rb") as source:
        unpack(source, str(tmp_path / "contents"), 10**9, lambda _: None)
    assert not list((tmp_path / "contents").iterdir())


# -- the index


@pytest.fixture
def document(bundle):
    return json.loads(members(bundle)["pypto-bundle.json"])


def encoded(document):
    return (json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n").encode("ascii")


def test_the_index_reads_back(document):
    index = parse_index(encoded(document))
    assert index.encode() == encoded(document)
    assert {manifest.key for manifest in index.entries} == {
        sample_key("one"),
        sample_key("two", "elsewhere"),
    }


def change_path(document):
    document["entries"][0]["files"][0]["path"] = "../../escape"


CHANGES = {
    "an unknown field": lambda d: d.update(more=1),
    "a missing field": lambda d: d.pop("records"),
    "another schema": lambda d: d.update(schema=2),
    "true for one": lambda d: d.update(schema=True),
    "entries out of order": lambda d: d["entries"].reverse(),
    "an entry twice": lambda d: d["entries"].append(d["entries"][-1]),
    "a blob too many": lambda d: d["blobs"].append({"sha256": "f" * 64, "size": 1}),
    "a blob too few": lambda d: d["blobs"].pop(),
    "another size of a blob": lambda d: d["blobs"][0].update(size=1),
    "two sizes of a content": lambda d: d["entries"][0]["files"][0].update(size=99),
    "an escaping path": change_path,
    "an entry that is none": lambda d: d["entries"].append({}),
    "entries that are no list": lambda d: d.update(entries={}),
    "a record of nobody": lambda d: d["records"].append(
        {"digest": "e" * 64, "sha256": d["blobs"][0]["sha256"], "size": d["blobs"][0]["size"]}
    ),
    "a record that is none": lambda d: d["records"].append(7),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_changed_index_is_refused(document, case):
    CHANGES[case](document)
    with pytest.raises(BundleError):
        parse_index(encoded(document))


@pytest.mark.parametrize(
    "data", [b"", b"[" * 100_000, b'{"schema":1}', b"[]", b"\xff", b"9" * 10_000], ids=range(6)
)
def test_bytes_that_are_no_index_are_refused(data):
    with pytest.raises(BundleError):
        parse_index(data)


def test_another_spelling_of_an_index_is_refused(document):
    with pytest.raises(BundleError, match="canonical"):
        parse_index(encoded(document).replace(b'"schema":1', b'"schema": 1'))
    assert parse_index(Index(()).encode()) == Index(())


def test_evidence_that_is_none_is_refused(root, command, tmp_path):
    record = EvidenceRecord.of("source", sample_key("one").source, [Input("a", "b", "value")])
    ArtifactStore(root).keep_evidence([record])
    command("export", "--root", root, "--all", "--with-evidence", "-o", tmp_path / "b")
    index, *blobs = members(tmp_path / "b").items()
    wrong = record.encode().replace(b"value", b"v\x00lue")
    told = json.loads(index[1])
    old = told["records"][0]["sha256"]
    new = hashlib.sha256(wrong).hexdigest()
    told["records"][0]["sha256"] = new
    contents = {name.removeprefix("blobs/"): data for name, data in blobs}
    del contents[old]
    contents[new] = wrong
    told["blobs"] = [{"sha256": name, "size": len(contents[name])} for name in sorted(contents)]
    made = [(member(index[0]), encoded(told))]
    made += [(member(f"blobs/{name}"), contents[name]) for name in sorted(contents)]
    assert "not JSON" in refused(command, tmp_path, packed(archived(made)))


# -- the command line


def test_bundles_go_through_pipes(root, bundle, tmp_path):
    python = [sys.executable, "-m", "pypto_store"]
    there = tmp_path / "there"
    words = ["export", "--root", root, "--all", "-o", "-"]
    exported = subprocess.run([*python, *words], capture_output=True, check=True)
    assert exported.stdout == bundle.read_bytes()
    assert json.loads(exported.stderr)["bundle"] == "-"
    words = ["import", "--root", there, "-"]
    imported = subprocess.run(
        [*python, *words], input=exported.stdout, capture_output=True, check=True
    )
    assert json.loads(imported.stdout)["counts"]["imported"] == 4
    assert entries(there) == entries(root)


def test_a_terminal_gets_no_bundle(root, command, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "isatty", lambda _: True)
    done = command("export", "--root", root, "--all", "-o", "-")
    assert (done.status, "not for a terminal" in done.err) == (2, True)
    assert command("export", "--root", root, "--all", "-o", tmp_path / "b").status == 0


def test_a_bundle_is_replaced_only_by_a_complete_one(root, bundle, command, tmp_path, monkeypatch):
    before = bundle.read_bytes()

    def full(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("pypto_store.bundle.packing.Packing.write", full)
    done = command("export", "--root", root, "--all", "-o", bundle)
    assert done.status == 2
    assert bundle.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"all.tar.zst", "root"}


@pytest.mark.parametrize("words", [["export", "--all", "-o"], ["report", "--html"]])
def test_what_is_no_file_is_written_to_and_not_replaced(root, command, tmp_path, words):
    """As root, a rename over /dev/null would take it away from everyone."""
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    link.symlink_to(target)
    target.write_bytes(b"old")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 1 << 20)
    try:
        assert command(words[0], "--root", root, *words[1:], pipe).status == 0
        assert len(os.read(reader, 1 << 20)) > 100
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert command(words[0], "--root", root, *words[1:], link).status == 0
    assert link.is_symlink()
    assert len(target.read_bytes()) > 100
    assert command(words[0], "--root", root, *words[1:], tmp_path).status == 2
    assert {path.name for path in tmp_path.iterdir()} == {"link", "pipe", "root", "target"}


def test_places_inside_the_store_are_refused(root, bundle, command, tmp_path):
    before = snapshot(root)
    (tmp_path / "alias").symlink_to(root)
    for output in (root / "b", tmp_path / "alias" / "b"):
        done = command("export", "--root", root, "--all", "-o", output)
        assert (done.status, "lies in the store" in done.err) == (2, True)
    done = command("import", "--root", root, "--scratch", tmp_path / "alias", bundle)
    assert (done.status, "lies in the store" in done.err) == (2, True)
    assert snapshot(root) == before


def test_a_missing_library_is_named_with_its_extra(root, bundle, command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    for words in (
        ["export", "--root", root, "--all", "-o", tmp_path / "b"],
        ["import", "--root", tmp_path / "there", bundle],
    ):
        done = command(*words)
        assert done.status == 2
        assert "pip install 'zstandard>=0.22'" in done.err


@pytest.mark.parametrize(("text", "size"), [("500", 500), ("4K", 4096), ("3GiB", 3 << 30)])
def test_sizes_have_units(text, size):
    assert quantities.size(text) == size


def test_a_terminal_reads_what_became_of_the_entries(root, bundle, on_terminal, tmp_path):
    there = tmp_path / "there"
    assert "4 imported" in on_terminal("import", "--root", there, bundle).out
    assert "4 present" in on_terminal("import", "--root", there, bundle).out
    told = on_terminal("export", "--root", root, "--all", "-o", tmp_path / "b").out
    assert "4 entries" in told
    assert hashlib.sha256(bundle.read_bytes()).hexdigest() in told
