"""One root and several users: who may read, who may write, and what the umask has to say."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from pypto_store import ArtifactStore, Failure, Hit, Miss, Private, Published, StorageError
from pypto_store.testing import GENERATED, READY, payload_builder, sample_key

# Users and a group that need not exist. The modules above are loaded before one becomes another.
ALICE, BOB, EVE, TEAM = 64001, 64002, 64003, 64010
PROTECTED = Path("/proc/sys/fs/protected_hardlinks").read_text(encoding="ascii").strip() == "1"
UMASKS = [0o000, 0o022, 0o027, 0o077]


def as_user(uid: int, action: Callable[[], bool], *, member: bool = True) -> bool:
    """What `action` says in a process of user `uid`, in the group TEAM or not."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            group = TEAM if member else uid
            os.setgroups([group])
            os.setresgid(group, group, group)
            os.setresuid(uid, uid, uid)
            status = 0 if action() else 1
        except BaseException:  # noqa: BLE001  a child reports everything and returns nowhere
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1), "see the traceback above"
    return status == 0


PAGE = next(
    parent / "docs/how-to/share-a-cache.md"
    for parent in Path(__file__).parents
    if (parent / "docs/how-to/share-a-cache.md").exists()
)


def follow(command: str, root: Path) -> None:
    """Run a command as the how-to has it, for this root and this group."""
    lines = [line.strip() for line in PAGE.read_text(encoding="utf-8").splitlines()]
    (line,) = {line for line in lines if line.startswith(command)}
    words = line.replace("/srv/pypto-cache", str(root)).replace("kernels", str(TEAM))
    subprocess.run(["sh", "-c", words], check=True)


def others_exist() -> bool:
    """Whether this process may become other users; says so loudly where it may not."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([TEAM])
            os.setresuid(ALICE, ALICE, ALICE)
            os._exit(0)
        finally:
            os._exit(1)
    allowed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    if not allowed:
        sys.__stderr__.write("\nNOT TESTED WITH SEVERAL USERS: this process may not become one\n")  # type: ignore[union-attr]
    return allowed


@pytest.fixture
def root(open_directory: Path) -> Path:
    """A directory that may become a root; everyone may make private directories beside it."""
    open_directory.chmod(0o777)
    root = open_directory / "cache"
    root.mkdir()
    return root


def request(root: Path, key: str = "one", **options: object) -> object:
    store = ArtifactStore(root, lock_timeout=10)
    return store.get_or_build(
        sample_key(key),
        READY,
        payload_builder(),
        private_parent=root.parent / f"private-{os.getuid()}",
        **options,  # type: ignore[arg-type]
    )


def modes(root: Path) -> set[tuple[str, int]]:
    found = set()
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        kind = "directory" if stat.S_ISDIR(mode) else "lock" if path.suffix == ".lock" else "file"
        if kind == "file" and mode & 0o100:
            kind = "executable"
        found.add((kind, stat.S_IMODE(mode)))
    return found


@pytest.mark.parametrize("umask", UMASKS)
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777, 0o2700, 0o2705])
def test_a_root_is_private_whatever_the_umask(root: Path, umask: int, mode: int) -> None:
    root.chmod(mode)
    previous = os.umask(umask)
    try:
        assert isinstance(request(root), Published)
        ArtifactStore(root).lookup(sample_key(), READY)
    finally:
        os.umask(previous)
    directory = 0o700 | mode & 0o2000
    assert modes(root) == {
        ("directory", directory),
        ("file", 0o600),
        ("executable", 0o700),
        ("lock", 0o600),
    }


@pytest.mark.parametrize("umask", UMASKS)
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (0o2770, {"directory": 0o2770, "file": 0o640, "executable": 0o750, "lock": 0o660}),
        (0o2775, {"directory": 0o2770, "file": 0o640, "executable": 0o750, "lock": 0o660}),
        (0o2750, {"directory": 0o2750, "file": 0o640, "executable": 0o750, "lock": 0o640}),
    ],
)
def test_a_set_group_id_root_gives_its_group_what_it_may_do(
    root: Path, umask: int, mode: int, expected: dict[str, int]
) -> None:
    root.chmod(mode)
    previous = os.umask(umask)
    try:
        assert isinstance(request(root), Published)
        assert isinstance(request(root, "two"), Published)
    finally:
        os.umask(previous)
    assert modes(root) == set(expected.items())
    assert {path.stat().st_gid for path in root.rglob("*")} == {root.stat().st_gid}
    # What a builder fills is its own affair.
    assert not (root.parent / f"private-{os.getuid()}").exists()


def test_private_directories_stay_private_below_a_shared_one(root: Path) -> None:
    shared = root.parent / "project"
    shared.mkdir()
    shared.chmod(0o2777)
    seen = []

    def build(directory: Path) -> None:
        payload_builder()(directory)
        seen.append([stat.S_IMODE(path.stat().st_mode) & 0o777 for path in directory.parents[:2]])
        seen.append([stat.S_IMODE(directory.stat().st_mode) & 0o777])

    store = ArtifactStore(root, readonly=True)
    result = store.get_or_build(
        sample_key(), READY, build, private_parent=shared / "build_output/deep"
    )
    assert isinstance(result, Private)
    assert seen == [[0o700, 0o700], [0o700]]


@pytest.mark.parametrize("used", [False, True])
def test_a_team_reads_and_writes_one_root(root: Path, used: bool) -> None:
    """A new root, and one that was private before."""
    if not others_exist():
        root.chmod(0o2770)
        assert isinstance(request(root), Published)
        return
    if used:
        os.chown(root, ALICE, ALICE)
        assert as_user(ALICE, lambda: isinstance(request(root, "before"), Published))
        for command in ("chgrp -R", "chmod -R g+rX", "find", "chmod g+w"):
            follow(command, root)
    else:
        root.rmdir()
        follow("install -d", root)
        os.chown(root, ALICE, TEAM)

    def alice() -> bool:
        os.umask(0o077)
        return isinstance(request(root), Published)

    def bob() -> bool:
        os.umask(0o022)
        if used and not isinstance(request(root, "before"), Hit):
            return False
        hit = ArtifactStore(root).lookup(sample_key(), READY)
        other_key = request(root, "two")
        other_state = ArtifactStore(root, lock_timeout=10).get_or_build(
            sample_key(), GENERATED, payload_builder(), private_parent=root.parent / "private-bob"
        )
        # Where the kernel protects links, what is another user's cannot be linked, only copied.
        if PROTECTED and isinstance(other_key, Published) and other_key.shared_bytes:
            return False
        return (
            isinstance(hit, Hit)
            and isinstance(other_key, Published)
            and isinstance(other_state, Published)
        )

    def alice_again() -> bool:
        store = ArtifactStore(root)
        found = store.lookup(sample_key("two"), READY), store.lookup(sample_key(), GENERATED)
        return all(isinstance(hit, Hit) for hit in found)

    def eve() -> bool:
        found = ArtifactStore(root).lookup(sample_key(), READY)
        result = request(root)
        return isinstance(found, StorageError) and isinstance(result, Private)

    assert as_user(ALICE, alice)
    assert as_user(BOB, bob)
    assert as_user(ALICE, alice_again)
    assert as_user(EVE, eve, member=False)
    owners = {path.stat().st_uid for path in root.rglob("*")}
    assert owners == {ALICE, BOB}
    # Immutable for everyone but their owner, also by mistake.
    payload = [path for path in (root / "artifacts").rglob("*") if path.is_file()]
    assert not [path for path in payload if path.stat().st_mode & 0o022]


def test_a_crashed_publication_of_one_is_cleaned_up_by_the_other(root: Path) -> None:
    if not others_exist():
        return
    os.chown(root, ALICE, TEAM)
    root.chmod(0o2770)

    def crash() -> bool:
        from pypto_store import crash_points

        def die(point: str) -> None:
            if point == "publish.tree_synced":
                os._exit(0)

        with crash_points.armed(die):
            request(root)
        return False

    assert as_user(ALICE, crash)
    assert [path for path in root.rglob(".tmp.*") if path.is_dir()]
    assert as_user(BOB, lambda: isinstance(request(root), Published))
    assert not list(root.rglob(".tmp.*"))


@pytest.mark.parametrize("mode", [0o2750, 0o750])
def test_members_who_may_only_read_build_privately(root: Path, mode: int) -> None:
    if not others_exist():
        return
    os.chown(root, ALICE, TEAM)
    root.chmod(mode)
    assert as_user(ALICE, lambda: isinstance(request(root), Published))

    def bob() -> bool:
        found = ArtifactStore(root).lookup(sample_key(), READY)
        miss = ArtifactStore(root).lookup(sample_key("absent"), READY)
        result = request(root, "absent")
        reads = isinstance(found, Hit) and miss == Miss()
        if mode & 0o2000 and not reads:
            return False
        return isinstance(result, Private) and result.failure in (Failure.LOCK, Failure.STORAGE)

    assert as_user(BOB, bob)


@pytest.mark.conforms("cache.80")
def test_anyone_reads_a_private_root_after_the_documented_chmod(root: Path) -> None:
    """chmod -R a+rX, by a process that keeps no right of its owner's."""
    root.chmod(0o700)
    assert isinstance(request(root), Published)

    def reads() -> bool:
        return isinstance(ArtifactStore(root, readonly=True).lookup(sample_key(), READY), Hit)

    def is_refused() -> bool:
        found = ArtifactStore(root, readonly=True).lookup(sample_key(), READY)
        return isinstance(found, StorageError)

    several = others_exist()
    if several:
        assert as_user(EVE, is_refused, member=False)
    follow("chmod -R a+rX", root)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in root.rglob("*")}
    if several:
        assert as_user(EVE, reads, member=False)

        def cannot_write() -> bool:
            result = request(root, "new")
            return isinstance(result, Private) and result.failure is Failure.LOCK

        assert as_user(EVE, cannot_write, member=False)
    assert reads()
    after = {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in root.rglob("*")}
    assert after == before
