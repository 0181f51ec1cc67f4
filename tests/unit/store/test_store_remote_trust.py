"""Whose entries are used: whoever has a private key that belongs to one that is named."""

from __future__ import annotations

import os
import subprocess
import sys
from base64 import b64encode

import pytest
from pypto_store import RemoteConfig
from pypto_store.remote.ed25519 import PrivateKey, verifies
from pypto_store.remote.public_key import key_text
from pypto_store.remote.signatures import Signature, encode, parse, signed_bytes
from pypto_store.remote.trust import (
    ANYONE,
    KeySigner,
    SigningKeyError,
    TrustedKeys,
    read_signing_key,
    signer_of,
    trust_of,
)

MANIFEST = b'{"components":{},"files":[]}\n'


def private_key(number):
    """A key that is the same in every run: a PKCS #8 file is 16 fixed bytes and the secret."""
    secret = bytes.fromhex("302e020100300506032b657004220420") + bytes([number]) * 32
    body = b64encode(secret).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n".encode()


def signer(number):
    return KeySigner(PrivateKey.of_pem(private_key(number)))


def public(number):
    return key_text(PrivateKey.of_pem(private_key(number)).public)


def key_file(tmp_path, data, mode=0o600):
    path = tmp_path / "key.pem"
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_ed25519_is_that_of_rfc_8032():
    """The first vector of its section 7.1."""
    key = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    made = bytes.fromhex(
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701c"
        "f9b46bd25bf5f0595bbe24655141438e7a100b"
    )
    assert verifies(key, made, b"")
    assert not verifies(key, made, b"\0")
    # The same with the group's order added to the second half: another spelling is none.
    order = 2**252 + 27742317777372353535851937790883648493
    again = int.from_bytes(made[32:], "little") + order
    assert not verifies(key, made[:32] + again.to_bytes(32, "little"), b"")


def test_known_signatures_stay_good():
    """Computed once: who changes these breaks every signature there is."""
    assert public(1) == "ed25519:iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w="
    document = (
        b'{"schema_version":1,"signatures":[{"algorithm":"ed25519",'
        b'"key":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=",'
        b'"signature":"pTHuumlMLxI3wQ4PpH8kXnd1IeMtmBy2Oliz2PhtlCf85gyfFmPe3w4W8np+zE2PihRIxrq+pLYn/EGS7t88AQ=="}]}\n'
    )
    assert signer(1).sign(MANIFEST) == document
    assert TrustedKeys([public(1)]).fault(MANIFEST, document) is None


def test_nobody_is_asked_for_without_trusted_keys():
    trust = trust_of(RemoteConfig("file:///x"))
    assert trust is ANYONE
    for signatures in (None, b"", b"garbage", signer(1).sign(MANIFEST)):
        assert trust.fault(MANIFEST, signatures) is None


def test_a_signature_by_a_trusted_key_is_accepted():
    trust = trust_of(RemoteConfig("file:///x", trusted_keys=(public(1),)))
    assert trust.fault(MANIFEST, signer(1).sign(MANIFEST)) is None
    # The document may say the same again, as the file does not change in between.
    assert trust.fault(MANIFEST, signer(1).sign(MANIFEST)) is None


def test_who_signs_believes_itself_alone_unless_others_are_named(tmp_path):
    """Or its key would stand for what it compiled from sources that anybody put there."""
    path = key_file(tmp_path, private_key(1))
    alone = trust_of(RemoteConfig("file:///x", signing_key=path))
    assert alone.fault(MANIFEST, signer(1).sign(MANIFEST)) is None
    assert alone.fault(MANIFEST, signer(2).sign(MANIFEST)) is not None
    assert alone.fault(MANIFEST, None) is not None
    named = trust_of(RemoteConfig("file:///x", signing_key=path, trusted_keys=(public(2),)))
    assert named.fault(MANIFEST, signer(1).sign(MANIFEST)) is not None
    assert named.fault(MANIFEST, signer(2).sign(MANIFEST)) is None
    path.unlink()
    with pytest.raises(SigningKeyError):
        trust_of(RemoteConfig("file:///x", signing_key=path))


def test_every_other_entry_is_not_and_the_reason_says_why():
    trust = TrustedKeys([public(1)])
    good = signer(1).sign(MANIFEST)
    (made,) = parse(good)
    bare = PrivateKey.of_pem(private_key(1))
    cases = {
        "it is not signed": (MANIFEST, None),
        "document of signatures is not JSON": (MANIFEST, b""),
        "document of signatures is not in canonical form": (MANIFEST, good[:-1]),
        f"signed by {public(2)}": (MANIFEST, signer(2).sign(MANIFEST)),
        f"by {public(1)} is not one of this manifest": (MANIFEST + b" ", good),
    }
    for reason, (manifest, signatures) in cases.items():
        assert reason in (trust.fault(manifest, signatures) or "")
    wrong = (
        Signature(made.key, made.signature[:-1] + b"\0"),
        Signature(made.key, bytes(64)),
        Signature(made.key, signer_signature(2, MANIFEST)),
        Signature(made.key, bare.sign(MANIFEST)),  # of the manifest as of any other text
        Signature(made.key, bare.sign(b"pypto artifact manifest v2\0" + MANIFEST)),
        Signature(made.key, bare.sign(signed_bytes(MANIFEST)[1:])),
    )
    for each in wrong:
        assert "is not one of this manifest" in (trust.fault(MANIFEST, encode([each])) or "")


def signer_signature(number, manifest):
    return parse(signer(number).sign(manifest))[0].signature


def test_every_bit_of_manifest_and_signature_counts():
    trust = TrustedKeys([public(1)])
    (made,) = parse(signer(1).sign(MANIFEST))
    for place in range(len(MANIFEST)):
        changed = bytearray(MANIFEST)
        changed[place] ^= 1
        assert trust.fault(bytes(changed), encode([made])) is not None
    for bit in range(512):
        turned = bytearray(made.signature)
        turned[bit // 8] ^= 1 << bit % 8
        assert trust.fault(MANIFEST, encode([Signature(made.key, bytes(turned))])) is not None


def test_one_of_several_signatures_is_enough_while_keys_change():
    both = encode([*parse(signer(1).sign(MANIFEST)), *parse(signer(2).sign(MANIFEST))])
    for trusted in ([1], [2], [1, 2], [2, 3]):
        assert TrustedKeys(map(public, trusted)).fault(MANIFEST, both) is None
    assert public(1) in (TrustedKeys([public(3)]).fault(MANIFEST, both) or "")
    # One that is wrong spoils no other; one that is right but not trusted helps none.
    (first,), (second,) = (parse(signer(number).sign(MANIFEST)) for number in (1, 2))
    spoiled = encode([Signature(first.key, bytes(64)), second])
    assert TrustedKeys([public(1), public(2)]).fault(MANIFEST, spoiled) is None
    assert TrustedKeys([public(1)]).fault(MANIFEST, spoiled) is not None


def test_a_key_that_is_taken_away_counts_no_more():
    signed = signer(1).sign(MANIFEST)
    assert TrustedKeys([public(1), public(2)]).fault(MANIFEST, signed) is None
    assert "one of 2 keys" in (TrustedKeys([public(2), public(3)]).fault(MANIFEST, signed) or "")


def test_no_keys_and_no_key_are_mistakes_and_not_everybody():
    with pytest.raises(ValueError, match="no trusted keys"):
        TrustedKeys([])
    with pytest.raises(ValueError, match="no public key"):
        TrustedKeys([public(1), "ed25519:"])


def test_a_signer_accepts_its_own_and_no_other():
    assert signer(1).own.fault(MANIFEST, signer(1).sign(MANIFEST)) is None
    assert signer(1).own.fault(MANIFEST, signer(2).sign(MANIFEST)) is not None
    assert signer(1).own.fault(MANIFEST, None) is not None


def test_nothing_is_signed_without_a_key():
    assert signer_of(RemoteConfig("file:///x")) is None


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_the_file_of_a_key_signs(tmp_path, mode):
    path = key_file(tmp_path, private_key(1), mode)
    made = signer_of(RemoteConfig("file:///x", signing_key=path))
    assert made is not None and made.sign(MANIFEST) == signer(1).sign(MANIFEST)


def test_a_link_to_a_key_is_as_good_as_the_key(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(key_file(tmp_path, private_key(1)))
    assert key_text(read_signing_key(str(link)).public) == public(1)


def test_what_is_made_is_read_again(tmp_path):
    made = PrivateKey.made()
    assert read_signing_key(str(key_file(tmp_path, made.pem()))).public == made.public


def pem(label, body):
    return f"-----BEGIN {label}-----\n{b64encode(body).decode()}\n-----END {label}-----\n".encode()


def other_keys():
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, x25519

    secret = form.BestAvailableEncryption(b"secret")
    ours = form.load_pem_private_key(private_key(1), None)
    parts = (form.Encoding.PEM, form.PrivateFormat.PKCS8)
    yield (
        "another curve",
        ed448.Ed448PrivateKey.generate().private_bytes(*parts, form.NoEncryption()),
    )
    yield (
        "for exchange",
        x25519.X25519PrivateKey.generate().private_bytes(*parts, form.NoEncryption()),
    )
    yield (
        "of ECDSA",
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            form.Encoding.PEM, form.PrivateFormat.TraditionalOpenSSL, form.NoEncryption()
        ),
    )
    yield "encrypted", ours.private_bytes(*parts, secret)
    yield (
        "of ssh",
        ours.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()),
    )
    yield (
        "encrypted by hand",
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            form.Encoding.PEM, form.PrivateFormat.TraditionalOpenSSL, secret
        ),
    )
    yield (
        "public",
        ours.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo),
    )
    yield (
        "binary",
        ours.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption()),
    )


REASONS = {
    "another curve": "another algorithm",
    "for exchange": "another algorithm",
    "of ECDSA": "another algorithm",
    "encrypted": "it is encrypted",
    "encrypted by hand": "it is encrypted",
    "of ssh": "no private key in PKCS #8",
    "public": "it is a public key",
    "binary": "it is not PEM",
}


@pytest.mark.parametrize("name", REASONS)
def test_keys_that_cannot_sign_here_are_called_what_they_are(tmp_path, name):
    path = key_file(tmp_path, dict(other_keys())[name])
    with pytest.raises(SigningKeyError) as refused:
        signer_of(RemoteConfig("file:///x", signing_key=path))
    fault = refused.value
    assert fault.path == str(path) and str(path) in str(fault)
    assert REASONS[name] in fault.reason
    assert "python -m pypto_store keygen" in fault.remedy


DAMAGED = {
    "empty": (b"", "not PEM"),
    "text": (b"ed25519:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", "not PEM"),
    "cut off": (private_key(1)[:60], "PKCS #8"),
    "a short secret": (pem("PRIVATE KEY", bytes(20)), "PKCS #8"),
    "a certificate": (pem("CERTIFICATE", bytes(20)), "PKCS #8"),
    "huge": (private_key(1) + b"\n" * 70_000, "more than 65536 bytes"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused_and_not_shown(tmp_path, name):
    data, reason = DAMAGED[name]
    with pytest.raises(SigningKeyError, match=reason) as refused:
        read_signing_key(str(key_file(tmp_path, data)))
    for line in data.splitlines():
        assert len(line) < 8 or line.decode() not in str(refused.value)


def test_a_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(SigningKeyError, match=r"there is no such file.*keygen"):
        read_signing_key(str(tmp_path / "absent.pem"))
    with pytest.raises(SigningKeyError, match=r"cannot be read .Is a directory"):
        read_signing_key(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SigningKeyError, match="it is not a file"):  # and nobody waits for it
        read_signing_key(str(tmp_path / "pipe"))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(SigningKeyError, match="cannot be read"):
        read_signing_key(str(tmp_path / "loop"))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o644])
def test_a_key_that_others_may_use_is_refused_as_ssh_does(tmp_path, mode):
    path = key_file(tmp_path, private_key(1), mode)
    with pytest.raises(SigningKeyError, match=f"mode {mode:04o}.*chmod 600") as refused:
        read_signing_key(str(path))
    assert refused.value.remedy == f"chmod 600 {path}"


def test_a_key_of_another_user_is_as_open_as_that_user_wants(tmp_path, monkeypatch):
    path = key_file(tmp_path, private_key(1), 0o440)
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    assert key_text(read_signing_key(str(path)).public) == public(1)


CLOSED = """
import sys
sys.modules["cryptography"] = None
from pypto_store import RemoteConfig
from pypto_store.remote.trust import SigningKeyError, signer_of, trust_of
key, document, path = sys.argv[1], bytes.fromhex(sys.argv[2]), sys.argv[3]
config = RemoteConfig("file:///x", trusted_keys=(key,), signing_key=path)
print(trust_of(config).fault(bytes.fromhex(sys.argv[4]), document))
try:
    signer_of(config)
except SigningKeyError as error:
    print(error)
"""


def test_without_the_package_nothing_is_accepted_and_nothing_is_signed(tmp_path):
    path = key_file(tmp_path, private_key(1))
    words = [public(1), signer(1).sign(MANIFEST).hex(), str(path), MANIFEST.hex()]
    done = subprocess.run(
        [sys.executable, "-c", CLOSED, *words], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    reason, refused = done.stdout.splitlines()
    assert "cannot be verified" in reason and "pip install 'pypto[signing]'" in reason
    assert str(path) in refused and "pip install 'pypto[signing]'" in refused


def test_without_keys_the_package_is_not_loaded():
    code = (
        "import sys; from pypto_store import RemoteConfig;"
        "from pypto_store.remote.trust import signer_of, trust_of;"
        "config = RemoteConfig('file:///x'); signer_of(config);"
        "assert trust_of(config).fault(b'', None) is None; print('cryptography' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.stdout == "False\n"
