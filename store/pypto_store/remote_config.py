"""What a user may say about a remote, as values. Imported only where there is one.

Nothing here reads the environment or the file system: files are named, and opened by whoever uses
them.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, unquote_to_bytes, urlsplit, urlunsplit

from pypto_store.config import check_boolean, checked_path, is_path
from pypto_store.remote.public_key import parse_key

_REMOTE_SCHEMES = ("file", "http", "https", "grpc", "grpcs")
_ENCRYPTED_SCHEMES = ("https", "grpcs")
_UPLOADS = ("background", "sync", "off")
_TIMEOUT_LIMIT = 86_400  # seconds
# Compiled at their first use: most remotes need none of them, and a hit has no time for it.
_LOOPBACK = r"localhost|::1|127(?:\.[0-9]{1,3}){3}"
_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_VALUE = r"(?:[!-~](?:[ -~]*[!-~])?)?"
# They belong to the connection or to the framing of a message.
_OWN_HEADERS = frozenset(
    (
        "host connection content-length transfer-encoding accept-encoding expect te trailer upgrade"
    ).split()
)


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """What an encrypted connection is checked with; every file is PEM.

    ca: authorities that the server's certificate must come from, in place of the system's.
    certificate, key: what this client shows of itself; the key may be in the certificate's file.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        for name in ("ca", "certificate", "key"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _named_file(f"TlsConfig.{name}", value))
        if self.key is not None and self.certificate is None:
            raise ValueError("TlsConfig.key is of no use without TlsConfig.certificate; give both")


@dataclass(frozen=True, slots=True)
class RemoteConfig:
    """Another place that has artifacts, and how to speak to it.

    url: file:// (an absolute directory, laid out as Bazel's disk cache), http(s):// (Bazel's HTTP
        cache protocol; a path may precede /ac and /cas) or grpc(s):// (REAPI v2). A name and a
        password before the host are for the encrypted schemes only.
    readonly: never store anything there.
    instance: the name of the part of a server that is meant, grpc(s):// only.
    headers: further (name, value) pairs that go with every request; not for file://.
    tls: what encrypted connections are checked with; None is what the system trusts.
    timeout: seconds that one request may take before the remote counts as down; requests that carry
        large blobs get more, by their size.
    upload: when local publications are offered to the remote: "background", "sync" (before the
        request that made them returns) or "off".
    credential_helper: a program that says which headers requests need, by the protocol of Bazel's
        credential helpers; for the encrypted schemes, and for this very host.
    trusted_keys: if there are any, an entry is used only with a signature by one of them. Each is
        "ed25519:" and the base64 of the 32 bytes of a public key.
    signing_key: a PEM file (PKCS #8) with the private Ed25519 key that signs what is stored. Who
        signs and names no trusted keys trusts this one alone.

    repr() and `shown_url` show neither passwords nor the values of headers.
    """

    url: str
    readonly: bool = False
    instance: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    tls: TlsConfig | None = None
    timeout: float = 60.0
    upload: Literal["background", "sync", "off"] = "background"
    credential_helper: Path | None = None
    trusted_keys: tuple[str, ...] = ()
    signing_key: Path | None = None

    def __post_init__(self) -> None:
        if type(self.url) is not str:
            raise TypeError(f"RemoteConfig.url must be a str, not a {type(self.url).__name__}")
        scheme, _, _ = self.url.partition("://")
        if fault := _url_fault(self.url, scheme):
            # What is wrong with an address may be where its password stands: it is not shown.
            raise ValueError(f"RemoteConfig.url {fault}")
        check_boolean("RemoteConfig.readonly", self.readonly)
        if type(self.instance) is not str:
            raise TypeError(f"RemoteConfig.instance must be a str, not {self.instance!r}")
        if self.instance and scheme not in ("grpc", "grpcs"):
            raise ValueError(f"RemoteConfig.instance is for grpc:// and grpcs://, not {scheme}://")
        object.__setattr__(self, "headers", _headers(self.headers))
        if self.headers and scheme == "file":
            raise ValueError("RemoteConfig.headers: a file:// remote is sent none; leave them out")
        if self.tls is not None and type(self.tls) is not TlsConfig:
            told = type(self.tls).__name__
            raise TypeError(f"RemoteConfig.tls must be a TlsConfig or None, not a {told}")
        if self.tls is not None and scheme not in _ENCRYPTED_SCHEMES:
            raise ValueError(f"RemoteConfig.tls is for https:// and grpcs://, not {scheme}://")
        if type(self.timeout) not in (int, float):
            raise TypeError(f"RemoteConfig.timeout must be seconds, not {self.timeout!r}")
        if not 0 < self.timeout <= _TIMEOUT_LIMIT:
            raise ValueError(
                f"RemoteConfig.timeout must be more than 0 and at most {_TIMEOUT_LIMIT} seconds, "
                f"not {self.timeout!r}"
            )
        if self.upload not in _UPLOADS:
            raise ValueError(
                f"RemoteConfig.upload must be one of {', '.join(_UPLOADS)}, not {self.upload!r}"
            )
        if self.basic_authorization is not None and "authorization" in {
            name.lower() for name, _ in self.headers
        }:
            raise ValueError(
                "RemoteConfig.headers has an Authorization and RemoteConfig.url a name; keep one"
            )
        for name in ("credential_helper", "signing_key"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _named_file(f"RemoteConfig.{name}", value))
        if self.credential_helper is not None and (fault := _helper_fault(self.url, scheme)):
            raise ValueError(f"RemoteConfig.credential_helper: {fault}")
        object.__setattr__(self, "trusted_keys", _trusted_keys(self.trusted_keys))

    @property
    def scheme(self) -> str:
        """What stands before :// in the URL."""
        return urlsplit(self.url).scheme

    @property
    def directory(self) -> str | None:
        """The directory that file:// names; None for other schemes."""
        return _directory(urlsplit(self.url).path) if self.scheme == "file" else None

    @property
    def shown_url(self) -> str:
        """The URL without name and password, for messages."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    @property
    def basic_authorization(self) -> str | None:
        """The value of the Authorization header for the name in the URL; None without one."""
        parts = urlsplit(self.url)
        if parts.username is None:
            return None
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return f"Basic {b64encode(pair.encode()).decode('ascii')}"

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.headers)
        return (
            f"RemoteConfig(url={self.shown_url!r}, readonly={self.readonly}, "
            f"instance={self.instance!r}, headers=({names}), tls={self.tls!r}, "
            f"timeout={self.timeout!r}, upload={self.upload!r}, "
            f"credential_helper={self.credential_helper!r}, trusted_keys={self.trusted_keys!r}, "
            f"signing_key={self.signing_key!r})"
        )


def _url_fault(url: str, scheme: str) -> str | None:
    """What makes a URL unusable, without the URL; None if it is usable."""
    if scheme not in _REMOTE_SCHEMES or not url.startswith(f"{scheme}://"):
        schemes = ", ".join(f"{scheme}://" for scheme in _REMOTE_SCHEMES)
        return f"must start with one of {schemes}"
    if not all(0x21 <= ord(character) <= 0x7E for character in url):
        return "must be ASCII without blanks; write other characters as %XX"
    if "?" in url or "#" in url:
        return "can have neither ? nor #; write them as %3F and %23"
    if scheme != "file" and "@" in url.partition("://")[2].partition("/")[2]:
        # Most likely it ends a password with a / in it, which would count as a host and a path.
        return "has an @ after the first /; write %40 for it, and %2F for a / in a password"
    try:
        parts = urlsplit(url)
        host, port, user = parts.hostname, parts.port, parts.username
    except ValueError:  # which shows what stands there
        return (
            "has no usable address: a port is a number up to 65535, an IPv6 address stands in [], "
            "and other signs of a password are written as %XX"
        )
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            return "of file:// must have three slashes and an absolute directory: file:///var/cache"
        if not parts.path.startswith("/") or not is_path(_directory(parts.path)):
            return "of file:// must name an absolute directory: file:///var/cache"
        return None
    if not host:
        return "names no host"
    if port == 0:
        return "has port 0, which nobody can listen on"
    if scheme in ("grpc", "grpcs") and parts.path not in ("", "/"):
        return "of grpc:// has no path; RemoteConfig.instance names the part of a server"
    if user is not None and scheme not in _ENCRYPTED_SCHEMES:
        return (
            "has a name before the host, which would be sent unencrypted; use https:// or grpcs://"
        )
    if user is not None and ":" in unquote(user):
        return "has a colon in the name before the host, which Basic authentication cannot say"
    return None


def _directory(path: str) -> str:
    """What the path of a file:// URL is called here: its %XX are bytes, as the system's names."""
    return os.fsdecode(unquote_to_bytes(path))


def _named_file(name: str, value: object) -> Path:
    """What the field `name` was given, as the path of a file; never shown if it is its content."""
    if isinstance(value, (str, os.PathLike)) and is_content(os.fspath(value)):
        raise ValueError(f"{name} wants the name of a file, and was given what is in one")
    return checked_path(name, value)


def is_content(text: object) -> bool:
    """Whether what is to name a file is rather what is in one, which may be a private key."""
    return isinstance(text, str) and ("\n" in text or "PRIVATE KEY" in text)


def _headers(value: object) -> tuple[tuple[str, str], ...]:
    """Checked headers; a value is never part of a message."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError("RemoteConfig.headers must be a tuple of (name, value) pairs")
    pairs: list[tuple[str, str]] = []
    for item in value:
        if not isinstance(item, tuple) or [type(part) for part in item] != [str, str]:
            raise TypeError("RemoteConfig.headers must be (name, value) pairs of str")
        name, text = item
        if re.fullmatch(_HEADER_NAME, name) is None:
            # It may be a value, put in the wrong place.
            raise ValueError(
                f"RemoteConfig.headers: number {len(pairs) + 1} has a name that no header can have"
            )
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"RemoteConfig.headers: {name} is set by the client; leave it out")
        if re.fullmatch(_HEADER_VALUE, text) is None:
            raise ValueError(
                f"RemoteConfig.headers: the value of {name} must be printable ASCII without blanks "
                "around it"
            )
        pairs.append((name, text))
    return tuple(pairs)


def _helper_fault(url: str, scheme: str) -> str | None:
    """What makes a credential helper of no use, or a danger; None if nothing does."""
    if scheme == "file":
        return "a file:// remote asks for no credentials; leave it out"
    host = urlsplit(url).hostname or ""
    if scheme in _ENCRYPTED_SCHEMES or re.fullmatch(_LOOPBACK, host) is not None:
        return None
    return (
        "what it says would be sent unencrypted; use https:// or grpcs:// for any other host than "
        "this one"
    )


def _trusted_keys(value: object) -> tuple[str, ...]:
    """Checked public keys. Given in place of one, a private key is not shown."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError("RemoteConfig.trusted_keys must be a tuple of str; write (key,) for one")
    keys: list[str] = []
    for item in value:
        if type(item) is not str:
            raise TypeError("RemoteConfig.trusted_keys must be a tuple of str")
        try:
            parse_key(item)
        except ValueError as error:
            raise ValueError(f"RemoteConfig.trusted_keys: number {len(keys) + 1} {error}") from None
        keys.append(item)
    return tuple(keys)
