from __future__ import annotations

import os

import pytest
from pypto_store.removal import remove_tree, remove_whole_tree


def make_deep(top, name, depth, link_to):
    """A tree of so many directories of one name, with a file and a link in each."""
    top.mkdir()
    inner = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=inner)
        os.symlink(link_to, "link", dir_fd=inner)
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=inner))
        outer, inner = inner, os.open(name, os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)


@pytest.mark.parametrize("remove", [remove_tree, remove_whole_tree])
@pytest.mark.parametrize(("name", "depth"), [("d", 1500), ("d" * 200, 40)])
def test_a_tree_of_any_depth_goes(tmp_path, remove, name, depth):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("mine")
    top = tmp_path / "top"
    make_deep(top, name, depth, link_to=elsewhere)
    remove(os.fspath(top))
    assert os.listdir(tmp_path) == ["elsewhere"]
    assert (elsewhere / "file").read_text() == "mine"


def test_what_cannot_be_removed_is_said_or_stays(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    make_deep(tmp_path / "top", "d", 1500, link_to=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", refuse)
        remove_tree(os.fspath(tmp_path / "top"))
        with pytest.raises(PermissionError):
            remove_whole_tree(os.fspath(tmp_path / "top"))
    assert (tmp_path / "top").is_dir()
    remove_tree(os.fspath(tmp_path / "top"))
    assert not (tmp_path / "top").exists()
