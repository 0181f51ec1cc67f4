"""What grpcs:// connections are checked with, as grpcio takes it: the content of PEM files.

The files are tried with the standard library first: what they are is only found out by gRPC when a
connection is made, and then not named, or its process is ended.
"""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto_store.remote_config import TlsConfig


def channel_credentials(grpc: Any, tls: TlsConfig | None) -> Any:
    """The credentials of a channel; ValueError for files that cannot be used."""
    if tls is None:
        return grpc.ssl_channel_credentials(root_certificates=_trusted_by_the_system())
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.certificate is not None:
            context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
        authorities = _trusted_by_the_system() if tls.ca is None else _content(tls.ca)
        certificate = None if tls.certificate is None else _content(tls.certificate)
        key = certificate if tls.key is None else _content(tls.key)
    except (OSError, ValueError) as error:
        raise ValueError(f"RemoteConfig.tls cannot be used: {error} ({tls})") from error
    return grpc.ssl_channel_credentials(authorities, key, certificate)


def _trusted_by_the_system() -> bytes | None:
    """Its authorities; None, for which grpcio brings a list, where they are in no one file."""
    places = ssl.get_default_verify_paths()
    for path in (places.cafile, places.capath and f"{places.capath}/ca-certificates.crt"):
        if path and os.path.isfile(path):
            return _content(path)
    return None


def _content(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


def _no_password() -> str:
    raise ValueError("the key is encrypted; give one that is not")
