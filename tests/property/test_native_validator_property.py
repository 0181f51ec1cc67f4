"""The native reader of manifests accepts exactly what the store's parser accepts, where it speaks.

What it declines is decided by the store's parser anyway; what it accepts, nobody looks at again.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from pypto.jit.native_validation import NativeValidator
from pypto_store.keys import ArtifactSpec, State
from pypto_store.manifest import FileRecord, Manifest, ManifestError, parse
from pypto_store.paths import path_fault
from pypto_store.testing import sample_key
from pypto_store.validation import SlotFault

HINT = b"{}"
HINT_SHA = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
NAME = "kernel_config.json"

shas = st.binary(min_size=32, max_size=32).map(bytes.hex)
components = st.text("abXY09_.+@=-", min_size=1, max_size=4) | st.sampled_from(["a", "b", "é", " "])
paths = st.lists(components, min_size=1, max_size=4).map("/".join)
others = st.lists(
    st.builds(
        FileRecord,
        paths.filter(lambda path: path_fault(path) is None),
        st.integers(0, 2**63 - 1) | st.integers(0, 20),
        shas,
        st.booleans(),
    ),
    max_size=6,
    unique_by=lambda record: record.path,
)
specs = st.builds(
    ArtifactSpec,
    st.just(State.READY),
    st.sampled_from(["l2", "program"]),
    st.sampled_from([(), (NAME,), ("a",)]),
    st.sampled_from([(), ("sim",), ("a", "b")]),
    st.sampled_from([None, "x86-64-v3"]),
)


class Declined(Exception):
    """The native validator asked for another opinion."""


class Nobody:
    """The other opinion."""

    def validate(self, *_):
        raise Declined

    read_file = validate


native = NativeValidator(Nobody())


@st.composite
def manifests(draw):
    """The bytes of a manifest that lists the hint; sound, or not quite."""
    records = sorted([*draw(others), FileRecord(NAME, len(HINT), HINT_SHA, False)])
    manifest = object.__new__(Manifest)  # its own checks would leave nothing to differ about
    for name, value in (("key", sample_key()), ("spec", draw(specs)), ("files", tuple(records))):
        object.__setattr__(manifest, name, value)
    return manifest.encode()


def opinions(data: bytes) -> tuple[bool, bool | None]:
    """Whether the store's parser accepts the bytes; and the native one, None if it declines."""
    with tempfile.TemporaryDirectory() as name:
        Path(name, NAME).write_bytes(HINT)
        Path(name, "artifact_manifest.json").write_bytes(data)
        slot = os.open(name, os.O_RDONLY)
        try:
            found = native.read_file(slot, sample_key(), State.READY, NAME, 100)
        except Declined:
            found = None
        except SlotFault:
            raise AssertionError("the native validator has no verdicts of its own") from None
        finally:
            os.close(slot)
    try:
        manifest = parse(data, key=sample_key())
    except ManifestError:
        return False, None if found is None else found == HINT
    sound = manifest.spec.state is State.READY and manifest.find(NAME) == (
        NAME,
        len(HINT),
        HINT_SHA,
        False,
    )
    return sound, None if found is None else found == HINT


@given(manifests())
def test_what_is_plain_and_sound_is_accepted_and_nothing_else(data):
    accepted, natively = opinions(data)
    plain = data.isascii() and b"\\" not in data and b" " not in data
    sizes = [row["size"] for row in json.loads(data)["files"]]
    words = all(
        part[:1].isalnum() or part[:1] == "_"
        for row in json.loads(data)["files"]
        for part in row["path"].split("/")
    )
    if accepted and plain and words and max(sizes) < 10**18:
        assert natively is True
    else:
        assert natively is None


pieces = st.sampled_from(
    [b",", b"[", b"]", b"{", b"}", b'"', b"0", b"1", b"/", b".", b"\\", b"true", b"\xff", b"\0",
     b"},{", b'],"key":', b'"path":"a",', b" ", b"\n"]
)  # fmt: skip


@given(manifests(), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), pieces), max_size=3))
@example(b"", [])
def test_edited_bytes_are_never_accepted_natively_alone(data, edits):
    for start, length, piece in edits:
        at = int(start * len(data))
        data = data[:at] + piece + data[at + length :]
    accepted, natively = opinions(data)
    assert natively is None or (accepted and natively)


@given(manifests(), st.data())
def test_one_changed_byte_is_judged_alike(data, draw):
    changed = bytearray(data)
    place = draw.draw(st.integers(0, len(data) - 1))
    changed[place] = draw.draw(st.integers(0, 255))
    accepted, natively = opinions(bytes(changed))
    assert natively is None or (accepted and natively)
