"""Under which name an entry of a key and a state stands at a remote.

Remotes index entries by the digest of an REAPI Action, so the name is one: an action without
inputs whose command says what the artifact answers. Nobody runs it.

    Command = pypto-artifact v1 application=<hex> environment=<hex> format=<hex> source=<hex>
              specialization=<hex> state=<generated|ready> [cpu_level=<level>]
    Action  = the command, over an empty input root

The CPU level is in it because machines of several levels share one remote, and each would replace
the others' READY. The rest of a specification is not: it follows from the key, and the manifest
says it again.

Version history: v1, the first. Other arguments take the next number, and old entries are misses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_store.remote.blob_store import BlobDigest
from pypto_store.remote.messages import Action, Command

if TYPE_CHECKING:
    from pypto_store.keys import ArtifactKey, ArtifactSpec

_EMPTY_DIRECTORY = BlobDigest.of(b"")  # a Directory message without anything in it


@dataclass(frozen=True, slots=True)
class EntryName:
    """The name of one entry: the two messages that make it, and the digest that is it."""

    action: bytes
    command: bytes
    digest: BlobDigest


def entry_name(key: ArtifactKey, spec: ArtifactSpec) -> EntryName:
    """The name of the entry of `key` in the state, and for the CPU level, of `spec`."""
    components = (f"{name}={value.hex}" for name, value in key.components())
    level = () if spec.cpu_level is None else (f"cpu_level={spec.cpu_level}",)
    words = ("pypto-artifact", "v1", *components, f"state={spec.state.value}", *level)
    command = Command(words).encode()
    action = Action(BlobDigest.of(command), _EMPTY_DIRECTORY).encode()
    return EntryName(action, command, BlobDigest.of(action))
