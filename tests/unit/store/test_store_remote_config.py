"""A remote's configuration is right from birth, and keeps its secrets to itself."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from pypto_store import CacheConfig, RemoteConfig
from pypto_store.remote_config import TlsConfig


@pytest.mark.parametrize(
    "url",
    [
        "file:///var/cache",
        "file://localhost/var/cache",
        "http://127.0.0.1:8080",
        "http://cache.example/some/prefix/",
        "https://[::1]:8443",
        "https://name:secret@cache.example",
        "grpc://127.0.0.1:50051",
        "grpcs://name:secret@cache.example:8980/",
    ],
)
def test_urls_of_every_scheme(url):
    config = RemoteConfig(url)
    assert config.url == url and config.scheme == url.partition(":")[0]
    assert (config.readonly, config.instance, config.headers, config.tls) == (False, "", (), None)
    assert (config.timeout, config.upload) == (60.0, "background")
    assert (config.credential_helper, config.trusted_keys, config.signing_key) == (None, (), None)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "must start with one of file://"),
        ("/var/cache", "must start with"),
        ("ftp://x", "must start with"),
        ("HTTP://x", "must start with"),
        ("http:/x", "must start with"),
        ("http://", "names no host"),
        ("http://:80", "names no host"),
        ("http://x:99999", "no usable address"),
        ("http://x:y", "no usable address"),
        ("http://x:0", "port 0"),
        ("http://[::1", "no usable address"),
        ("http://x/?a", "neither"),
        ("http://x/#a", "neither"),
        ("http://x/?", "neither"),
        ("http://x/a b", "blanks"),
        ("http://x/a\r\nHost: y", "blanks"),
        ("http://ä/", "ASCII"),
        ("http://name:secret@x", "unencrypted"),
        ("http://name@x", "unencrypted"),
        ("https://na%3Ame:secret@x", "colon"),
        ("grpc://name:secret@x", "unencrypted"),
        ("grpc://x/instance", "RemoteConfig.instance"),
        ("file://var/cache", "three slashes"),
        ("file://", "absolute directory"),
        ("file:///a%00b", "absolute directory"),
    ],
)
def test_impossible_urls_are_refused_and_not_shown(url, says):
    with pytest.raises(ValueError, match=r"RemoteConfig\.url") as caught:
        RemoteConfig(url)
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://name:secret/word@host",
        "https://name:12/secret@host",
        "grpcs://name:secret/word@host",
        "https://name:[secret]@host",
        "https://name:secret#word@host",
        "https://name:secret?@host",
        "https://[secret]",
        "https://name:secret",
        b"https://name:secret@host",
        ("https://name:secret@host",),
    ],
)
def test_no_message_shows_what_may_be_a_password(url):
    with pytest.raises((TypeError, ValueError), match=r"RemoteConfig\.url") as caught:
        RemoteConfig(url)
    assert "secret" not in str(caught.value)
    with pytest.raises(TypeError, match=r"CacheConfig\.remote") as caught:
        CacheConfig(remote=url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("field", ["signing_key", "credential_helper"])
def test_a_key_in_place_of_its_file_is_not_shown(field):
    pem = "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n"
    for text in (pem, pem.replace("\n", " ")):
        with pytest.raises(ValueError, match=rf"{field} wants the name of a file") as caught:
            RemoteConfig("https://x", **{field: text})
        assert "secret" not in str(caught.value)
        with pytest.raises(ValueError, match=r"TlsConfig\.key") as caught:
            TlsConfig(certificate="/c.pem", key=Path(text))  # type: ignore[arg-type]
        assert "secret" not in str(caught.value)


def test_a_value_in_place_of_a_header_s_name_is_not_shown():
    with pytest.raises(ValueError, match=r"number 2 has a name") as caught:
        RemoteConfig("https://x", headers=(("A", "b"), ("Bearer secret", "x")))
    assert "secret" not in str(caught.value)


def test_the_directory_of_file_is_what_its_bytes_say():
    assert RemoteConfig("file:///a%20b/%C3%A9/%ff").directory == os.fsdecode(b"/a b/\xc3\xa9/\xff")
    assert RemoteConfig("https://x/a").directory is None


H = "http://x"
KEY = "ed25519:" + base64.b64encode(bytes(range(32))).decode()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"url": "file:///x", "instance": "main"}, "instance"),
        ({"url": H, "instance": "main"}, "instance"),
        ({"url": "file:///x", "headers": (("A", "b"),)}, "headers"),
        ({"url": H, "headers": (("a b", "x"),)}, "number 1 has a name"),
        ({"url": H, "headers": (("", "x"),)}, "number 1 has a name"),
        ({"url": H, "headers": (("A", "secret\r\nB: c"),)}, "value of A"),
        ({"url": H, "headers": (("A", " secret"),)}, "value of A"),
        ({"url": H, "headers": (("A", "secrét"),)}, "value of A"),
        ({"url": H, "headers": (("content-Length", "1"),)}, "set by the client"),
        ({"url": H, "tls": TlsConfig()}, "tls"),
        ({"url": H, "timeout": 0}, "timeout"),
        ({"url": H, "timeout": -1.0}, "timeout"),
        ({"url": H, "timeout": float("nan")}, "timeout"),
        ({"url": H, "timeout": float("inf")}, "timeout"),
        ({"url": H, "upload": "later"}, "upload"),
        ({"url": "https://n:secret@x", "headers": (("Authorization", "secret"),)}, "keep one"),
        ({"url": "file:///x", "credential_helper": "/helper"}, "credential_helper"),
        ({"url": H, "credential_helper": "/helper"}, "unencrypted"),
        ({"url": "grpc://127.example", "credential_helper": "/helper"}, "unencrypted"),
        ({"url": H, "trusted_keys": (KEY, "secret")}, "number 2"),
        ({"url": H, "trusted_keys": (KEY.removeprefix("ed25519:"),)}, "number 1"),
        ({"url": H, "trusted_keys": (f"{KEY} ",)}, "number 1"),
        ({"url": H, "trusted_keys": (KEY.rstrip("="),)}, "number 1"),
        ({"url": H, "trusted_keys": (KEY.replace("Hh8=", "Hh9="),)}, "number 1"),
        ({"url": H, "trusted_keys": ("ed25519:secret==",)}, "number 1"),
        ({"url": H, "trusted_keys": ("ed25519:" + "A" * 44,)}, "number 1"),
    ],
)
def test_impossible_values_are_refused_by_name(fields, says):
    with pytest.raises(ValueError, match=r"RemoteConfig\.") as caught:
        RemoteConfig(**fields)
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"url": Path("/x")},
        {"readonly": 1},
        {"instance": None},
        {"headers": "A: b"},
        {"headers": {"A": "b"}},
        {"headers": (("A", b"b"),)},
        {"headers": (("A", "b", "c"),)},
        {"tls": {"ca": "x"}},
        {"timeout": "60"},
        {"timeout": True},
        {"credential_helper": b"/helper"},
        {"trusted_keys": KEY},
        {"trusted_keys": (KEY.encode(),)},
        {"trusted_keys": 1},
        {"signing_key": ""},
    ],
)
def test_wrong_types_are_refused_by_name(fields):
    with pytest.raises(TypeError, match=rf"RemoteConfig\.{next(iter(fields))}"):
        RemoteConfig(**{"url": H, **fields})


def test_files_of_encryption_are_paths():
    tls = TlsConfig(ca="/ca.pem", certificate="/me.pem")  # type: ignore[arg-type]
    assert (tls.ca, tls.certificate, tls.key) == (Path("/ca.pem"), Path("/me.pem"), None)
    assert RemoteConfig("https://x", tls=tls).tls is tls
    with pytest.raises(ValueError, match=r"TlsConfig\.certificate"):
        TlsConfig(key=Path("/key.pem"))
    with pytest.raises(TypeError, match=r"TlsConfig\.ca"):
        TlsConfig(ca=b"/ca.pem")  # type: ignore[arg-type]


def test_a_name_in_the_url_becomes_a_header_and_is_shown_nowhere():
    config = RemoteConfig("https://na%20me:sec%40ret@x:8443/p", headers=(("X-Key", "secret"),))
    assert config.basic_authorization is not None
    method, _, text = config.basic_authorization.partition(" ")
    assert (method, base64.b64decode(text)) == ("Basic", b"na me:sec@ret")
    assert config.shown_url == "https://x:8443/p"
    assert "sec" not in repr(config) and "X-Key" in repr(config)
    assert RemoteConfig("https://x").basic_authorization is None


def test_what_proves_entries_is_a_value():
    config = RemoteConfig(
        "https://x", trusted_keys=[KEY], signing_key="/key.pem", credential_helper="/helper"
    )  # type: ignore[arg-type]
    assert config.trusted_keys == (KEY,)
    assert (config.signing_key, config.credential_helper) == (Path("/key.pem"), Path("/helper"))
    again = RemoteConfig(
        "https://x",
        trusted_keys=(KEY,),
        signing_key=Path("/key.pem"),
        credential_helper=Path("/helper"),
    )
    assert config == again and hash(config) == hash(again)
    assert KEY in repr(config)


@pytest.mark.parametrize("host", ["localhost", "[::1]", "127.0.0.1:8080"])
@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_credential_helper_may_speak_to_this_host(scheme, host):
    url = f"{scheme}://{host}"
    assert RemoteConfig(url, credential_helper=Path("/helper")).credential_helper is not None
