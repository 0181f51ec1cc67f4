from __future__ import annotations

import pytest
from pypto_store.paths import path_fault


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "a/b.cpp",
        ".hidden",
        "..a",
        "a/...",
        "a b",
        'q"uote',
        "n\nl",
        "ü/é",
        "x/STORE",
        "-rf",
        "a/" * 127 + "b",
        "é/" * 127 + "b",
    ],
)
def test_normal_relative_paths_are_fine(path):
    assert path_fault(path) is None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("/a", "absolute"),
        ("a//b", "normal"),
        ("a/", "normal"),
        ("./a", "normal"),
        ("a/..", "normal"),
        ("..", "normal"),
        ("../a", "normal"),
        ("a/../b", "normal"),
        ("a\0b", "NUL"),
        ("a\ud800", "UTF-8"),
        ("a" * 256, "component"),
        ("é" * 128, "component"),
        ("a/" * 2048 + "b", "4096"),
        ("a/" * 128 + "b", "deeper"),
        ("artifact_manifest.json", "reserved"),
        ("artifact_manifest.json.sig", "reserved"),
        (b"a", "text"),
        (None, "text"),
    ],
)
def test_other_paths_are_explained(path, reason):
    assert reason in path_fault(path)
