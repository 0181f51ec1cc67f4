"""The contract of an artifact store, as tests that any implementation can run.

Subclass `ArtifactStoreContract` in a test module, override `make_store`, and a pytest-like runner
collects the tests; each takes a fresh directory as `tmp_path`. Needs nothing but the standard
library.
"""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pypto_store.digest import Digest
from pypto_store.keys import ArtifactKey, ArtifactSpec, State
from pypto_store.layout import Layout
from pypto_store.outcomes import (
    Failure,
    Hint,
    Hit,
    Invalid,
    Miss,
    Private,
    Published,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pypto_store.store import ArtifactStore

HINT = b'{"schema":1}'
PAYLOAD: Mapping[str, bytes] = {
    "kernel_config.json": HINT,
    "kernels/aiv/add.cpp": b"int add;\n" * 40,
    "empty": b"",
    "prebuilt/kernel_0.bin": bytes(range(256)) * 200,
}
EXECUTABLES = frozenset({"prebuilt/kernel_0.bin"})
GENERATED = ArtifactSpec(State.GENERATED, "l2", ("kernel_config.json",))
READY = ArtifactSpec(State.READY, "l2", ("kernel_config.json",), ("sim",), "x86-64-v3")


def sample_key(name: str = "one", environment: str = "here") -> ArtifactKey:
    """A key of its own for every pair of names."""
    return ArtifactKey(
        format=Digest.of(b"format"),
        environment=Digest.of(environment.encode()),
        source=Digest.of(name.encode()),
        application=Digest.of(b""),
        specialization=Digest.of(b"specialization"),
    )


def ready_spec(level: str) -> ArtifactSpec:
    """A READY specification of its own for every CPU level."""
    return ArtifactSpec(State.READY, "l2", ("kernel_config.json",), ("sim",), level)


def payload_builder(
    payload: Mapping[str, bytes] = PAYLOAD, calls: list[str] | None = None
) -> Callable[[Path], None]:
    """A builder that writes `payload` and notes each of its calls."""

    def build(directory: Path) -> None:
        if calls is not None:
            calls.append(directory.name)
        for path, data in payload.items():
            place = directory / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            if path in EXECUTABLES:
                place.chmod(0o755)

    return build


def snapshot(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, inode and content of everything under `root`, links unfollowed."""
    found: dict[str, tuple[int, int, bytes]] = {}
    for parent, directories, files in os.walk(root):
        for name in [*directories, *files]:
            path = os.path.join(parent, name)
            status = os.lstat(path)
            content = b""
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            elif stat.S_ISLNK(status.st_mode):
                content = os.readlink(path).encode()
            found[os.path.relpath(path, root)] = (status.st_mode, status.st_ino, content)
    return found


class _Refused(Exception):
    """What the failing builders of this suite raise."""


class ArtifactStoreContract:
    """Everything an artifact store promises to one process."""

    def make_store(self, root: Path, *, readonly: bool = False) -> ArtifactStore:
        """A store object over `root`, which may not exist yet."""
        raise NotImplementedError

    def publish(
        self,
        root: Path,
        key: ArtifactKey,
        spec: ArtifactSpec,
        payload: Mapping[str, bytes] = PAYLOAD,
    ) -> Published:
        """Publish `payload` through a store object of its own."""
        result = self.make_store(root).get_or_build(
            key, spec, payload_builder(payload), private_parent=root.parent / "private"
        )
        assert isinstance(result, Published), result
        return result

    # -- looking up

    def test_missing_entry_is_a_miss_and_leaves_no_trace(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        store = self.make_store(root)
        key = sample_key()
        assert store.lookup(key, READY) == Miss()
        assert store.lookup_generated(key) == Miss()
        assert store.read_hint(key) == Miss()
        assert store.discover_ready(key, lambda _: READY) == Miss()
        assert not root.exists()

    def test_published_entry_is_a_hit_for_another_store_object(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        published = self.publish(root, sample_key(), READY)
        before = snapshot(root)
        hit = self.make_store(root).lookup(sample_key(), READY)
        assert isinstance(hit, Hit)
        assert hit.entry.manifest == published.entry.manifest
        assert {path: hit.entry.read(path) for path in PAYLOAD} == PAYLOAD
        assert snapshot(root) == before

    def test_keys_and_specifications_are_separate(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        self.publish(root, sample_key("one"), READY)
        store = self.make_store(root)
        assert store.lookup(sample_key("two"), READY) == Miss()
        assert store.lookup(sample_key("one", "elsewhere"), READY) == Miss()
        assert store.lookup(sample_key("one"), GENERATED) == Miss()
        assert store.lookup(sample_key("one"), ready_spec("x86-64")) == Miss()

    def test_hint_is_the_generated_kernel_config(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        self.publish(root, sample_key(), GENERATED)
        store = self.make_store(root)
        assert store.read_hint(sample_key()) == Hint(HINT)
        assert isinstance(store.lookup_generated(sample_key()), Hit)

    def test_damaged_hint_is_invalid(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        entry = self.publish(root, sample_key(), GENERATED).entry
        (entry.path / "kernel_config.json").write_bytes(HINT.replace(b"1", b"2"))
        assert isinstance(self.make_store(root).read_hint(sample_key()), Invalid)

    # -- discovery

    def test_discovery_finds_the_only_ready_entry(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        self.publish(root, sample_key(), READY)
        seen: list[bytes] = []

        def derive(data: bytes) -> ArtifactSpec:
            seen.append(data)
            return READY

        hit = self.make_store(root).discover_ready(sample_key(), derive)
        assert isinstance(hit, Hit)
        assert hit.entry.spec == READY
        assert seen == [HINT]

    def test_discovery_rejects_two_valid_entries(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        specs = {b'{"n":1}': ready_spec("x86-64"), b'{"n":2}': ready_spec("x86-64-v4")}
        for hint, spec in specs.items():
            self.publish(root, sample_key(), spec, {"kernel_config.json": hint})
        found = self.make_store(root).discover_ready(sample_key(), specs.__getitem__)
        assert isinstance(found, Invalid)
        assert "two" in found.reason

    def test_discovery_rejects_a_candidate_of_another_name(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        entry = self.publish(root, sample_key(), READY).entry
        found = self.make_store(root).discover_ready(sample_key(), lambda _: ready_spec("x86-64"))
        assert isinstance(found, Miss)
        assert [invalid.path for invalid in found.rejected] == [str(entry.path)]

    def test_discovery_rejects_a_valid_entry_under_another_name(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        slot = self.publish(root, sample_key(), READY).entry.path
        moved = slot.rename(slot.parent / ready_spec("x86-64").digest.hex)
        found = self.make_store(root).discover_ready(sample_key(), lambda _: READY)
        assert isinstance(found, Miss)
        assert [invalid.path for invalid in found.rejected] == [str(moved)]

    def test_discovery_passes_over_damage(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        specs = {b'{"n":1}': ready_spec("x86-64"), b'{"n":2}': ready_spec("x86-64-v4")}
        entries = [
            self.publish(root, sample_key(), spec, {"kernel_config.json": hint}).entry
            for hint, spec in specs.items()
        ]
        (entries[0].path / "kernel_config.json").write_bytes(b"not json")

        def derive(data: bytes) -> ArtifactSpec:
            if data not in specs:
                raise ValueError("not a configuration")
            return specs[data]

        hit = self.make_store(root).discover_ready(sample_key(), derive)
        assert isinstance(hit, Hit)
        assert hit.entry.path == entries[1].path
        assert [invalid.path for invalid in hit.rejected] == [str(entries[0].path)]

    def test_discovery_ignores_links_and_other_names(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        entry = self.publish(root, sample_key(), READY).entry
        ready = entry.path.parent
        for number in range(40):
            (ready / Digest.of(b"%d" % number).hex).symlink_to(entry.path)
            (ready / f"note-{number}").mkdir()
        (ready / Digest.of(b"file").hex).write_bytes(b"")
        found = self.make_store(root).discover_ready(sample_key(), lambda _: READY)
        assert isinstance(found, Hit)
        assert found.rejected == ()

    def test_discovery_opens_32_candidates_but_not_33(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        entry = self.publish(root, sample_key(), READY).entry
        for number in range(31):
            (entry.path.parent / Digest.of(b"%d" % number).hex).mkdir()
        store = self.make_store(root)
        found = store.discover_ready(sample_key(), lambda _: READY)
        assert isinstance(found, Hit)
        assert len(found.rejected) == 31
        (entry.path.parent / Digest.of(b"one more").hex).mkdir()
        seen: list[bytes] = []
        found = store.discover_ready(sample_key(), lambda data: seen.append(data) or READY)  # type: ignore[func-returns-value]
        assert isinstance(found, Miss)
        assert "32" in found.reason
        assert seen == []

    # -- building

    def test_second_request_builds_nothing(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path / "root")
        calls: list[str] = []
        build = payload_builder(calls=calls)
        first = store.get_or_build(sample_key(), READY, build, private_parent=tmp_path / "p")
        again = store.get_or_build(sample_key(), READY, build, private_parent=tmp_path / "p")
        assert isinstance(first, Published)
        assert isinstance(again, Hit)
        assert len(calls) == 1
        assert not (tmp_path / "p").exists()

    def test_builder_error_propagates_and_leaves_nothing(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        store = self.make_store(root)

        def fail(directory: Path) -> None:
            (directory / "half").write_bytes(b"half")
            raise _Refused

        try:
            store.get_or_build(sample_key(), READY, fail, private_parent=tmp_path / "p")
        except _Refused:
            pass
        else:
            raise AssertionError("the builder's error was swallowed")
        assert store.lookup(sample_key(), READY) == Miss()
        assert not (tmp_path / "p").exists()
        assert not [path for path in snapshot(root) if ".tmp." in path]
        self.publish(root, sample_key(), READY)

    def test_recheck_keeps_a_build_private(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        store = self.make_store(root)
        result = store.get_or_build(
            sample_key(),
            GENERATED,
            payload_builder(),
            private_parent=tmp_path / "p",
            recheck=lambda: "a source changed",
        )
        assert isinstance(result, Private)
        assert (result.failure, result.reason) == (Failure.PUBLICATION, "a source changed")
        assert (result.path / "kernel_config.json").read_bytes() == HINT
        assert stat.S_IMODE(result.path.stat().st_mode) == 0o700
        assert store.lookup(sample_key(), GENERATED) == Miss()

    def test_unfit_payloads_stay_private(self, tmp_path: Path) -> None:
        def link(directory: Path) -> None:
            payload_builder()(directory)
            (directory / "link").symlink_to("kernel_config.json")

        def fifo(directory: Path) -> None:
            payload_builder()(directory)
            os.mkfifo(directory / "fifo")

        def incomplete(directory: Path) -> None:
            (directory / "other.json").write_bytes(b"")

        def reserved(directory: Path) -> None:
            payload_builder()(directory)
            (directory / "artifact_manifest.json").write_bytes(b"{}")

        def not_text(directory: Path) -> None:
            payload_builder()(directory)
            with open(os.fsencode(directory) + b"/\xff", "wb"):
                pass

        store = self.make_store(tmp_path / "root")
        for build in (link, fifo, incomplete, reserved, not_text):
            result = store.get_or_build(
                sample_key(), GENERATED, build, private_parent=tmp_path / "p"
            )
            assert isinstance(result, Private), build.__name__
            assert result.failure is Failure.PUBLICATION, build.__name__
            assert store.lookup(sample_key(), GENERATED) == Miss()

    def test_any_file_name_and_depth_comes_back(self, tmp_path: Path) -> None:
        payload = {
            "kernel_config.json": HINT,
            'quote"back\\slash': b"1",
            "new\nline and \x01": b"2",
            "smörgås/😀": b"3",
            "/".join(["deep"] * 40): b"4",
            "sub/artifact_manifest.json": b"5",
            ".hidden": b"6",
            "n" * 255: b"7",
        }
        root = tmp_path / "root"
        self.publish(root, sample_key(), GENERATED, payload)
        hit = self.make_store(root).lookup(sample_key(), GENERATED)
        assert isinstance(hit, Hit)
        assert {path: hit.entry.read(path) for path in payload} == payload

    def test_empty_directories_are_left_out(self, tmp_path: Path) -> None:
        def build(directory: Path) -> None:
            payload_builder()(directory)
            (directory / "debug/empty").mkdir(parents=True)

        store = self.make_store(tmp_path / "root")
        result = store.get_or_build(sample_key(), READY, build, private_parent=tmp_path / "p")
        assert isinstance(result, Published)
        assert not (result.entry.path / "debug").exists()
        assert isinstance(store.lookup(sample_key(), READY), Hit)

    def test_modes_are_private_and_keep_execution(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        entry = self.publish(root, sample_key(), READY).entry
        executable = {record.path for record in entry.manifest.files if record.executable}
        assert executable == EXECUTABLES
        for path, (mode, _, _) in snapshot(root).items():
            private = stat.S_ISDIR(mode) or path.endswith((*EXECUTABLES, ".x"))
            assert stat.S_IMODE(mode) == (0o700 if private else 0o600), path

    def test_invalid_slot_stays_as_it_is(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        entry = self.publish(root, sample_key(), READY).entry
        (entry.path / "extra").write_bytes(b"extra")
        before = snapshot(root)
        store = self.make_store(root)
        assert isinstance(store.lookup(sample_key(), READY), Invalid)
        result = store.get_or_build(
            sample_key(), READY, payload_builder(), private_parent=tmp_path / "p"
        )
        assert isinstance(result, Private)
        assert result.failure is Failure.INVALID
        assert snapshot(root) == before

    def test_readonly_store_builds_privately_and_writes_nothing(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        self.publish(root, sample_key("there"), READY)
        before = snapshot(root)
        store = self.make_store(root, readonly=True)
        assert isinstance(store.lookup(sample_key("there"), READY), Hit)
        calls: list[str] = []
        for _ in range(2):
            result = store.get_or_build(
                sample_key("absent"),
                READY,
                payload_builder(calls=calls),
                private_parent=tmp_path / "p",
            )
            assert isinstance(result, Private)
            assert result.failure is None
        assert len(calls) == 2
        assert snapshot(root) == before

    # -- sharing

    def test_other_keys_share_inodes_and_own_states_do_not(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        first = self.publish(root, sample_key("one"), GENERATED)
        own_ready = self.publish(root, sample_key("one"), READY)
        other = self.publish(root, sample_key("two"), READY)
        total = sum(map(len, PAYLOAD.values()))
        assert (first.shared_bytes, own_ready.shared_bytes) == (0, 0)
        assert other.shared_bytes == total
        for path in PAYLOAD:
            one, two = (p.entry.path.joinpath(path).stat().st_ino for p in (first, own_ready))
            assert one != two
            assert other.entry.path.joinpath(path).stat().st_ino in (one, two)

    def test_damaged_blob_is_written_afresh_and_reported(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        first = self.publish(root, sample_key("one"), READY).entry
        damaged = first.path / "kernels/aiv/add.cpp"
        damaged.write_bytes(damaged.read_bytes().replace(b"add", b"sub"))
        second = self.publish(root, sample_key("two"), READY)
        assert second.damaged_blobs == (Digest.of(PAYLOAD["kernels/aiv/add.cpp"]),)
        store = self.make_store(root)
        assert isinstance(store.lookup(sample_key("one"), READY), Invalid)
        assert isinstance(store.lookup(sample_key("two"), READY), Hit)
        third = self.publish(root, sample_key("three"), READY)
        assert third.damaged_blobs == ()
        assert third.shared_bytes == sum(map(len, PAYLOAD.values()))

    def test_materialized_files_are_copies_of_one_age(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        entry = self.publish(root, sample_key(), READY).entry
        before = snapshot(root)
        target = tmp_path / "out" / "tree"
        entry.materialize(target)
        assert {path: (target / path).read_bytes() for path in PAYLOAD} == PAYLOAD
        assert len({(target / path).stat().st_mtime_ns for path in PAYLOAD}) == 1
        assert {(target / path).stat().st_nlink for path in PAYLOAD} == {1}
        for path in PAYLOAD:
            assert os.access(target / path, os.X_OK) == (path in EXECUTABLES)
            (target / path).write_bytes(b"mine")
        assert snapshot(root) == before

    # -- threads

    def test_overlapping_threads_share_one_build(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path / "root")
        calls: list[str] = []
        started = threading.Barrier(8)

        def request(_: int) -> object:
            started.wait()
            return store.get_or_build(
                sample_key(), READY, payload_builder(calls=calls), private_parent=tmp_path / "p"
            )

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(request, range(8)))
        assert len(calls) == 1
        assert all(isinstance(result, (Hit, Published)) for result in results)

    def test_paths_follow_the_layout(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        layout = Layout(str(root))
        for spec in (GENERATED, READY):
            entry = self.publish(root, sample_key(), spec).entry
            assert str(entry.path) == layout.slot(sample_key(), spec)
