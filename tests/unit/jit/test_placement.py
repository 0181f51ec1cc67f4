from __future__ import annotations

from pathlib import Path

from pypto.jit.placement import fresh_directory, private_parent


def test_private_output_goes_to_the_working_directory() -> None:
    assert private_parent({}, "/project", None) == "/project/build_output"
    assert private_parent({}, "/project", "/cache") == "/project/build_output"


def test_the_environment_may_move_it() -> None:
    environ = {"PYPTO_PROG_BUILD_DIR": "elsewhere"}
    assert private_parent(environ, "/project", None) == "/project/elsewhere"


def test_it_never_lies_in_the_cache(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    root.mkdir()
    inside = str(root / "sub")
    first = private_parent({"TMPDIR": str(tmp_path)}, inside, str(root))
    second = private_parent({"TMPDIR": str(tmp_path)}, inside, str(root))
    assert first != second
    assert Path(first).parent == tmp_path
    assert len(Path(first).name) > 32
    assert list(tmp_path.iterdir()) == [root]


def test_a_link_into_the_cache_is_in_the_cache(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    root.mkdir()
    (tmp_path / "link").symlink_to(root)
    assert private_parent({"TMPDIR": "/tmp"}, str(tmp_path / "link"), str(root)).startswith("/tmp/")


def test_a_temporary_directory_that_will_not_do_is_not_used(tmp_path: Path) -> None:
    root = str(tmp_path)
    for temporary in ("relative", str(tmp_path / "in"), ""):
        parent = private_parent({"TMPDIR": temporary}, str(tmp_path), root)
        assert parent.startswith("/tmp/pypto-")


def test_a_sibling_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    assert private_parent({}, str(tmp_path / "cache2"), str(tmp_path / "cache")) == str(
        tmp_path / "cache2" / "build_output"
    )


def test_names_are_not_repeated() -> None:
    assert fresh_directory("/p", "k") != fresh_directory("/p", "k")
