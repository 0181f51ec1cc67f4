"""`gc`: what goes, in which order, and that what stays is whole wherever it is interrupted."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import time
from contextlib import contextmanager
from datetime import datetime

import pytest
from pypto_store import (
    ArtifactKey,
    ArtifactStore,
    Digest,
    Hit,
    Miss,
    Published,
    State,
    crash_points,
    iterate_entries,
)
from pypto_store.evidence import EvidenceRecord, Input
from pypto_store.testing import EXECUTABLES, GENERATED, READY, snapshot
from pypto_store.tools.quantities import duration, size

DAY = 86_400
NOW = time.time()
SHARED = b"shared" * 1000


class House:
    """A root of keys with contents of their own and one that all share."""

    def __init__(self, top, writing):
        self.top, self.root, self.writing = top, top / "root", writing

    def key(self, name):
        return ArtifactKey(
            Digest.of(b"format"),
            Digest.of(b"environment"),
            Digest.of(name.encode()),
            Digest.of(b""),
            Digest.of(b"specialization"),
        )

    def payload(self, name, state):
        return {
            "kernel_config.json": b"{}",
            "shared": SHARED,
            "own": name.encode() * 500,
            "state": state.value.encode() * 300,
            "prebuilt/kernel_0.bin": f"binary of {name}".encode() * 400,
        }

    def publish(self, name, age_in_days, *, spec=GENERATED):
        def build(directory):
            for path, data in self.payload(name, spec.state).items():
                (directory / path).parent.mkdir(exist_ok=True)
                (directory / path).write_bytes(data)
                if path in EXECUTABLES:
                    (directory / path).chmod(0o700)

        with self.writing(self.root) as store:
            result = store.get_or_build(self.key(name), spec, build, private_parent=self.top / "p")
            assert isinstance(result, Published)
            told = [Input("f", "text", name * 50)]
            store.keep_evidence(
                [
                    EvidenceRecord.of("source", self.key(name).source, told, f"m:{name}"),
                    EvidenceRecord.of("environment", self.key(name).environment, told),
                ]
            )
        self.use(name, age_in_days)
        return result.entry.path

    def use(self, name, age_in_days, *, accessed=None):
        """Set when every manifest of a key was written and last read."""
        for path in self.root.glob(f"artifacts/v1/*/{self.key(name).digest}/**/*manifest.json"):
            modified = NOW - age_in_days * DAY
            read = modified if accessed is None else NOW - accessed * DAY
            os.utime(path, (read, modified))

    def copy(self, root):
        """Another root with the same files, times and shared inodes."""
        times = {path: os.lstat(path) for path in self.root.rglob("*")}
        shutil.copytree(self.root, root, symlinks=True)
        first = {}
        for path, status in times.items():
            there = root / path.relative_to(self.root)
            if stat.S_ISREG(status.st_mode):
                known = first.setdefault(status.st_ino, there)
                if known is not there:
                    there.unlink()
                    os.link(known, there)
                for place in (there, path):  # copying read the original
                    os.utime(place, (status.st_atime, status.st_mtime))
        return root

    def found(self, name, spec=GENERATED):
        return ArtifactStore(self.root, readonly=True).lookup(self.key(name), spec)

    def names(self, *known):
        return {name for name in known if isinstance(self.found(name), Hit)}

    def disk(self):
        """Bytes of all regular files, every inode once, locks and marker left out."""
        inodes = {}
        for path in self.root.rglob("*"):
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and "locks" not in path.parts:
                inodes[status.st_ino] = status.st_size
        return sum(inodes.values()) - len("pypto-store 1\n")


@pytest.fixture
def house(tmp_path, writing, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return House(tmp_path, writing)


@pytest.fixture
def full(house):
    """Four keys, used 40, 30, 20 and 10 days ago; the second is READY too."""
    for name, age in (("a", 40), ("b", 30), ("c", 20), ("d", 10)):
        house.publish(name, age)
    house.publish("b", 30, spec=READY)
    (house.root / "tools").mkdir(mode=0o700)
    for digit, age in ("1", 40), ("2", 10):
        record = house.root / "tools" / f"{digit * 64}.json"
        record.write_bytes(b"{}" * 10)
        os.utime(record, (NOW - age * DAY,) * 2)
    return house


def gc(command, house, *words):
    done = command("gc", "--root", house.root, *words)
    assert done.status == 0, done.err
    return done.document


def dropped(document):
    return [(item["kernel"], item["reason"]) for item in document["dropped"]]


def test_without_limits_nothing_that_is_needed_goes(full, command):
    before = snapshot(full.root)
    document = gc(command, full, "--delete")
    assert (document["dropped"], document["kept"], document["dry_run"]) == ([], 4, False)
    assert document["blobs"] == document["evidence"] == document["records"] == 0
    assert document["before"] == document["after"] == full.disk()
    assert snapshot(full.root) == before


def test_a_dry_run_is_the_default_and_writes_nothing(full, command):
    before = snapshot(full.root)
    with full.writing(full.root) as store:
        store.get_or_build(full.key("a"), GENERATED, None, private_parent=full.top / "p")
        document = gc(command, full, "--max-age", "15d", "--max-size", "1")
    assert document["dry_run"]
    assert len(document["dropped"]) == 4
    assert snapshot(full.root) == before


def test_age_is_counted_from_the_last_use(full, command):
    full.use("a", 40, accessed=1)
    document = gc(command, full, "--max-age", "25d", "--delete")
    assert dropped(document) == [("m:b", "age")]
    assert full.names("a", "b", "c", "d") == {"a", "c", "d"}
    assert isinstance(full.found("b", READY), Miss)


def test_a_key_was_used_when_any_of_its_entries_was(full, command):
    (path,) = full.root.glob(f"artifacts/v1/*/{full.key('b').digest}/ready/*/*manifest.json")
    os.utime(path, (NOW - DAY, NOW - 30 * DAY))
    assert dropped(gc(command, full, "--max-age", "25d")) == [("m:a", "age")]


def test_ls_tells_the_use_that_counts(full, command, on_terminal):
    full.use("a", 40, accessed=1)
    (entry,) = command("ls", "--root", full.root, "--kernel", "a").document["entries"]
    assert abs(datetime.fromisoformat(entry["used"]).timestamp() - (NOW - DAY)) <= 1
    shown = on_terminal("ls", "--root", full.root, "--kernel", "a").out
    assert f"{datetime.fromtimestamp(NOW - DAY).astimezone():%Y-%m-%d}" in shown


def test_size_drops_the_least_recently_used_first(full, command):
    sizes = {}
    for count in range(1, 5):
        document = gc(command, full, "--max-size", "1")
        order = [item["kernel"] for item in document["dropped"]]
        assert order == ["m:a", "m:b", "m:c", "m:d"]
        sizes[count] = sum(item["frees"] for item in document["dropped"][:count])
    limit = full.disk() - sizes[1]
    document = gc(command, full, "--max-size", str(limit))
    assert dropped(document) == [("m:a", "size")]
    document = gc(command, full, "--max-size", str(limit - 1), "--delete")
    assert dropped(document) == [("m:a", "size"), ("m:b", "size")]
    assert full.names("a", "b", "c", "d") == {"c", "d"}
    assert document["after"] == full.disk() <= limit - 1


def test_shared_inodes_count_once_and_leave_with_their_last_owner(full, command):
    assert sum(row.size for row in iterate_entries(full.root)) > full.disk()
    first, *_ = gc(command, full, "--max-size", "1")["dropped"]
    assert first["frees"] < sum(map(len, full.payload("a", State.GENERATED).values()))
    blob = Digest.of(SHARED).hex
    path = full.root / "cas" / blob[:2] / blob
    assert path.exists()
    command("gc", "--root", full.root, "--max-size", "1", "--keep", "d", "--delete")
    assert path.exists()
    command("gc", "--root", full.root, "--max-size", "1", "--delete")
    assert not path.exists()


def test_the_second_inode_of_a_content_goes_with_those_who_hold_it(full, command):
    digest = Digest.of(SHARED).hex
    first = full.root / "cas" / digest[:2] / digest
    second = first.with_name(f"{digest}.2")
    assert second.exists()  # the READY entry's, which shares nothing with its own sources
    gc(command, full, "--delete")
    assert second.exists()
    document = gc(command, full, "--max-age", "25d", "--delete")
    assert dropped(document) == [("m:a", "age"), ("m:b", "age")]
    assert first.exists() and not second.exists()
    assert document["after"] == full.disk()


def test_everything_gone_leaves_a_store_that_works(full, command):
    document = gc(command, full, "--max-size", "0", "--delete")
    assert (document["kept"], document["after"], full.disk()) == (0, 0, 0)
    left = sorted(path.relative_to(full.root).parts[0] for path in full.root.rglob("*"))
    assert set(left) <= {"STORE", "artifacts", "cas", "evidence", "locks", "tools"}
    assert not list((full.root / "cas").iterdir())
    full.publish("a", 0)
    assert full.names("a") == {"a"}


def test_what_a_dropped_key_named_goes_and_what_others_name_stays(full, command):
    document = gc(command, full, "--max-age", "35d", "--delete")
    assert dropped(document) == [("m:a", "age")]
    assert (document["blobs"], document["evidence"], document["records"]) == (2, 1, 1)
    assert document["after"] == full.disk()
    assert not (full.root / "evidence" / f"{full.key('a').source}.json").exists()
    assert (full.root / "evidence" / f"{full.key('b').source}.json").exists()
    assert (full.root / "evidence" / f"{full.key('b').environment}.json").exists()
    assert [path.name[0] for path in (full.root / "tools").iterdir()] == ["2"]
    assert not list(full.root.glob(f"artifacts/v1/*/{full.key('a').digest}"))
    assert command("fsck", "--root", full.root).document["findings"] == []
    again = gc(command, full, "--max-age", "35d", "--delete")
    assert again["before"] == again["after"] == document["after"]


def test_all_that_users_remember_goes_by_age(full, command):
    (full.root / "facts").mkdir()
    for digit, age in ("3", 40), ("4", 10):
        record = full.root / "facts" / f"{digit * 64}.json"
        record.write_bytes(b"{}")
        os.utime(record, (NOW - age * DAY,) * 2)
    assert gc(command, full, "--max-age", "35d", "--delete")["records"] == 2
    left = [path.name[0] for name in ("tools", "facts") for path in (full.root / name).iterdir()]
    assert left == ["2", "4"]
    assert command("fsck", "--root", full.root).document["findings"] == []


@pytest.mark.parametrize("name", ["a", "m:a", "digits"])
def test_what_is_to_be_kept_stays(full, command, name):
    name = full.key("a").digest.hex[:20] if name == "digits" else name
    document = gc(command, full, "--max-age", "15d", "--keep", name, "--delete")
    assert dropped(document) == [("m:b", "age"), ("m:c", "age")]
    assert full.names("a", "b", "c", "d") == {"a", "d"}


def test_what_has_to_stay_may_be_too_large(full, command):
    done = command("gc", "--root", full.root, "--max-size", "100", "--keep", "b", "--delete")
    assert done.status == 1
    document = done.document
    assert document["kept"] == 1
    assert document["over"] == full.disk() - 100 > 0


def test_a_name_to_keep_that_means_nothing_stops_everything(full, command):
    before = snapshot(full.root)
    for name in ("nothing", ""):
        done = command("gc", "--root", full.root, "--max-size", "0", "--keep", name, "--delete")
        assert (done.status, done.out) == (1, "")
        assert "--keep" in done.err
    assert snapshot(full.root) == before


def test_leftovers_go(full, command):
    key = next(full.root.glob("artifacts/v1/*/*"))
    (key / ".tmp.abc").mkdir()
    (key / ".tmp.abc" / "own").write_bytes(b"x" * 1000)
    (key / ".tmp.marker").write_bytes(b"")
    (full.root / "evidence" / ".tmp.abc").write_bytes(b"x")
    (full.root / "tools" / ".tmp.abc").write_bytes(b"x")
    (full.root / "facts").mkdir()
    (full.root / "facts" / ".tmp.abc").write_bytes(b"x")
    (full.root / "trash" / "abc").mkdir(parents=True)
    (full.root / "trash" / "abc" / "own").write_bytes(b"x" * 1000)
    document = gc(command, full, "--delete")
    assert document["leftovers"] == 6
    assert document["before"] - document["after"] == 2003
    assert document["after"] == full.disk()
    assert not [path for path in full.root.rglob("*") if ".tmp." in path.name]
    assert not (full.root / "trash").exists()


@pytest.mark.parametrize(("name", "depth"), [("d", 1500), ("d" * 200, 40)])
def test_a_slot_of_any_depth_goes(full, command, name, depth):
    inner = os.open(next(full.root.glob("artifacts/v1/*/*/generated")), os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=inner)
        outer, inner = inner, os.open(name, os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    assert gc(command, full, "--max-size", "0")["kept"] == 0
    gc(command, full, "--max-size", "0", "--delete")
    assert full.disk() == 0
    assert not (full.root / "trash").exists()


def test_foreign_files_stay(full, command):
    key = next(full.root.glob(f"artifacts/v1/*/{full.key('a').digest}"))
    foreign = [key / "notes", full.root / "cas" / "notes", full.root / "tools" / "notes"]
    foreign += [full.root / "evidence" / "notes", full.root / "notes"]
    (full.root / "cas" / "ab").mkdir(exist_ok=True)
    foreign += [full.root / "cas" / "ab" / "notes"]
    for path in foreign:
        path.write_bytes(b"mine")
    gc(command, full, "--max-size", "0", "--delete")
    assert all(path.read_bytes() == b"mine" for path in foreign)


def test_quarantine_and_locks_stay(full, command):
    aside = full.root / "quarantine" / "x" / "1"
    aside.mkdir(parents=True)
    locks = sorted(os.listdir(full.root / "locks"))
    gc(command, full, "--max-size", "0", "--delete")
    assert aside.is_dir()
    assert sorted(os.listdir(full.root / "locks")) == locks


def test_the_blobs_of_a_damaged_entry_are_counted_by_their_inodes(full, command):
    (slot,) = full.root.glob(f"artifacts/v1/*/{full.key('a').digest}/generated")
    (slot / "artifact_manifest.json").write_bytes(b"{}")
    full.use("a", 40)
    own = os.stat(slot / "own").st_ino
    gc(command, full, "--delete")
    assert own in {os.stat(path).st_ino for path in (full.root / "cas").glob("*/*")}
    assert dropped(gc(command, full, "--max-age", "35d", "--delete")) == [(None, "age")]
    assert own not in {os.stat(path).st_ino for path in (full.root / "cas").glob("*/*")}


def test_a_reader_keeps_what_it_has_open(full, command):
    entry = full.found("b", READY).entry
    with open(f"{entry.directory}/prebuilt/kernel_0.bin", "rb") as file:
        document = gc(command, full, "--max-size", "0", "--delete")
        assert document["kept"] == 0
        assert file.read() == full.payload("b", State.READY)["prebuilt/kernel_0.bin"]


def test_a_living_writer_is_named_and_nothing_goes(full, command):
    before = snapshot(full.root)
    with full.writing(full.root) as store:
        with store.wait_for_writer(full.key("a"), shared=False):
            pass
        done = command("gc", "--root", full.root, "--max-size", "0", "--delete")
        assert (done.status, done.out) == (3, "")
        assert "this process" in done.err
    assert snapshot(full.root) == before


def test_only_stores_are_cleaned(tmp_path, command):
    (tmp_path / "cas" / "ab").mkdir(parents=True)
    (tmp_path / "cas" / "ab" / ("ab" * 32)).write_bytes(b"mine")
    done = command("gc", "--root", tmp_path, "--delete")
    assert (done.status, done.out) == (2, "")
    assert (tmp_path / "cas" / "ab" / ("ab" * 32)).read_bytes() == b"mine"


class Killed(BaseException):
    """Ends a run where it stands."""


def points(full, command, words, root):
    reached = []
    with crash_points.armed(reached.append):
        command("gc", "--root", root, *words)
    return reached


def test_wherever_it_is_interrupted_the_next_run_ends_it(full, command, tmp_path):
    """Killed at every point, after each of which every entry is whole or not there."""
    key = next(full.root.glob("artifacts/v1/*/*"))
    (key / ".tmp.abc").mkdir()
    (full.root / "evidence" / ".tmp.abc").write_bytes(b"x")
    (full.root / "trash" / "abc").mkdir(parents=True)
    words = ["--max-age", "25d", "--delete"]
    rehearsal = full.copy(tmp_path / "rehearsal")
    reached = points(full, command, words, rehearsal)
    assert set(reached) == {name for name in crash_points.CLEANING_POINTS if name[:2] == "gc"}
    ended = tree(rehearsal)
    for number in range(len(reached)):
        root = full.copy(tmp_path / f"killed-{number}")
        left = [number]

        def strike(_, left=left):
            if not left[0]:
                raise Killed
            left[0] -= 1

        with crash_points.armed(strike), pytest.raises(Killed):
            command("gc", "--root", root, *words)
        # Not looked up: that would be use. fsck reads as much.
        assert command("fsck", "--root", root, "--dry-run").status == 0, reached[number]
        states = {(row.key, row.state) for row in iterate_entries(root)}
        kept = {(full.key(name).digest.hex, State.GENERATED) for name in "cd"}
        assert kept <= states, reached[number]
        assert all((key, State.GENERATED) in states for key, _ in states), reached[number]
        assert command("gc", "--root", root, *words).status == 0
        assert tree(root) == ended, reached[number]


def tree(root):
    return {path: found[2] for path, found in snapshot(root).items()}


def test_a_disk_that_refuses_is_said_and_the_next_run_ends_it(full, command, monkeypatch):
    real = os.unlink

    def refuse(path, *more, **named):
        if "/cas/" in str(path):
            raise OSError(errno.EACCES, "Permission denied", path)
        real(path, *more, **named)

    monkeypatch.setattr(os, "unlink", refuse)
    done = command("gc", "--root", full.root, "--max-age", "25d", "--delete")
    assert (done.status, done.out) == (2, "")
    assert "Permission denied" in done.err
    monkeypatch.undo()
    assert full.names("a", "b", "c", "d") == {"c", "d"}
    assert gc(command, full, "--delete")["blobs"] > 0
    assert full.disk() == gc(command, full)["before"]


def test_a_terminal_is_told_what_would_go(full, on_terminal):
    done = on_terminal("gc", "--root", full.root, "--max-age", "25d", width=80)
    assert done.status == 0
    assert "m:a" in done.out and "m:b" in done.out and "m:c" not in done.out
    assert "2 keys to drop, 2 kept" in done.out
    assert "--delete" in done.out
    shown = re.sub(r"\x1b\[[0-9;]*m", "", done.out)
    assert max(map(len, shown.splitlines())) <= 80
    done = on_terminal("gc", "--root", full.root, "--max-age", "25d", "--delete")
    assert "2 keys dropped, 2 kept" in done.out
    assert "--delete" not in done.out


def test_progress_ends_at_its_total(full):
    from pypto_store.layout import Layout
    from pypto_store.tools.cleaning import Limits, carry_out, plan
    from pypto_store.tools.stock import take_stock

    stretches = {}

    class Counting:
        @contextmanager
        def of(self, what, total):
            stretches[what] = [total, 0]

            def advance(amount):
                stretches[what][1] += amount

            yield advance

    (next(full.root.glob("artifacts/v1/*/*")) / ".tmp.abc").mkdir()
    stock = take_stock(Layout(str(full.root)), Counting())
    decided = plan(stock, Limits(0, None, frozenset()), NOW)
    carry_out(stock.layout, decided, Counting())
    assert stretches["keys"] == [4, 4]
    assert stretches["removing"][0] == stretches["removing"][1] > 5


def test_looking_is_no_use(full, command):
    (path,) = full.root.glob(f"artifacts/v1/*/{full.key('a').digest}/generated/*manifest.json")
    os.utime(path, (1_000_000_000, 1_100_000_000))
    gc(command, full)
    assert os.stat(path).st_atime == 1_000_000_000


def test_a_lookup_is_use_where_the_file_system_tells(full, command):
    (path,) = full.root.glob(f"artifacts/v1/*/{full.key('a').digest}/generated/*manifest.json")
    (full.top / "control").write_bytes(b"x")
    os.utime(full.top / "control", (1_000_000_000, 1_100_000_000))
    (full.top / "control").read_bytes()
    tells = os.stat(full.top / "control").st_atime > 1_000_000_000
    os.utime(path, (1_000_000_000, 1_100_000_000))
    assert isinstance(full.found("a"), Hit)
    names = [name for name, _ in dropped(gc(command, full, "--max-age", "35d"))]
    assert names == ([] if tells else ["m:a"])


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("1500", 1500), ("2k", 2048), ("1.5K", 1536), ("10M", 10 << 20), ("3GiB", 3 << 30),
     ("1 TB", 1 << 40)],
)  # fmt: skip
def test_sizes(text, value):
    assert size(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("90s", 90), ("1.5m", 90), ("12h", 43_200), ("30d", 30 * DAY), ("2W", 14 * DAY)],
)  # fmt: skip
def test_lengths_of_time(text, value):
    assert duration(text) == value


@pytest.mark.parametrize("words", [["--max-size", "much"], ["--max-size", "-1"],
                                   ["--max-age", "30"], ["--max-age", "d"],
                                   ["--max-size", "9" * 400],
                                   ["--max-age", f"{'9' * 400}d"]])  # fmt: skip
def test_other_quantities_are_refused(full, command, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        command("gc", "--root", full.root, f"{words[0]}={words[1]}")
    assert stopped.value.code == 2
    assert words[1] in capsys.readouterr().err
