"""`push` and `pull` over every kind of remote that tests here start, named by the environment."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from pypto_store import ArtifactStore, Hit, RemoteConfig
from pypto_store.remote.blob_store import BlobDigest
from pypto_store.remote.collections import collection_name
from pypto_store.remote.engines import open_engine
from pypto_store.testing import GENERATED, PAYLOAD, READY, payload_builder, sample_key, snapshot
from pypto_store.tools.command_line import Edge, run

KEYS = [sample_key(f"push and pull {number}") for number in range(6)]
LARGE = random.Random(11).randbytes(5 << 20)


def environ_of(config: RemoteConfig) -> dict[str, str]:
    """The variables by which a user names this remote."""
    tls = config.tls
    named = {
        "": config.url,
        "_INSTANCE": config.instance,
        "_HEADERS": "\n".join(f"{name}: {value}" for name, value in config.headers),
        "_TLS_CA": "" if tls is None or tls.ca is None else str(tls.ca),
    }
    return {f"PYPTO_CACHE_REMOTE{name}": value for name, value in named.items() if value}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("filled")
    store = ArtifactStore(top / "root")
    for number, key in enumerate(KEYS):
        for spec in (GENERATED, READY):
            payload = {**PAYLOAD, "own": f"{number} {spec.state}".encode()}
            if number == 0:
                payload["large.bin"] = LARGE
            store.get_or_build(key, spec, payload_builder(payload), private_parent=top / "p")
    return top / "root"


def entries(root: Path) -> dict[str, Any]:
    return {
        path: (mode, data)
        for path, (mode, _, data) in snapshot(root).items()
        if path.startswith("artifacts")
    }


def test_a_root_fills_another_and_is_sent_once(
    root: Path, remote: RemoteConfig, tmp_path: Path
) -> None:
    environ = environ_of(remote)

    def command(*words: object) -> dict[str, Any]:
        out, err = io.StringIO(), io.StringIO()
        status = run([str(word) for word in words], Edge(environ, out, err))
        assert (status, err.getvalue()) == (0, ""), out.getvalue()
        document: dict[str, Any] = json.loads(out.getvalue())
        return document

    first = KEYS[0].digest.hex
    assert command("push", "--root", root, "--as", "grows", first)["counts"]["sent"] == 2
    pushed = command("push", "--root", root, "--as", "grows")
    assert (pushed["counts"]["sent"], pushed["counts"]["present"]) == (10, 2)
    assert pushed["collection"]["entries"] == 12
    again = command("push", "--root", root, "--as", "grows")
    assert (again["counts"]["present"], again["bytes_sent"]) == (12, 0)

    there = tmp_path / "there"
    assert command("pull", "--root", there, "--as", "grows")["counts"]["pulled"] == 12
    assert entries(there) == entries(root)
    assert isinstance(ArtifactStore(there, readonly=True).lookup(KEYS[0], READY), Hit)
    assert command("pull", "--root", there, "--as", "grows")["counts"]["present"] == 12


def test_a_list_that_is_none_is_put_right(root: Path, remote: RemoteConfig, tmp_path: Path) -> None:
    """One that another program has put there, as servers let anybody."""
    environ = environ_of(remote)
    name = collection_name("wrong")
    other = collection_name("right")
    words = ["--root", str(root), KEYS[1].digest.hex, "--as"]
    assert run(["push", *words, "right"], Edge(environ, io.StringIO(), io.StringIO())) == 0
    engine = open_engine(remote)
    entry = engine.entries.get(other.digest)
    assert entry is not None
    engine.blobs.put_many({name.digest: name.action, BlobDigest.of(name.command): name.command})
    engine.entries.put(name.digest, entry)
    engine.close()
    err = io.StringIO()
    there = ["--root", str(tmp_path / "there"), "--as", "wrong"]
    assert run(["pull", *there], Edge(environ, io.StringIO(), err)) == 2
    assert "it is the list 'right'" in err.getvalue()
    assert run(["push", *words, "wrong"], Edge(environ, io.StringIO(), io.StringIO())) == 0
    assert run(["pull", *there], Edge(environ, io.StringIO(), io.StringIO())) == 0
