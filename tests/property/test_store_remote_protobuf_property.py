"""Our messages beside protobuf's, over the protocol's own definitions: one encoding for both.

What ours encodes protobuf reads as the same message and encodes to the same bytes; what protobuf
encodes, whatever else is in it, ours reads as the same message.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypto_store import Digest
from pypto_store.remote.blob_store import BLOB_LIMIT, BlobDigest
from pypto_store.remote.messages import (
    Action,
    ActionResult,
    Command,
    MessageError,
    OutputFile,
    decode_digest,
    encode_digest,
)

pytest.importorskip("grpc", reason="pypto[remote] is not installed")
from pypto_store.remote.reapi_protocol import load_protocol

PROTOCOL = load_protocol()
REAPI = "build.bazel.remote.execution.v2"

text = st.text(st.characters(codec="utf-8"), max_size=8)
digests = st.builds(
    BlobDigest,
    st.binary(min_size=32, max_size=32).map(Digest.from_raw),
    st.one_of(st.integers(0, 300), st.integers(0, BLOB_LIMIT)),
)
files = st.builds(OutputFile, text, digests, st.booleans())
commands = st.builds(Command, st.lists(text, max_size=4).map(tuple))
actions = st.builds(Action, digests, digests)
results = st.builds(
    ActionResult,
    st.lists(files, max_size=4).map(tuple),
    st.one_of(st.just(0), st.integers(-(2**31), 2**31 - 1)),
)


def theirs(name: str) -> Any:
    """A new message of protobuf's."""
    return PROTOCOL.message(f"{REAPI}.{name}")()


def write_digest(message: Any, digest: BlobDigest) -> None:
    message.hash, message.size_bytes = digest.sha256.hex, digest.size
    message.SetInParent()


def to_theirs(ours: Command | Action | OutputFile | ActionResult) -> Any:
    """The same message, built field by field."""
    message = theirs(type(ours).__name__)
    if isinstance(ours, Command):
        message.arguments.extend(ours.arguments)
    elif isinstance(ours, Action):
        write_digest(message.command_digest, ours.command)
        write_digest(message.input_root_digest, ours.input_root)
    elif isinstance(ours, OutputFile):
        message.path, message.is_executable = ours.path, ours.executable
        write_digest(message.digest, ours.digest)
    else:
        message.exit_code = ours.exit_code
        message.output_files.extend(map(to_theirs, ours.output_files))
    return message


@given(st.one_of(commands, actions, files, results))
def test_one_message_has_one_encoding(ours):
    message = to_theirs(ours)
    encoded = message.SerializeToString(deterministic=True)
    assert ours.encode() == encoded
    assert type(ours).decode(encoded) == ours
    assert type(message).FromString(ours.encode()) == message


@given(digests)
def test_digests_have_one_encoding(digest):
    message = theirs("Digest")
    write_digest(message, digest)
    assert encode_digest(digest) == message.SerializeToString()
    assert decode_digest(message.SerializeToString()) == digest


@given(results, text, st.binary(max_size=9), digests, st.integers(0, 2**31 - 1))
def test_what_others_say_beside_it_changes_nothing(ours, words, raw, digest, number):
    message = to_theirs(ours)
    message.stdout_raw, message.stderr_raw = raw, words.encode()
    write_digest(message.stdout_digest, digest)
    message.output_directories.add(path=words)
    message.output_symlinks.add(path=words, target=words)
    message.execution_metadata.worker = words
    message.execution_metadata.queued_timestamp.seconds = number
    for file in message.output_files:
        file.contents = raw
        file.node_properties.properties.add(name=words, value=words)
    assert ActionResult.decode(message.SerializeToString()) == ours


@given(actions, st.booleans(), st.integers(0, 10**6), text)
def test_actions_of_others_are_read(ours, cached, seconds, words):
    message = to_theirs(ours)
    message.do_not_cache, message.timeout.seconds, message.salt = cached, seconds, words.encode()
    message.platform.properties.add(name=words, value=words)
    assert Action.decode(message.SerializeToString()) == ours


@given(commands, text)
def test_commands_of_others_are_read(ours, words):
    message = to_theirs(ours)
    message.environment_variables.add(name=words, value=words)
    message.output_paths.append(words)
    message.working_directory = words
    assert Command.decode(message.SerializeToString()) == ours


@given(results, st.data())
def test_both_read_the_same_in_what_was_damaged(ours, data):
    encoded = bytearray(ours.encode())
    place = data.draw(st.integers(0, len(encoded)))
    piece = data.draw(st.binary(max_size=3))
    encoded[place : place + data.draw(st.integers(0, 3))] = piece
    try:
        read = ActionResult.decode(bytes(encoded))
        message = type(theirs("ActionResult")).FromString(bytes(encoded))
    except (MessageError, PROTOCOL.undecodable):
        return  # ours refuses what names no blob, protobuf what is wrong in fields that we skip
    assert read == ActionResult(
        tuple(
            OutputFile(
                file.path,
                BlobDigest(Digest(file.digest.hash), file.digest.size_bytes),
                file.is_executable,
            )
            for file in message.output_files
        ),
        message.exit_code,
    )


@given(st.binary(max_size=60))
def test_both_read_the_same_in_any_bytes(data):
    try:
        words = Command.decode(data).arguments
        message = type(theirs("Command")).FromString(data)
    except (MessageError, PROTOCOL.undecodable):
        return
    assert tuple(message.arguments) == words
