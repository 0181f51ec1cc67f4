"""Manifests that are nearly right, and bytes that are nothing like one: always a typed outcome."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifest_slot import ManifestSlot
from pypto_store import State

CORPUS = Path(__file__).parent / "manifest_corpus"


@pytest.fixture(scope="module")
def slot():
    with tempfile.TemporaryDirectory() as base:
        yield ManifestSlot(Path(base))


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir()))
def test_corpus(slot, name):
    for state in State:
        slot.judge((CORPUS / name).read_bytes(), state)


def test_the_sound_manifest_is_a_hit(slot):
    for state in State:
        slot.judge(slot.sound[state], state)


# -- edits of the document

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, -1, 2**63 - 1, 2**63, 2**64, 10**30]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["", ".", "..", "/", "a/../b", "a//b", "/etc/passwd", "\0", "é", "é", "\ud800", "a" * 256,
         "artifact_manifest.json", "artifact_manifest.json.sig", "0" * 64, "F" * 64, "generated"]
    ),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def places(node, path=()):
    """Every place of a document, as the steps to it."""
    yield path
    if isinstance(node, dict):
        for name in node:
            yield from places(node[name], (*path, name))
    elif isinstance(node, list):
        for number, inner in enumerate(node):
            yield from places(inner, (*path, number))


def edit(document, path, kind, value):
    """The document with one change at a place."""
    if not path:
        return value if kind == "replace" else document
    *above, last = path
    holder = document
    for step in above:
        holder = holder[step]
    match kind:
        case "replace":
            holder[last] = value
        case "remove":
            del holder[last]
        case "repeat":
            if isinstance(holder, list):
                holder.insert(last, holder[last])
            else:
                holder[f"{last}2"] = holder[last]
        case "rename":
            if isinstance(holder, dict):
                holder[str(value)[:20]] = holder.pop(last)
        case "reverse":
            if isinstance(holder[last], list):
                holder[last].reverse()
    return document


kinds = st.sampled_from(["replace", "remove", "repeat", "rename", "reverse"])


@given(st.sampled_from(State), st.data())
def test_edited_documents(slot, state, data):
    document = json.loads(slot.sound[state])
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(document))))
        document = edit(document, path, data.draw(kinds), data.draw(values))
        if not isinstance(document, (dict, list)):
            break
    text = json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"
    slot.judge(text.encode("ascii"), state)


@pytest.mark.parametrize("state", State)
def test_a_manifest_that_asks_for_fewer_files(slot, state):
    document = json.loads(slot.sound[state])
    del document["spec"]["required_files"][0]
    text = json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"
    slot.judge(text.encode("ascii"), state)


# -- edits of the spelling: the same content, written otherwise

SPELLINGS = (
    lambda text: text.replace(":", ": "),
    lambda text: text.replace(",", ", "),
    lambda text: text.rstrip("\n"),
    lambda text: text + "\n",
    lambda text: text.replace("\n", "\r\n"),
    lambda text: "\ufeff" + text,
    lambda text: text + "\0",
    lambda text: text.replace("kernel", "\\u006bernel"),
    lambda text: text.replace("/", "\\/"),
    lambda text: text.replace('"schema":1', '"schema":1.0'),
    lambda text: text.replace('"schema":1', '"schema":1e0'),
    lambda text: text.replace('"schema":1', '"schema":true'),
    lambda text: text.replace('"schema":1', '"schema":01'),
    lambda text: text.replace('"size":0', '"size":-0'),
    lambda text: text.replace('"size":0', '"size":0.0'),
    lambda text: text.replace("false", "0"),
    lambda text: text.replace('"schema":1', '"schema":1,"schema":1'),
    lambda text: text.replace('"spec":', '"spec":{},"spec":'),
    lambda text: json.dumps(dict(reversed(json.loads(text).items())), separators=(",", ":")) + "\n",
    lambda text: text.encode("utf-16").decode("latin-1"),
    lambda text: text.upper(),
    lambda text: text[: len(text) // 2] + text,
    lambda text: text + text,
)


@pytest.mark.parametrize("number", range(len(SPELLINGS)))
def test_another_spelling_is_refused(slot, number):
    for state in State:
        sound = slot.sound[state].decode("ascii")
        other = SPELLINGS[number](sound)
        assert other != sound
        slot.judge(other.encode("utf-8"), state)


# -- bytes


@given(st.sampled_from(State), st.binary(max_size=300))
def test_any_bytes(slot, state, data):
    slot.judge(data, state)


@given(st.sampled_from(State), st.data())
def test_spliced_bytes(slot, state, data):
    """Pieces of the manifest in another order, some twice and some not at all."""
    sound = slot.sound[state]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sound)), min_size=1, max_size=6)))
    pieces = [sound[a:b] for a, b in zip([0, *cuts], [*cuts, len(sound)], strict=True)]
    order = data.draw(st.lists(st.sampled_from(range(len(pieces))), max_size=8))
    slot.judge(b"".join(pieces[number] for number in order), state)
