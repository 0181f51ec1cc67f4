"""The remote that variables of the environment name: read one way, for requests and for commands.

    PYPTO_CACHE_REMOTE                   its URL; without it the others are not read
    PYPTO_CACHE_REMOTE_READONLY          1: store nothing there
    PYPTO_CACHE_REMOTE_INSTANCE          the part of a server that is meant
    PYPTO_CACHE_REMOTE_HEADERS           lines `Name: value`
    PYPTO_CACHE_REMOTE_TLS_CA, ..._TLS_CERTIFICATE, ..._TLS_KEY          PEM files
    PYPTO_CACHE_REMOTE_TIMEOUT           seconds
    PYPTO_CACHE_REMOTE_UPLOAD            background, sync or off
    PYPTO_CACHE_REMOTE_CREDENTIAL_HELPER a program
    PYPTO_CACHE_REMOTE_TRUSTED_KEYS      a file of public keys, one a line
    PYPTO_CACHE_REMOTE_SIGNING_KEY       a file with a private key

A variable that is set and empty is a mistake and said to be one, and so is one whose name is nearly
one of these: whoever wrote a name there that came out empty, or TRUSTED_KEY, must not end up with
another remote, or with one that nobody is asked to vouch for.
Messages name the variable, and never repeat an address or the value of a header.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from pypto_store.remote_config import RemoteConfig, TlsConfig, is_content

REMOTE_VARIABLE = "PYPTO_CACHE_REMOTE"
REMOTE_READONLY_VARIABLE = "PYPTO_CACHE_REMOTE_READONLY"
REMOTE_INSTANCE_VARIABLE = "PYPTO_CACHE_REMOTE_INSTANCE"
REMOTE_HEADERS_VARIABLE = "PYPTO_CACHE_REMOTE_HEADERS"
REMOTE_TLS_CA_VARIABLE = "PYPTO_CACHE_REMOTE_TLS_CA"
REMOTE_TLS_CERTIFICATE_VARIABLE = "PYPTO_CACHE_REMOTE_TLS_CERTIFICATE"
REMOTE_TLS_KEY_VARIABLE = "PYPTO_CACHE_REMOTE_TLS_KEY"
REMOTE_TIMEOUT_VARIABLE = "PYPTO_CACHE_REMOTE_TIMEOUT"
REMOTE_UPLOAD_VARIABLE = "PYPTO_CACHE_REMOTE_UPLOAD"
REMOTE_CREDENTIAL_HELPER_VARIABLE = "PYPTO_CACHE_REMOTE_CREDENTIAL_HELPER"
REMOTE_TRUSTED_KEYS_VARIABLE = "PYPTO_CACHE_REMOTE_TRUSTED_KEYS"
REMOTE_SIGNING_KEY_VARIABLE = "PYPTO_CACHE_REMOTE_SIGNING_KEY"

# What a complaint about a value calls what a user of the variables has set.
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "RemoteConfig.url": REMOTE_VARIABLE,
        "RemoteConfig.instance": REMOTE_INSTANCE_VARIABLE,
        "RemoteConfig.headers": REMOTE_HEADERS_VARIABLE,
        "RemoteConfig.tls": "PYPTO_CACHE_REMOTE_TLS_*",
        "RemoteConfig.timeout": REMOTE_TIMEOUT_VARIABLE,
        "RemoteConfig.upload": REMOTE_UPLOAD_VARIABLE,
        "RemoteConfig.credential_helper": REMOTE_CREDENTIAL_HELPER_VARIABLE,
        "RemoteConfig.trusted_keys": REMOTE_TRUSTED_KEYS_VARIABLE,
        "RemoteConfig.signing_key": REMOTE_SIGNING_KEY_VARIABLE,
        "TlsConfig.ca": REMOTE_TLS_CA_VARIABLE,
        "TlsConfig.certificate": REMOTE_TLS_CERTIFICATE_VARIABLE,
        "TlsConfig.key": REMOTE_TLS_KEY_VARIABLE,
    }
)
# All that may follow the name of the address, and how like one of them a mistake looks: far from
# what a Kubernetes service of a similar name puts into every container (..._SERVICE_HOST).
_FURTHER = tuple(
    name.removeprefix(f"{REMOTE_VARIABLE}_")
    for name in (
        *(REMOTE_READONLY_VARIABLE, REMOTE_INSTANCE_VARIABLE, REMOTE_HEADERS_VARIABLE),
        *(REMOTE_TLS_CA_VARIABLE, REMOTE_TLS_CERTIFICATE_VARIABLE, REMOTE_TLS_KEY_VARIABLE),
        *(REMOTE_TIMEOUT_VARIABLE, REMOTE_UPLOAD_VARIABLE, REMOTE_CREDENTIAL_HELPER_VARIABLE),
        *(REMOTE_TRUSTED_KEYS_VARIABLE, REMOTE_SIGNING_KEY_VARIABLE),
    )
)
_ALIKE = 0.68
_NAME = r"(?:RemoteConfig|TlsConfig)\.[a-z_]+"
_SWITCH = {"0": False, "1": True}
_KEYS_LIMIT = 64 * 1024  # bytes of a file of public keys


def remote_from_environment(environ: Mapping[str, str]) -> RemoteConfig | None:
    """The remote that `environ` names; None if it names none. ValueError naming what is wrong.

    Relative paths stay relative, and the file of trusted keys is read.
    """
    url = _text(environ.get(REMOTE_VARIABLE), REMOTE_VARIABLE)
    if url is None:
        return None
    upload = _text(environ.get(REMOTE_UPLOAD_VARIABLE), REMOTE_UPLOAD_VARIABLE) or "background"
    instance = _text(environ.get(REMOTE_INSTANCE_VARIABLE), REMOTE_INSTANCE_VARIABLE)
    try:
        return RemoteConfig(
            url,
            readonly=_readonly(environ),
            instance=instance or "",
            headers=_headers(environ),
            tls=_tls(environ),
            timeout=_timeout(environ),
            # Whatever it is: the value checks itself.
            upload=cast('Literal["background", "sync", "off"]', upload),
            credential_helper=_path(
                environ.get(REMOTE_CREDENTIAL_HELPER_VARIABLE), REMOTE_CREDENTIAL_HELPER_VARIABLE
            ),
            trusted_keys=trusted_keys_from_environment(environ),
            signing_key=signing_key_from_environment(environ),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(called(str(error), _NAMES)) from None


def trusted_keys_from_environment(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that entries must be signed with; none if nobody asks. ValueError as above."""
    _refuse_misspelt(environ)
    path = _path(environ.get(REMOTE_TRUSTED_KEYS_VARIABLE), REMOTE_TRUSTED_KEYS_VARIABLE)
    if path is None:
        return ()
    if path.is_fifo():  # every request reads it, and all but the first would wait for ever
        raise ValueError(f"{REMOTE_TRUSTED_KEYS_VARIABLE}: {path} is a pipe; name a file")
    return read_trusted_keys(path, REMOTE_TRUSTED_KEYS_VARIABLE)


def signing_key_from_environment(environ: Mapping[str, str]) -> Path | None:
    """The file with the key to sign with, unread; None if there is none. ValueError as above."""
    return _path(environ.get(REMOTE_SIGNING_KEY_VARIABLE), REMOTE_SIGNING_KEY_VARIABLE)


def read_trusted_keys(path: Path, given_by: str) -> tuple[str, ...]:
    """The keys in a file: one a line; what follows a # is for people.

    given_by: the variable or option that names the file. ValueError if it cannot be read, or has
    no key: an empty list would mean that nobody has to vouch for anything.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_KEYS_LIMIT + 1)
    except OSError as error:
        raise ValueError(
            f"{given_by}: {path}: {error.strerror or error}; name a file of public keys"
        ) from None
    if len(data) > _KEYS_LIMIT:
        raise ValueError(f"{given_by}: {path} has more than {_KEYS_LIMIT} bytes; is it the file?")
    data = data.removeprefix(codecs.BOM_UTF8)
    lines = (line.partition(b"#")[0].strip() for line in data.splitlines())
    keys = tuple(line.decode("utf-8", "backslashreplace") for line in lines if line)
    if not keys:
        raise ValueError(f"{given_by}: {path} has no key; write ed25519:<base64>, one a line")
    return keys


def called(message: str, names: Mapping[str, str]) -> str:
    """A complaint about a configuration in the words of whoever wrote it elsewhere.

    names: how each `RemoteConfig.<field>` and `TlsConfig.<field>` is called there.
    """
    return re.sub(_NAME, lambda found: names.get(found[0], found[0]), message)


def parsed_header(line: str, given_by: str) -> tuple[str, str]:
    """Name and value of `Name: value`; ValueError, which does not show the value."""
    name, colon, value = line.partition(":")
    if not colon:
        raise ValueError(f"{given_by}: a header is written `Name: value`, and one has no colon")
    return name.strip(), value.strip()


def _refuse_misspelt(environ: Mapping[str, str]) -> None:
    start = f"{REMOTE_VARIABLE}_"
    for name in environ:
        if name.startswith(start) and (end := name.removeprefix(start)) not in _FURTHER:
            import difflib  # most processes have no such name

            if meant := difflib.get_close_matches(end, _FURTHER, 1, _ALIKE):
                raise ValueError(f"{name} is not read; is {start}{meant[0]} meant? unset it if not")


def _text(value: str | None, name: str) -> str | None:
    if value == "":
        raise ValueError(f"{name} is empty; give it a value or unset it")
    return value


def _path(value: str | None, name: str) -> Path | None:
    text = _text(value, name)
    if is_content(text):
        raise ValueError(f"{name} wants the name of a file, and was given what is in one")
    return None if text is None else Path(text)


def _readonly(environ: Mapping[str, str]) -> bool:
    text = environ.get(REMOTE_READONLY_VARIABLE, "0")
    value = _SWITCH.get(text)
    if value is None:
        raise ValueError(
            f"{REMOTE_READONLY_VARIABLE}={text!r} must be exactly 0 or 1; correct it or unset it"
        )
    return value


def _headers(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    text = _text(environ.get(REMOTE_HEADERS_VARIABLE), REMOTE_HEADERS_VARIABLE) or ""
    lines = (line.strip() for line in text.split("\n"))
    return tuple(parsed_header(line, REMOTE_HEADERS_VARIABLE) for line in lines if line)


def _tls(environ: Mapping[str, str]) -> TlsConfig | None:
    tls = TlsConfig(
        ca=_path(environ.get(REMOTE_TLS_CA_VARIABLE), REMOTE_TLS_CA_VARIABLE),
        certificate=_path(
            environ.get(REMOTE_TLS_CERTIFICATE_VARIABLE), REMOTE_TLS_CERTIFICATE_VARIABLE
        ),
        key=_path(environ.get(REMOTE_TLS_KEY_VARIABLE), REMOTE_TLS_KEY_VARIABLE),
    )
    return None if tls == TlsConfig() else tls


def _timeout(environ: Mapping[str, str]) -> float:
    text = _text(environ.get(REMOTE_TIMEOUT_VARIABLE), REMOTE_TIMEOUT_VARIABLE)
    try:
        return 60.0 if text is None else float(text)
    except ValueError:
        raise ValueError(
            f"{REMOTE_TIMEOUT_VARIABLE}={text!r} is no number of seconds; correct it or unset it"
        ) from None
