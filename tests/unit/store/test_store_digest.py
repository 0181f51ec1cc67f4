from __future__ import annotations

import hashlib

import pytest
from pypto_store import Digest


def test_digest_of_bytes_is_their_sha256():
    assert Digest.of(b"abc").hex == hashlib.sha256(b"abc").hexdigest()
    assert Digest.from_raw(Digest.of(b"abc").raw) == Digest.of(b"abc")
    assert str(Digest.of(b"abc")) == Digest.of(b"abc").hex


@pytest.mark.parametrize(
    "text", ["", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 64 + "\n", b"a" * 64, None]
)
def test_other_spellings_are_refused(text):
    with pytest.raises(ValueError, match="not a SHA-256"):
        Digest(text)


def test_digest_cannot_be_changed():
    with pytest.raises(AttributeError):
        Digest.of(b"").hex = "0" * 64
