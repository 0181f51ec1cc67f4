from __future__ import annotations

import dataclasses
import os
import pwd
from pathlib import Path

import pytest
from pypto.jit.policy import PolicyLevels, capture_policy, environment_config
from pypto_store import CacheConfig
from pypto_store.layout import MARKER


@pytest.mark.conforms("cache.1")
def test_defaults_are_off() -> None:
    assert environment_config({}) == CacheConfig()
    assert dataclasses.asdict(CacheConfig()) == {
        "enabled": False,
        "root": None,
        "readonly": False,
        "extra_source_paths": (),
        "extra_fingerprint": None,
        "remote": None,
    }


@pytest.mark.conforms("cache.2")
def test_a_configuration_is_a_value() -> None:
    config = CacheConfig(enabled=True, root=Path("a"), extra_source_paths=(Path("b"),))
    for field in dataclasses.fields(config):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(config, field.name, None)
    same = CacheConfig(enabled=True, root=Path("a"), extra_source_paths=(Path("b"),))
    assert config == same
    assert hash(config) == hash(same)
    assert config != dataclasses.replace(config, readonly=True)


@pytest.mark.conforms("cache.6")
@pytest.mark.parametrize("name", ["PYPTO_CACHE", "PYPTO_CACHE_READONLY"])
@pytest.mark.parametrize("text", ["", "true", "01", " 1", "2", "yes", "1\n"])
def test_switches_are_strict_and_name_themselves(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"{name}="):
        environment_config({name: text})


def test_an_empty_root_is_refused() -> None:
    with pytest.raises(ValueError, match="PYPTO_CACHE_DIR"):
        environment_config({"PYPTO_CACHE_DIR": ""})


@pytest.mark.conforms("cache.10")
def test_the_root_alone_enables_nothing() -> None:
    config = environment_config({"PYPTO_CACHE_DIR": "/somewhere"})
    assert not config.enabled
    assert capture_policy(config, {}, "/").root is None


@pytest.mark.conforms("cache.3", "cache.4", "cache.5")
def test_each_level_wins_over_the_next_and_is_used_whole() -> None:
    levels = PolicyLevels()
    environ = {"PYPTO_CACHE": "1", "PYPTO_CACHE_DIR": "/env", "PYPTO_CACHE_READONLY": "1"}
    assert levels.effective(None, environ).root == Path("/env")
    levels.configure(CacheConfig(enabled=True))
    assert levels.effective(None, environ) == CacheConfig(enabled=True)
    own = CacheConfig(enabled=True, root=Path("/own"))
    assert levels.effective(own, environ) is own
    levels.configure(None)
    assert levels.effective(None, environ).readonly
    assert levels.effective(None, {}) == CacheConfig()


@pytest.mark.conforms("cache.7")
def test_a_malformed_variable_is_met_only_where_the_environment_decides() -> None:
    levels = PolicyLevels()
    malformed = {"PYPTO_CACHE": "maybe"}
    assert levels.effective(CacheConfig(), malformed) == CacheConfig()
    levels.configure(CacheConfig())
    assert levels.effective(None, malformed) == CacheConfig()
    levels.configure(None)
    with pytest.raises(ValueError, match="PYPTO_CACHE"):
        levels.effective(None, malformed)


def test_only_a_configuration_can_be_configured() -> None:
    with pytest.raises(TypeError, match="CacheConfig"):
        PolicyLevels().configure({"enabled": True})  # type: ignore[arg-type]


@pytest.mark.conforms("cache.9")
def test_relative_paths_are_taken_from_the_directory_of_the_request() -> None:
    config = CacheConfig(
        enabled=True, root=Path("cache"), extra_source_paths=(Path("a"), Path("/b"))
    )
    one = capture_policy(config, {}, "/one")
    assert one.root == "/one/cache"
    assert one.extra_source_paths == ("/one/a", "/b")
    assert capture_policy(config, {}, "/two").root == "/two/cache"


def test_links_on_the_way_to_a_root_are_followed_as_the_system_does(tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    cwd = os.path.realpath(tmp_path)
    for root in ("link/../cache", f"{cwd}/link/../cache", "link/../../far/cache"):
        policy = capture_policy(CacheConfig(enabled=True, root=Path(root)), {}, cwd)
        assert policy.root == f"{cwd}/far/cache"


def test_a_root_in_a_tree_of_links_is_where_its_marker_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "STORE").write_bytes(MARKER)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "STORE").symlink_to(tmp_path / "real" / "STORE")
    config = CacheConfig(enabled=True, root=tmp_path / "links")
    assert capture_policy(config, {}, "/").root == os.path.realpath(tmp_path / "real")
    (tmp_path / "real" / "STORE").unlink()
    assert capture_policy(config, {}, "/").root == os.path.realpath(tmp_path / "links")


def test_a_disabled_policy_asks_the_file_system_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    for name in ("stat", "lstat", "readlink", "open", "scandir"):
        monkeypatch.setattr(os, name, lambda *args, **kwargs: asked.append(args))
    config = CacheConfig(root=Path("link/../cache"), extra_source_paths=(Path("missing"),))
    policy = capture_policy(config, {}, "/")
    monkeypatch.undo()
    assert policy.root is None
    assert not asked


@pytest.mark.conforms("cache.8")
def test_the_default_root_is_below_home_whatever_xdg_says() -> None:
    environ = {"HOME": "/home/user", "XDG_CACHE_HOME": "/elsewhere"}
    policy = capture_policy(CacheConfig(enabled=True), environ, "/project")
    assert policy.root == "/home/user/.cache/pypto/jit"


def test_a_relative_home_is_taken_from_the_working_directory() -> None:
    policy = capture_policy(CacheConfig(enabled=True), {"HOME": "here"}, "/project")
    assert policy.root == "/project/here/.cache/pypto/jit"


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_without_home_the_list_of_users_decides(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # os.path.expanduser gives "/" for an empty HOME and "~" for a user it does not know.
    monkeypatch.setenv("HOME", "")
    user = pwd.getpwuid(os.getuid())
    policy = capture_policy(CacheConfig(enabled=True), environ, "/project")
    assert policy.root == os.path.join(user.pw_dir, ".cache/pypto/jit")
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with pytest.raises(ValueError, match="PYPTO_CACHE_DIR"):
        capture_policy(CacheConfig(enabled=True), environ, "/project")


def test_policies_cannot_be_changed() -> None:
    policy = capture_policy(CacheConfig(enabled=True), {"HOME": "/h"}, "/")
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.root = "/x"  # type: ignore[misc]
