"""`keygen`: a key that signs what is sent to a remote, and the public key that belongs to it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from pypto_store.remote.ed25519 import PrivateKey, SigningMissing
from pypto_store.remote.public_key import key_text
from pypto_store.remote.trust import SigningKeyError, read_signing_key
from pypto_store.tools.answer import Answer, CommandError, Surroundings
from pypto_store.tools.terminal import plain

if TYPE_CHECKING:
    from rich.console import Console

_PRIVATE_MODE = 0o600
_PUBLIC_MODE = 0o644  # and what the umask leaves of it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the key goes, or where it is."""
    parser.add_argument("private", metavar="PRIVATE", help="the file of the private key, a new one")
    parser.add_argument(
        "--public", metavar="FILE", help="also write the public key there, a file of trusted keys"
    )
    parser.add_argument(
        "--show", action="store_true", help="make nothing: say the public key of a PRIVATE there is"
    )


def run(options: argparse.Namespace, surroundings: Surroundings) -> Answer:
    """Make a key, or read one; nothing that is there is ever written over."""
    private = os.path.join(surroundings.cwd, options.private)
    public = options.public and os.path.join(surroundings.cwd, options.public)
    try:
        if options.show:
            text = key_text(read_signing_key(private).public)
            if public:
                _write_new(public, f"{text}\n".encode(), _PUBLIC_MODE)
        else:
            text = _make(private, public)
    except (SigningKeyError, SigningMissing) as error:
        raise CommandError(str(error)) from None
    document = {"private": private, "public": public or None, "key": text, "made": not options.show}
    return Answer(document, lambda console: _paint(console, document))


def _make(private: str, public: str | None) -> str:
    """A new key in `private`; its public key, which `public` gets too. Both files, or neither."""
    key = PrivateKey.made()
    text = key_text(key.public)
    _write_new(private, key.pem(), _PRIVATE_MODE)
    try:
        if public:
            _write_new(public, f"{text}\n".encode(), _PUBLIC_MODE)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(private)
        raise
    return text


def _write_new(path: str, data: bytes, mode: int) -> None:
    """Write a file that was not there, and see it on disk; OSError, and then there is none."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        raise CommandError(
            f"{path} is there already, and a key is never written over; name another file "
            "(--show says the public key of a private one)"
        ) from None
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(path)
        raise


def _paint(console: Console, document: Mapping[str, object]) -> None:
    # The key alone on its line, so that it can be copied whatever the width.
    console.print(plain(str(document["key"])), soft_wrap=True)
    if document["made"]:
        console.print(plain(f"its private key: {document['private']} (mode 0600)"), soft_wrap=True)
