from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pypto.jit.application import ExtraSourceError, application_digest
from pypto_toolchains.packages import hash_files


def digest(*paths: Path, fingerprint: str | None = None) -> str:
    return application_digest(tuple(map(str, paths)), fingerprint, hash_files).hex


@pytest.mark.conforms("cache.15")
def test_a_file_counts_by_content_whatever_its_suffix(tmp_path: Path) -> None:
    file = tmp_path / "table.bin"
    file.write_bytes(b"one")
    before = digest(file)
    os.utime(file, (1, 1))
    assert digest(file) == before
    file.write_bytes(b"two")
    assert digest(file) != before


@pytest.mark.conforms("cache.16")
def test_a_directory_counts_by_its_python_sources(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").write_text("1")
    before = digest(tmp_path)
    (tmp_path / "note.txt").write_text("x")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "b.py").write_text("x")
    assert digest(tmp_path) == before
    for change in ("edit", "add", "rename", "remove"):
        match change:
            case "edit":
                (tmp_path / "sub" / "a.py").write_text("2")
            case "add":
                (tmp_path / "b.py").write_text("")
            case "rename":
                (tmp_path / "b.py").rename(tmp_path / "c.py")
            case "remove":
                (tmp_path / "sub" / "a.py").unlink()
        after = digest(tmp_path)
        assert after != before, change
        before = after


def test_where_it_lies_does_not_count(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("1")
    assert digest(tmp_path / "one") == digest(tmp_path / "two")


def test_links_to_directories_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").write_text("1")
    (tmp_path / "top").mkdir()
    before = digest(tmp_path / "top")
    (tmp_path / "top" / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    assert digest(tmp_path / "top") == before


def test_an_empty_directory_is_no_file_and_no_absence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert len({digest(), digest(tmp_path / "empty"), digest(tmp_path / "file")}) == 3


@pytest.mark.conforms("cache.19")
def test_the_fingerprint_counts() -> None:
    # The last one is what os.environ gives for a variable that is not UTF-8.
    told = [None, "", "a", "\udcff"]
    assert len({digest(fingerprint=fingerprint) for fingerprint in told}) == 4


@pytest.mark.conforms("cache.18")
def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExtraSourceError, match=r"gone\.py"):
        digest(tmp_path / "gone.py")
    (tmp_path / "broken.py").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ExtraSourceError, match=r"broken\.py"):
        digest(tmp_path)


def test_what_has_no_content_is_refused_and_not_read(tmp_path: Path) -> None:
    # Opening a FIFO waits for its writer, and a device may have no end.
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "zero.py").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe.py", Path("/dev/zero"), tmp_path, tmp_path / "directory"):
        with pytest.raises(ExtraSourceError, match="neither a file nor a directory"):
            digest(path)


def test_the_order_that_a_directory_is_read_in_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text(name)
    real = os.scandir

    def read(backwards: bool) -> str:
        @contextlib.contextmanager
        def scandir(path: str) -> Iterator[list[os.DirEntry[str]]]:
            with real(path) as entries:
                yield sorted(entries, key=lambda entry: entry.name, reverse=backwards)

        monkeypatch.setattr(os, "scandir", scandir)
        return digest(tmp_path)

    assert read(backwards=False) == read(backwards=True)
