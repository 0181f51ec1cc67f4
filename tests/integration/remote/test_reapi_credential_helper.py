"""A credential helper and grpc://: its headers go with every call, and it is asked again once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pypto_store.remote.blob_store import BlobDigest, Engine, RemoteRefused
from pypto_store.remote.engines import open_engine
from pypto_store.remote.reapi_protocol import BATCH_UPDATE, CAPABILITIES, GET_ENTRY, READ, WRITE
from pypto_store.remote.testing import ACTION, LARGE, SMALL, fetch, put
from pypto_store.remote_config import RemoteConfig

grpc = pytest.importorskip("grpc", reason="pypto[remote] is not installed")
from scripted_reapi import ScriptedReapi, message  # noqa: E402 - needs grpc

_METHODS = (CAPABILITIES, GET_ENTRY, BATCH_UPDATE, READ, WRITE)


class Guarded:
    """A server that knows one token, and a helper that says one."""

    def __init__(self, directory: Path) -> None:
        self.server = ScriptedReapi()
        self.token = "first"
        self.helper = directory / "helper"
        self._log = directory / "log"
        self.says("first")
        answers = {
            CAPABILITIES: lambda asked, context: self.server.capabilities,
            GET_ENTRY: lambda asked, context: b"",
            BATCH_UPDATE: _stored,
            READ: _pieces,
            WRITE: lambda pieces, context: message(
                WRITE.response or "", committed_size=sum(len(piece.data) for piece in pieces)
            ),
        }
        for method in _METHODS:
            self.server.answer(method, self._only_with_token(answers[method]))

    def _only_with_token(self, then: Callable[..., Any]) -> Callable[..., Any]:
        def function(asked: Any, context: Any) -> Any:
            given = dict(context.invocation_metadata()).get("authorization")
            if given != f"Bearer {self.token}":
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "who is that?")
            return then(asked, context)

        return function

    def says(self, token: str) -> None:
        """Have the helper say a token from now on."""
        answer = json.dumps({"headers": {"Authorization": [f"Bearer {token}"]}})
        self.helper.unlink(missing_ok=True)
        self.helper.write_text(f"#!/bin/sh\necho asked >> {self._log}\necho '{answer}'\n")
        self.helper.chmod(0o700)

    @property
    def asked(self) -> int:
        """How often the helper was run."""
        return self._log.read_text().count("asked") if self._log.exists() else 0


def _stored(asked: Any, context: Any) -> Any:
    answer = message(BATCH_UPDATE.response or "")
    for item in asked.requests:
        answer.responses.add(digest=item.digest)
    return answer


def _pieces(asked: Any, context: Any) -> Iterator[Any]:
    for start in range(0, len(LARGE), 1 << 20):
        yield message(READ.response or "", data=LARGE[start : start + (1 << 20)])


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    guarded = Guarded(tmp_path)
    yield guarded
    guarded.server.stop()


@pytest.fixture
def engine(guarded: Guarded) -> Iterator[Engine]:
    config = RemoteConfig(f"grpc://{guarded.server.address}", credential_helper=guarded.helper)
    with closing(open_engine(config)) as engine:
        yield engine


def _steps(engine: Engine) -> list[Callable[[], object]]:
    return [
        lambda: engine.entries.get(ACTION),
        lambda: engine.blobs.put_many({BlobDigest.of(SMALL): SMALL}),
        lambda: fetch(engine.blobs, BlobDigest.of(LARGE)),
        lambda: put(engine.blobs, LARGE),
    ]


def test_one_answer_serves_every_call(guarded: Guarded, engine: Engine) -> None:
    for step in _steps(engine):
        step()
    assert guarded.asked == 1


def test_it_is_asked_again_where_its_answer_is_not_accepted(
    guarded: Guarded, engine: Engine
) -> None:
    engine.entries.get(ACTION)
    for number, step in enumerate(_steps(engine)):
        guarded.token = f"token {number}"
        guarded.says(guarded.token)
        before = guarded.asked
        step()
        assert guarded.asked == before + 1


def test_who_is_refused_twice_is_refused(guarded: Guarded, engine: Engine) -> None:
    engine.entries.get(ACTION)
    guarded.token = "another"
    for step in _steps(engine):
        before = guarded.asked
        with pytest.raises(RemoteRefused, match="UNAUTHENTICATED: who is that") as caught:
            step()
        assert "first" not in str(caught.value)
        # What is not accepted is kept: the next request is the next occasion to ask again.
        assert guarded.asked == before + 1
