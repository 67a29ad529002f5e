"""Envelopes count only with the signature of an accepted key, and untrusted bytes never raise."""

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from controller.attestation.signing import SigningKeys, parse_private_key, parse_public_keys, signing_keys

STATEMENT = {"_type": "https://in-toto.io/Statement/v1", "predicate": {"a": "é"}}


def private_pem(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def public_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.fixture(scope="module")
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture(scope="module")
def keys(key: ec.EllipticCurvePrivateKey) -> SigningKeys:
    return signing_keys(parse_private_key(private_pem(key)), ())


def test_signature_of_the_key_counts(keys: SigningKeys) -> None:
    assert keys.verified(json.dumps(keys.sign(STATEMENT)).encode()) == STATEMENT


def test_signature_of_another_key_does_not_count(keys: SigningKeys) -> None:
    other = signing_keys(parse_private_key(private_pem(ec.generate_private_key(ec.SECP256R1()))), ())
    envelope = other.sign(STATEMENT)
    assert keys.verified(json.dumps(envelope).encode()) is None
    # Nor with the id of the right key.
    envelope["signatures"][0]["keyid"] = keys.accepted[0].keyid
    assert keys.verified(json.dumps(envelope).encode()) is None


@pytest.mark.parametrize(
    "change",
    [
        {"payload": base64.b64encode(b'{"predicate": {}}').decode()},
        {"payloadType": "application/json"},
        {"signatures": []},
        {"signatures": [{"keyid": "x"}]},
        {"signatures": [{"keyid": 7, "sig": "!"}]},
        {"payload": 5},
    ],
)
def test_changed_envelope_does_not_count(keys: SigningKeys, change: dict[str, object]) -> None:
    assert keys.verified(json.dumps({**keys.sign(STATEMENT), **change}).encode()) is None


@pytest.mark.parametrize("junk", [b"", b"[]", b"null", b"\xff", b"{}", b"[" * 100_000])
def test_junk_does_not_count(keys: SigningKeys, junk: bytes) -> None:
    assert keys.verified(junk) is None


def test_private_key_is_not_shown(keys: SigningKeys) -> None:
    assert "signer=" not in repr(keys)


def test_only_plain_keys_of_the_curve_are_accepted(key: ec.EllipticCurvePrivateKey) -> None:
    wrong = (
        "nonsense",
        public_pem(key),
        private_pem(ec.generate_private_key(ec.SECP384R1())),
        private_pem(ed25519.Ed25519PrivateKey.generate()),
    )
    for text in wrong:
        with pytest.raises(ValueError, match=r"see docs/provenance\.md"):
            parse_private_key(text)


def test_several_public_keys(key: ec.EllipticCurvePrivateKey) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    assert len(parse_public_keys(public_pem(key) + "\n" + public_pem(other))) == 2
    large = public_pem(ec.generate_private_key(ec.SECP384R1()))
    for text in (private_pem(key), public_pem(key) + "more", large):
        with pytest.raises(ValueError, match=r"has a|is not"):
            parse_public_keys(text)
