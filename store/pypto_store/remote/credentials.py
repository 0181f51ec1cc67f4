"""The headers that go with every request to a remote: configured ones, or what a program says.

An engine asks for them before each request, and again, once, when the server did not accept what
it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from pypto_store.remote_config import RemoteConfig

Headers: TypeAlias = "tuple[tuple[str, str], ...]"


class Credentials(Protocol):
    """Headers as of now. Used by any number of threads."""

    def headers(self) -> Headers:
        """What a request needs; a RemoteFault when that cannot be found out."""
        ...

    def renew(self, refused: Headers) -> bool:
        """`refused` was not accepted (401, UNAUTHENTICATED): whether to ask for others."""
        ...


class FixedCredentials:
    """What a configuration says, its name and password included."""

    def __init__(self, config: RemoteConfig) -> None:
        self._headers = config.headers
        if config.basic_authorization is not None:
            self._headers += (("Authorization", config.basic_authorization),)

    def headers(self) -> Headers:
        """Always the same."""
        return self._headers

    def renew(self, refused: Headers) -> bool:
        """There are no others."""
        return False


def credentials_of(config: RemoteConfig) -> Credentials:
    """The credentials of a remote. No program is run before they are asked for headers."""
    if config.credential_helper is None:
        return FixedCredentials(config)
    from pypto_store.remote.credential_helper import HelperCredentials

    return HelperCredentials(config)
