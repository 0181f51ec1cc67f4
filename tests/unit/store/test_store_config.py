from __future__ import annotations

from pathlib import Path

import pytest
from pypto_store import CacheConfig, RemoteConfig


def test_defaults_are_off():
    config = CacheConfig()
    assert config.enabled is False
    assert config.root is None
    assert config.readonly is False
    assert config.extra_source_paths == ()
    assert config.extra_fingerprint is None
    assert config.remote is None


def test_config_is_an_immutable_value():
    config = CacheConfig(enabled=True, root=Path("x"))
    assert config == CacheConfig(enabled=True, root=Path("x"))
    assert hash(config) == hash(CacheConfig(enabled=True, root=Path("x")))
    with pytest.raises(AttributeError):
        config.enabled = False


def test_paths_are_normalised_to_path_objects():
    config = CacheConfig(root="cache", extra_source_paths=["a", Path("b")])
    assert config.root == Path("cache")
    assert config.extra_source_paths == (Path("a"), Path("b"))


@pytest.mark.parametrize(
    "fields",
    [
        {"enabled": 1},
        {"readonly": "0"},
        {"root": 3},
        {"root": ""},
        {"root": b"x"},
        {"extra_source_paths": "kernels"},
        {"extra_source_paths": Path("kernels")},
        {"extra_source_paths": (b"x",)},
        {"extra_source_paths": ("\ud800",)},
        {"root": "\ud800"},
        {"extra_source_paths": 5},
        {"extra_fingerprint": 1},
        {"remote": "file:///x"},
    ],
)
def test_wrong_types_are_refused_by_name(fields):
    with pytest.raises(TypeError, match=next(iter(fields))):
        CacheConfig(**fields)


def test_a_remote_is_part_of_the_value():
    config = CacheConfig(remote=RemoteConfig("file:///x"))
    assert config == CacheConfig(remote=RemoteConfig("file:///x")) != CacheConfig()
    assert hash(config) == hash(CacheConfig(remote=RemoteConfig("file:///x")))
