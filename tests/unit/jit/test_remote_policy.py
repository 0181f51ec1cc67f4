"""Which remote a request is under: given with the rest of its policy, and part of no name."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from pypto.jit.policy import PolicyLevels, capture_policy, environment_config
from pypto.jit.remotes import Remotes
from pypto.jit.statistics import Statistics
from pypto.jit.stores import Stores
from pypto_store import CacheConfig, Published, RemoteConfig, TlsConfig
from pypto_store.testing import READY, payload_builder, sample_key

KEY = "ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
ON = {"PYPTO_CACHE": "1"}


def captured(remote: RemoteConfig, cwd: str = "/here") -> RemoteConfig:
    policy = capture_policy(CacheConfig(enabled=True, root=Path("/r"), remote=remote), {}, cwd)
    assert policy.remote is not None
    return policy.remote


def test_the_environment_names_a_whole_remote(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"# ours\n{KEY}  # the builder's\n")
    config = environment_config(
        {
            **ON,
            "PYPTO_CACHE_REMOTE": "grpcs://cache.example",
            "PYPTO_CACHE_REMOTE_READONLY": "1",
            "PYPTO_CACHE_REMOTE_INSTANCE": "main",
            "PYPTO_CACHE_REMOTE_HEADERS": "X-One: a b\nX-Two: c",
            "PYPTO_CACHE_REMOTE_TLS_CA": "ca.pem",
            "PYPTO_CACHE_REMOTE_TLS_CERTIFICATE": "me.pem",
            "PYPTO_CACHE_REMOTE_TLS_KEY": "/me.key",
            "PYPTO_CACHE_REMOTE_TIMEOUT": "2.5",
            "PYPTO_CACHE_REMOTE_UPLOAD": "sync",
            "PYPTO_CACHE_REMOTE_CREDENTIAL_HELPER": "bin/helper",
            "PYPTO_CACHE_REMOTE_TRUSTED_KEYS": str(keys),
            "PYPTO_CACHE_REMOTE_SIGNING_KEY": "sign.pem",
        }
    )
    assert config.remote == RemoteConfig(
        "grpcs://cache.example",
        readonly=True,
        instance="main",
        headers=(("X-One", "a b"), ("X-Two", "c")),
        tls=TlsConfig(Path("ca.pem"), Path("me.pem"), Path("/me.key")),
        timeout=2.5,
        upload="sync",
        credential_helper=Path("bin/helper"),
        trusted_keys=(KEY,),
        signing_key=Path("sign.pem"),
    )


def test_files_are_taken_from_the_directory_of_the_request() -> None:
    remote = RemoteConfig(
        "https://x",
        tls=TlsConfig(Path("ca.pem"), Path("me.pem"), Path("/me.key")),
        credential_helper=Path("bin/helper"),
        signing_key=Path("sign.pem"),
    )
    assert captured(remote) == RemoteConfig(
        "https://x",
        tls=TlsConfig(Path("/here/ca.pem"), Path("/here/me.pem"), Path("/me.key")),
        credential_helper=Path("/here/bin/helper"),
        signing_key=Path("/here/sign.pem"),
    )
    assert captured(remote, "/there") != captured(remote)
    for absolute in (captured(remote), RemoteConfig("file:///x"), RemoteConfig("https://x")):
        assert captured(absolute) is absolute


def test_without_persistence_no_remote_is_read() -> None:
    for off in ({}, {"PYPTO_CACHE": "0"}):
        malformed = {**off, "PYPTO_CACHE_REMOTE": "nowhere"}
        assert environment_config(malformed).remote is None
    disabled = CacheConfig(remote=RemoteConfig("file:///x"))
    assert capture_policy(disabled, {}, "/").remote is None


def test_the_other_variables_name_no_remote() -> None:
    assert environment_config({**ON, "PYPTO_CACHE_REMOTE_TIMEOUT": "1"}).remote is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", ""),
        ("", "ftp://secret"),
        ("", "http://name:secret@x"),
        ("_READONLY", "yes"),
        ("_READONLY", ""),
        ("_INSTANCE", ""),
        ("_HEADERS", "secret"),
        ("_HEADERS", "A: secret\x01"),
        ("_TLS_KEY", "/key.pem"),
        ("_TLS_CA", ""),
        ("_TIMEOUT", "soon"),
        ("_TIMEOUT", "-1"),
        ("_UPLOAD", "later"),
        ("_CREDENTIAL_HELPER", ""),
        ("_TRUSTED_KEYS", "/nowhere/keys"),
        ("_SIGNING_KEY", ""),
    ],
)
def test_a_malformed_variable_names_itself_and_no_secret(name: str, text: str) -> None:
    variable = f"PYPTO_CACHE_REMOTE{name}"
    shown = "PYPTO_CACHE_REMOTE_TLS" if name == "_TLS_KEY" else variable
    with pytest.raises(ValueError, match=rf"\b{shown}(?![A-Z])") as caught:
        environment_config({**ON, "PYPTO_CACHE_REMOTE": "https://x", variable: text})
    assert "secret" not in str(caught.value)


def test_a_level_is_used_whole_with_its_remote_or_without() -> None:
    levels = PolicyLevels()
    environ = {**ON, "PYPTO_CACHE_REMOTE": "file:///environment"}
    process = CacheConfig(enabled=True, remote=RemoteConfig("file:///process"))
    assert levels.effective(None, environ).remote == RemoteConfig("file:///environment")
    levels.configure(process)
    assert levels.effective(None, environ).remote == RemoteConfig("file:///process")
    own = CacheConfig(enabled=True, remote=RemoteConfig("file:///own"))
    assert levels.effective(own, environ).remote == RemoteConfig("file:///own")
    assert levels.effective(CacheConfig(enabled=True), environ).remote is None
    levels.configure(CacheConfig(enabled=True))
    assert levels.effective(None, environ).remote is None
    malformed = {**ON, "PYPTO_CACHE_REMOTE": "nowhere"}
    assert levels.effective(None, malformed).remote is None
    levels.configure(None)
    with pytest.raises(ValueError, match="PYPTO_CACHE_REMOTE"):
        levels.effective(None, malformed)


def test_equal_remotes_share_a_tier_and_a_store(tmp_path: Path) -> None:
    remotes = Remotes(Statistics(), lambda: 0)
    one, same = RemoteConfig("file:///one"), RemoteConfig("file:///one")
    assert remotes.tier(one) is remotes.tier(same)
    assert remotes.tier(one) is not remotes.tier(RemoteConfig("file:///one", readonly=True))
    assert remotes.flush(1.0)
    stores = Stores(Statistics(), lambda: 0)
    assert stores.flush_remotes(1.0)

    def store(remote: RemoteConfig | None) -> Any:
        config = CacheConfig(enabled=True, root=tmp_path, remote=remote)
        return stores.at(capture_policy(config, {}, "/"))

    assert store(one) is store(same)
    assert store(one) is not store(None)
    assert store(one) is not store(RemoteConfig("file:///two"))
    assert stores.flush_remotes(1.0)


def test_a_remote_inside_the_root_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (tmp_path / "link").symlink_to(root)

    def captured(directory: Path) -> Any:
        remote = RemoteConfig(directory.as_uri())
        return capture_policy(CacheConfig(enabled=True, root=root, remote=remote), {}, "/").remote

    for inside in (
        root,
        root / "artifacts",
        tmp_path / "link" / "x",
        tmp_path / "a" / ".." / "root",
    ):
        with pytest.raises(ValueError, match="inside the cache root"):
            captured(inside)
    for outside in (tmp_path, tmp_path / "root2", tmp_path / "a"):
        assert captured(outside).directory == str(outside)


def test_remotes_whose_credentials_change_do_not_pile_up() -> None:
    remotes = Remotes(Statistics(), lambda: 0)
    made = [
        weakref.ref(remotes.tier(RemoteConfig("http://x", headers=(("A", str(number)),))))
        for number in range(100)
    ]
    gc.collect()
    assert sum(tier() is not None for tier in made) == 16
    assert made[-1]() is remotes.tier(RemoteConfig("http://x", headers=(("A", "99"),)))


def test_threads_that_need_a_tier_at_once_get_one() -> None:
    remotes = Remotes(Statistics(), lambda: 0)
    found: list[Any] = []
    started = threading.Barrier(8)

    def need() -> None:
        started.wait()
        found.append(remotes.tier(RemoteConfig("file:///one")))

    threads = [threading.Thread(target=need) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(map(id, found))) == 1


def test_what_a_remote_answers_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What the tests of the store publish is no program.
    monkeypatch.setattr("pypto.jit.remotes.misfit", lambda manifest, directory: None)
    ticks = iter(range(0, 1000, 10))
    statistics = Statistics()
    stores = Stores(statistics, lambda: next(ticks))

    def ask(root: str, url: str) -> Any:
        remote = RemoteConfig(url, upload="sync")
        config = CacheConfig(enabled=True, root=tmp_path / root, remote=remote)
        return stores.at(capture_policy(config, {}, "/")).get_or_build(
            sample_key(), READY, payload_builder(), private_parent=tmp_path / "private"
        )

    far = (tmp_path / "far").as_uri()
    size = ask("one", far).entry.manifest.payload_size
    counted = statistics.snapshot()
    assert (counted.remote_misses, counted.remote_uploads, counted.remote_fetch_ns) == (1, 1, 10)
    assert counted.remote_upload_bytes >= size and counted.remote_upload_ns > 0
    assert not isinstance(ask("two", far), Published)
    counted = statistics.snapshot()
    assert (counted.remote_hits, counted.remote_download_bytes) == (1, size)
    assert (counted.remote_errors, counted.remote_fetch_ns) == (0, 20)
    (tmp_path / "file").write_text("")
    assert isinstance(ask("three", (tmp_path / "file").as_uri()), Published)
    counted = statistics.snapshot()
    assert counted.remote_errors >= 1 and counted.last_remote_error is not None
    assert "file" in counted.last_remote_error
