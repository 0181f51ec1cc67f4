"""The identity policies by name.

Each makes identities of its own kind: the policy's name is part of the digest, so no two of them
ever share an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pypto_toolchains.identity import POLICY_NAMES, IdentityPolicy


def _build() -> IdentityPolicy:
    from pypto_toolchains.build_policy import BuildPolicy

    return BuildPolicy()


def _content() -> IdentityPolicy:
    from pypto_toolchains.content_policy import ContentPolicy

    return ContentPolicy()


def _hermetic() -> IdentityPolicy:
    from pypto_toolchains.hermetic_policy import HermeticPolicy

    return HermeticPolicy()


# Imported when asked for: a hit needs one of them at most, and a recalled identity none.
POLICIES: Mapping[str, Callable[[], IdentityPolicy]] = MappingProxyType(
    dict(zip(POLICY_NAMES, (_build, _content, _hermetic), strict=True))
)
