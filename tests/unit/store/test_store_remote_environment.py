"""The remote that the environment names, and every way to name it wrongly."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path

import pytest
from pypto_store.remote_config import RemoteConfig, TlsConfig
from pypto_store.remote_environment import (
    called,
    parsed_header,
    read_trusted_keys,
    remote_from_environment,
    signing_key_from_environment,
    trusted_keys_from_environment,
)

URL = "PYPTO_CACHE_REMOTE"
KEY = "ed25519:" + b64encode(bytes(range(32))).decode()
OTHER = "ed25519:" + b64encode(bytes(range(1, 33))).decode()
NAMES = (
    "READONLY", "INSTANCE", "HEADERS", "TLS_CA", "TLS_CERTIFICATE", "TLS_KEY", "TIMEOUT", "UPLOAD",
    "CREDENTIAL_HELPER", "TRUSTED_KEYS", "SIGNING_KEY",
)  # fmt: skip


def environ(url="https://cache.example", **variables):
    return {URL: url, **{f"{URL}_{name}": value for name, value in variables.items()}}


def test_without_an_address_there_is_no_remote_whatever_else_is_set():
    assert remote_from_environment({}) is None
    assert remote_from_environment({f"{URL}_{name}": "" for name in NAMES}) is None


def test_an_address_alone_is_a_remote_with_defaults():
    given = {URL: "grpc://127.0.0.1:8980", "PYPTO_CACHE_DIR": "/elsewhere"}
    assert remote_from_environment(given) == RemoteConfig("grpc://127.0.0.1:8980")


def test_every_variable_is_a_field(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(f"# who may vouch\n\n  {KEY}  # the build server\n{OTHER}\r\n")
    found = remote_from_environment(
        environ(
            "grpcs://cache.example",
            READONLY="1",
            INSTANCE="fleet/a",
            HEADERS="X-Team: kernels\n\n  Authorization: Bearer a:b\n",
            TLS_CA="ca.pem",
            TLS_CERTIFICATE="/c/own.pem",
            TLS_KEY="/c/key.pem",
            TIMEOUT="2.5",
            UPLOAD="sync",
            CREDENTIAL_HELPER="/bin/helper",
            TRUSTED_KEYS=str(keys),
            SIGNING_KEY="own/key.pem",
        )
    )
    assert found == RemoteConfig(
        "grpcs://cache.example",
        readonly=True,
        instance="fleet/a",
        headers=(("X-Team", "kernels"), ("Authorization", "Bearer a:b")),
        tls=TlsConfig(Path("ca.pem"), Path("/c/own.pem"), Path("/c/key.pem")),
        timeout=2.5,
        upload="sync",
        credential_helper=Path("/bin/helper"),
        trusted_keys=(KEY, OTHER),
        signing_key=Path("own/key.pem"),
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_variable_that_is_set_and_empty_is_named(name):
    with pytest.raises(ValueError, match=f"{URL}_{name}\\b"):
        remote_from_environment(environ(**{name: ""}))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("TRUSTED_KEY", "TRUSTED_KEYS"), ("SIGNNG_KEY", "SIGNING_KEY"), ("READ_ONLY", "READONLY")],
)
def test_a_variable_that_is_misspelt_is_not_passed_over(name, meant):
    misspelt = {f"{URL}_{name}": "x"}
    with pytest.raises(ValueError, match=f"{URL}_{name} is not read; is {URL}_{meant} meant"):
        remote_from_environment(environ() | misspelt)
    with pytest.raises(ValueError, match=f"{URL}_{meant}"):
        trusted_keys_from_environment(misspelt)


@pytest.mark.parametrize(
    "name", ["SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_GRPC", "PORT", "PORT_50051_TCP_ADDR"]
)
def test_what_kubernetes_says_of_a_service_of_that_name_is_no_mistake(name):
    assert remote_from_environment(environ() | {f"{URL}_{name}": "x"}) is not None


def test_an_empty_address_is_named():
    with pytest.raises(ValueError, match=f"{URL} is empty"):
        remote_from_environment({URL: ""})


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"READONLY": "yes"}, "READONLY='yes'"),
        ({"TIMEOUT": "soon"}, "TIMEOUT='soon'"),
        ({"TIMEOUT": "0"}, "TIMEOUT must be more than 0"),
        ({"TIMEOUT": "nan"}, "TIMEOUT must be more than 0"),
        ({"UPLOAD": "later"}, "UPLOAD must be one of background, sync, off"),
        ({"INSTANCE": "a"}, "INSTANCE is for grpc"),
        ({"HEADERS": "no colon"}, "HEADERS: a header is written"),
        ({"HEADERS": "Host: x"}, "HEADERS: Host is set by the client"),
        ({"TLS_KEY": "key.pem"}, "TLS_KEY is of no use without PYPTO_CACHE_REMOTE_TLS_CERTIFICATE"),
        ({"TLS_CA": "\0"}, "TLS_CA wants a path"),
        ({"TRUSTED_KEYS": "/absent/keys"}, "TRUSTED_KEYS: /absent/keys: No such file"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_environment(variables, named):
    with pytest.raises(ValueError, match=URL) as refused:
        remote_from_environment(environ(**variables))
    assert f"{URL}_{named}" in str(refused.value)
    assert "RemoteConfig" not in str(refused.value)
    assert "TlsConfig" not in str(refused.value)


@pytest.mark.parametrize("url", ["ftp://me:secret@host", "http://me:secret@host", "secret"])
def test_no_message_repeats_an_address(url):
    with pytest.raises(ValueError, match=f"^{URL} ") as refused:
        remote_from_environment({URL: url})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("line", ["secret", "Bad name: secret", "Name: secret\u00e9"])
def test_no_message_repeats_a_header(line):
    with pytest.raises(ValueError, match=f"{URL}_HEADERS") as refused:
        remote_from_environment(environ(HEADERS=line))
    assert "secret" not in str(refused.value)


def test_trusted_keys_and_the_signing_key_are_read_without_an_address_too(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(KEY)
    given = {f"{URL}_TRUSTED_KEYS": str(keys), f"{URL}_SIGNING_KEY": "key.pem"}
    assert trusted_keys_from_environment(given) == (KEY,)
    assert signing_key_from_environment(given) == Path("key.pem")
    assert trusted_keys_from_environment({}) == ()
    assert signing_key_from_environment({}) is None


@pytest.mark.parametrize("content", [b"", b"# nobody yet\n", b"\n\n"])
def test_a_file_without_a_key_does_not_mean_that_anyone_is_trusted(tmp_path, content):
    keys = tmp_path / "keys"
    keys.write_bytes(content)
    with pytest.raises(ValueError, match=r"--trusted-keys: .*keys has no key"):
        read_trusted_keys(keys, "--trusted-keys")


def test_a_file_of_keys_is_bounded_and_need_not_be_text(tmp_path):
    keys = tmp_path / "keys"
    keys.write_bytes(b"ed25519:\xff\xfe\n")
    assert read_trusted_keys(keys, "x") == ("ed25519:\\xff\\xfe",)
    keys.write_bytes(b"#" * 100_000)
    with pytest.raises(ValueError, match="more than 65536 bytes"):
        read_trusted_keys(keys, "x")
    with pytest.raises(ValueError, match="Is a directory"):
        read_trusted_keys(tmp_path, "x")


def test_editors_of_other_systems_may_write_a_file_of_keys(tmp_path):
    place = tmp_path / "keys"
    place.write_bytes(b"\xef\xbb\xbf# ours\r\n" + KEY.encode() + b"\r\n" + KEY.encode())
    assert read_trusted_keys(place, "X") == (KEY, KEY)
    place.write_bytes(b"\xef\xbb\xbf" + KEY.encode())
    assert read_trusted_keys(place, "X") == (KEY,)


def test_a_pipe_of_keys_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "keys")
    with pytest.raises(ValueError, match=f"{URL}_TRUSTED_KEYS.*is a pipe"):
        remote_from_environment(environ(TRUSTED_KEYS=str(tmp_path / "keys")))


@pytest.mark.parametrize("name", ["SIGNING_KEY", "TLS_KEY", "TRUSTED_KEYS", "CREDENTIAL_HELPER"])
def test_a_key_in_place_of_its_file_is_not_shown(name):
    with pytest.raises(ValueError, match=f"{URL}_{name}") as caught:
        remote_from_environment(environ(**{name: "-----BEGIN PRIVATE KEY-----\nsecret"}))
    assert "secret" not in str(caught.value)


def test_a_key_that_is_none_is_named(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("ed25519:short")
    with pytest.raises(ValueError, match=f"{URL}_TRUSTED_KEYS"):
        remote_from_environment(environ(TRUSTED_KEYS=str(keys)))


def test_headers_and_names_of_fields():
    assert parsed_header(" A : b: c ", "x") == ("A", "b: c")
    assert called("RemoteConfig.url and TlsConfig.ca", {"TlsConfig.ca": "--tls-ca"}) == (
        "RemoteConfig.url and --tls-ca"
    )
