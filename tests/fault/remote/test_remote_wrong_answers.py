"""Remotes that say or are something wrong: nothing of it is used, and what is built is right."""

from __future__ import annotations

import errno
import os

import pytest
from machines import LONG, builds_on
from moody_cache import MoodyCache
from pypto_store import RemoteConfig
from pypto_store.remote.entry_name import entry_name
from pypto_store.remote.messages import ActionResult, OutputFile
from pypto_store.testing import PAYLOAD, READY, sample_key

# -- wrong answers; the tests of entries have many more


def _entry(files, name="one"):
    return ActionResult(tuple(files)).encode()


def wrong_answers():
    """What each does to a server that has READY of "one" and of "two"."""
    place = {
        name: f"ac/{entry_name(sample_key(name), READY).digest.sha256}" for name in ("one", "two")
    }

    def listed(files):
        return list(ActionResult.decode(files[place["one"]]).output_files)

    def blob(files, change):
        for name, data in files.items():
            if data == PAYLOAD["prebuilt/kernel_0.bin"]:
                files[name] = change(data)

    def entry(change):
        def apply(files):
            files[place["one"]] = _entry(change(listed(files)))

        return apply

    def renamed(path):
        return entry(
            lambda rows: [
                OutputFile(path, row.digest, row.executable) if row.path == "empty" else row
                for row in rows
            ]
        )

    return {
        "another entry's": lambda files: files.__setitem__(place["one"], files[place["two"]]),
        "no entry": lambda files: files.__setitem__(place["one"], b"<html>welcome</html>"),
        "a huge entry": lambda files: files.__setitem__(place["one"], bytes(5_000_000)),
        "an empty entry": lambda files: files.__setitem__(place["one"], b""),
        "a changed blob": lambda files: blob(files, lambda data: b"\x7f" + data[1:]),
        "a short blob": lambda files: blob(files, lambda data: data[:-1]),
        "a long blob": lambda files: blob(files, lambda data: data + b"\0"),
        "a file less": entry(lambda rows: [row for row in rows if row.path != "empty"]),
        "a file twice": entry(lambda rows: rows + rows[:1]),
        "a path upwards": renamed("../evil"),
        "an absolute path": renamed("/tmp/pypto-evil"),
        "executable": entry(lambda rows: [OutputFile(row.path, row.digest, True) for row in rows]),
    }


@pytest.mark.parametrize("kind", wrong_answers())
def test_a_wrong_answer_is_built_anew_and_replaced(machine, told, started, kind):
    started.append(MoodyCache())
    author = machine(RemoteConfig(started[0].url, timeout=LONG))
    author.build("one")
    author.build("two", {**PAYLOAD, "other": b"other"})
    author.settle()
    wrong_answers()[kind](started[0].files)
    built = machine(RemoteConfig(started[0].url, timeout=LONG))
    assert built.build("one")
    counted = built.settle()
    assert (counted.hits, counted.misses, counted.uploads, len(counted.faults)) == (0, 0, 1, 1)
    assert len(told()) == 1
    assert not (built.directory / "evil").exists() and not os.path.exists("/tmp/pypto-evil")
    # What was wrong is right again, for everybody.
    assert not machine(RemoteConfig(started[0].url)).build("one")


# -- directories


def test_a_directory_that_is_a_file(machine, told, tmp_path):
    (tmp_path / "cache").write_text("not a directory")
    builds_on(machine, told, RemoteConfig(f"file://{tmp_path}/cache"), "Not a directory")
    assert (tmp_path / "cache").read_text() == "not a directory"


def test_a_directory_that_is_a_loop(machine, told, tmp_path):
    (tmp_path / "cache").symlink_to("cache")
    builds_on(machine, told, RemoteConfig(f"file://{tmp_path}/cache"), "symbolic links")


class Failing:
    """os.open that fails below a directory, for reading or for writing."""

    def __init__(self, directory, number, *, writing):
        self.directory = str(directory)
        self.number = number
        self.writing = writing
        self.real = os.open

    def __call__(self, path, flags, *arguments, **options):
        writing = bool(flags & (os.O_WRONLY | os.O_CREAT))
        if str(path).startswith(self.directory) and writing == self.writing:
            raise OSError(self.number, os.strerror(self.number), path)
        return self.real(path, flags, *arguments, **options)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOTCONN])
def test_a_directory_that_cannot_be_read(machine, told, tmp_path, monkeypatch, number):
    monkeypatch.setattr(os, "open", Failing(tmp_path / "cache", number, writing=False))
    config = RemoteConfig(f"file://{tmp_path}/cache")
    builds_on(machine, told, config, os.strerror(number), reports=1)


@pytest.mark.parametrize(
    ("number", "faults"),
    [(errno.EROFS, 1), (errno.EACCES, 1), (errno.ENOSPC, 3), (errno.EDQUOT, 3), (errno.EIO, 3)],
)
def test_a_directory_that_cannot_be_written(machine, told, tmp_path, monkeypatch, number, faults):
    config = RemoteConfig(f"file://{tmp_path}/cache")
    author = machine(config)
    author.build("shared")
    author.settle()
    before = {path for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    monkeypatch.setattr(os, "open", Failing(tmp_path / "cache", number, writing=True))
    built = machine(config)
    for name in "abc":
        assert built.build(name)
        built.settle()
    assert not built.build("shared")
    counted = built.counted
    assert (counted.hits, counted.misses, counted.uploads) == (1, 3, 0)
    assert len(counted.faults) == faults  # a refusal is not asked for again
    assert os.strerror(number) in counted.faults[0]
    assert len(told()) == 1
    assert {path for path in (tmp_path / "cache").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("upload", ["sync", "background"])
def test_a_full_local_disk_is_no_trouble_of_the_remote(machine, told, tmp_path, upload):
    """What cannot be written here is the store's to say; the remote is not blamed for it."""
    config = RemoteConfig(f"file://{tmp_path}/cache", upload=upload)
    author = machine(config)
    author.build()
    author.settle()
    built = machine(config)
    with pytest.raises(FileNotFoundError):
        built.tier.fetch(sample_key(), READY, str(tmp_path / "nowhere"))
    assert not built.counted.faults and not told()
