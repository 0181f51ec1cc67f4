"""Stores over a remote at which not everybody is believed: who compiles, and what is replaced."""

from __future__ import annotations

import sys

import pytest
from pypto_store import ArtifactStore, RemoteConfig
from pypto_store.outcomes import Fetched, Hit, Private, Published
from pypto_store.paths import SIGNATURE_NAME
from pypto_store.remote.engines import open_engine
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.messages import ActionResult
from pypto_store.remote.tier import RemoteTier
from pypto_store.testing import GENERATED, PAYLOAD, READY, payload_builder, snapshot
from rejected_entries import EVIL, KEY, REJECTED, good
from signed_entries import Planted, key_file, public, signer


class Counting:
    """What a tier tells of its requests."""

    def __init__(self):
        self.hits, self.misses, self.uploads, self.faults = [], 0, [], []

    def hit(self, size, ns):
        self.hits.append(size)

    def miss(self, ns):
        self.misses += 1

    def fault(self, reason, ns):
        self.faults.append(reason)

    def uploaded(self, size, ns):
        self.uploads.append(size)


class Machine:
    """One root with its own view of the remote. calls: the builds so far."""

    def __init__(self, place, url, *, readonly=False, **config):
        place.mkdir()
        self.place, self.calls, self.seen = place, [], Counting()
        self.root, self.private = place / "root", place / "private"
        self.during_build = []
        self.tier = RemoteTier(RemoteConfig(url, upload="sync", **config), self.seen)
        self.store = ArtifactStore(self.root, readonly=readonly, remote=self.tier)

    def get(self, key=KEY, spec=READY):
        def build(directory):
            self.during_build.append((self._written(self.root), self._written(self.private)))
            payload_builder(PAYLOAD, self.calls)(directory)

        return self.store.get_or_build(key, spec, build, private_parent=self.private)

    def _written(self, directory):
        """Files that have content; locks have none, and the marker is no part of an entry."""
        return [name for name, (_, _, content) in snapshot(directory).items()
                if content and name != "STORE" and not name.endswith(".lock")]  # fmt: skip

    def holds(self, data):
        return any(data in content for _, _, content in snapshot(self.place).values())


@pytest.fixture
def url(tmp_path):
    return (tmp_path / "remote").as_uri()


@pytest.fixture
def engine(url):
    opened = open_engine(RemoteConfig(url))
    yield opened
    opened.close()


@pytest.fixture
def machine(tmp_path, url):
    """A new machine; `signs` is the number of its key, `trusts` those of the keys it believes."""
    made = []

    def make(name, signs=None, trusts=(), **config):
        if signs is not None:
            config["signing_key"] = key_file(tmp_path, signs)
        config["trusted_keys"] = tuple(map(public, trusts))
        made.append(Machine(tmp_path / name, url, **config))
        return made[-1]

    yield make
    for each in made:
        each.tier.close()


def stands(engine, spec=READY):
    """The document of signatures that stands at the remote; None without one."""
    result = ActionResult.decode(engine.entries.get(entry_name(KEY, spec).digest))
    for file in result.output_files:
        if file.path == SIGNATURE_NAME:
            return engine.blobs.get_many([file.digest])[file.digest]
    return None


def test_one_machine_signs_and_the_others_compile_nothing(machine, engine):
    ci = machine("ci", signs=1)
    assert isinstance(ci.get(), Published)
    assert stands(engine) == signer(1).sign(good.manifest)
    fleet = [machine("writable", trusts=[1, 2]), machine("frozen", trusts=[1], readonly=True)]
    for node in fleet:
        result = node.get()
        assert isinstance(result, Fetched) and not node.calls
        assert result.entry.manifest.encode() == good.manifest
        assert (len(node.seen.hits), node.seen.faults, node.seen.uploads) == (1, [], [])
    assert isinstance(fleet[0].get(), Hit)


@pytest.mark.parametrize("name", REJECTED)
def test_what_is_rejected_is_built_here_and_then_stands_there_signed(machine, engine, name):
    REJECTED[name][0].put(engine, KEY, READY)
    first = machine("first", signs=1, trusts=[1])
    assert isinstance(first.get(), Published)
    assert len(first.calls) == 1
    assert first.during_build == [([], [])]
    (fault,) = first.seen.faults
    assert "it is not used" in fault
    assert not first.holds(EVIL)
    second = machine("second", trusts=[1])
    assert isinstance(second.get(), Fetched)
    assert not second.calls and second.seen.faults == []


def test_a_root_that_is_only_read_builds_beside_it_and_sends_nothing(machine, engine):
    REJECTED["another payload, signed by another key"][0].put(engine, KEY, READY)
    node = machine("frozen", trusts=[1], readonly=True)
    result = node.get()
    assert isinstance(result, Private) and result.failure is None
    assert len(node.calls) == 1 and len(node.seen.faults) == 1
    assert not node.root.exists() and not node.holds(EVIL)
    assert stands(engine) == signer(2).sign(
        REJECTED["another payload, signed by another key"][0].manifest
    )


def test_who_believes_keys_and_has_none_sends_nothing(machine, engine):
    node = machine("node", trusts=[1])
    assert isinstance(node.get(), Published)
    assert engine.entries.get(entry_name(KEY, READY).digest) is None
    assert (node.seen.uploads, node.seen.faults) == ([], [])


def test_who_signs_takes_no_source_that_anybody_can_have_put_there(machine, engine):
    """What it makes of it would be signed."""
    Planted.of(KEY, GENERATED, {**PAYLOAD, "kernels/aiv/add.cpp": EVIL}, by=None).put(engine)
    ci = machine("ci", signs=1)
    assert isinstance(ci.get(spec=GENERATED), Published)
    assert len(ci.calls) == 1 and not ci.holds(EVIL)
    assert stands(engine, GENERATED) is not None
    anyone = machine("anyone")
    assert isinstance(anyone.get(spec=GENERATED), Fetched)


@pytest.mark.parametrize("fault", ["absent", "open to others", "not a key"])
def test_a_key_that_cannot_be_used_sends_nothing_unsigned_and_believes_nobody(
    machine, engine, tmp_path, fault
):
    Planted.of(KEY, READY, PAYLOAD, by=None).put(engine)
    ci = machine("ci", signs=1)
    path = tmp_path / "key-1.pem"
    if fault == "absent":
        path.unlink()
    elif fault == "open to others":
        path.chmod(0o644)
    else:
        path.write_bytes(b"not a key")
    assert isinstance(ci.get(), Published)
    assert len(ci.calls) == 1 and stands(engine) is None and ci.seen.uploads == []
    assert ci.seen.faults and all(str(path) in told for told in ci.seen.faults)


def test_without_the_package_builds_go_on_and_nothing_is_believed_or_sent(
    machine, engine, monkeypatch
):
    good.put(engine)
    node, ci = machine("node", trusts=[1]), machine("ci", signs=1)
    for name in ("exceptions", "hazmat.primitives.asymmetric.ed25519"):
        monkeypatch.setitem(sys.modules, f"cryptography.{name}", None)
    for each in (node, ci):
        assert isinstance(each.get(), Published)
        assert len(each.calls) == 1 and each.seen.uploads == []
        assert "pip install 'pypto[signing]'" in each.seen.faults[0]
    monkeypatch.undo()
    assert stands(engine) == signer(1).sign(good.manifest)


def test_keys_change_without_a_moment_in_which_readers_compile(machine, engine):
    assert isinstance(machine("old writer", signs=1).get(), Published)
    assert isinstance(machine("reader of both", trusts=[1, 2]).get(), Fetched)
    # The new writer does not count what the old one signed as its own, and signs it again.
    assert isinstance(machine("new writer", signs=2).get(), Published)
    assert stands(engine) == signer(2).sign(good.manifest)
    for name, trusts in (("still of both", [1, 2]), ("of the new one", [2])):
        assert isinstance(machine(name, trusts=trusts).get(), Fetched)
    late = machine("of the old one", trusts=[1])
    assert isinstance(late.get(), Published)
    assert stands(engine) == signer(2).sign(good.manifest)
