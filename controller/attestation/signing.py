"""Keys that sign attestations: DSSE envelopes around in-toto statements, as cosign reads them. Pure.

Called by `controller.config`, which parses the keys, and by the modules of this package.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import Error as SigningError
from securesystemslib.signer import CryptoSigner, SSlibKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_PUBLIC_KEY = re.compile(r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


@dataclass(frozen=True)
class SigningKeys:
    """The private key that signs, and the public keys of which one must have signed."""

    signer: CryptoSigner = field(repr=False)
    accepted: tuple[SSlibKey, ...]

    def sign(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        """Return the signed envelope of a statement."""
        payload = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
        envelope = Envelope(payload, PAYLOAD_TYPE, {})
        envelope.sign(self.signer)
        return dict(envelope.to_dict())

    def verified(self, envelope: bytes) -> dict[str, Any] | None:
        """Return the statement of an untrusted envelope; None if no accepted key signed it."""
        try:
            signed = Envelope.from_dict(json.loads(envelope))
            signed.verify(list(self.accepted), 1)
            statement = json.loads(signed.payload)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, SigningError):
            return None
        return statement if signed.payload_type == PAYLOAD_TYPE and isinstance(statement, dict) else None


def signing_keys(signer: CryptoSigner, previous: tuple[SSlibKey, ...]) -> SigningKeys:
    """Return the keys of an installation that signs with `signer` and also accepts the `previous` keys."""
    return SigningKeys(signer, (signer.public_key, *previous))


def parse_private_key(text: str) -> CryptoSigner:
    """Parse CREWYARD_SIGNING_KEY. Raises ValueError without the key."""
    try:
        key = load_pem_private_key(text.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("is not an unencrypted private key in PEM; see docs/provenance.md") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("is not a key of the curve P-256; see docs/provenance.md")
    return CryptoSigner(key)


def parse_public_keys(text: str) -> tuple[SSlibKey, ...]:
    """Parse CREWYARD_VERIFICATION_KEYS, one or more public keys in PEM. Raises ValueError."""
    blocks = _PUBLIC_KEY.findall(text)
    if not blocks or _PUBLIC_KEY.sub("", text).strip():
        raise ValueError("is not a list of public keys in PEM (-----BEGIN PUBLIC KEY-----)")
    keys = []
    for block in blocks:
        try:
            key = load_pem_public_key(block.encode())
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError("has a block that is not a public key in PEM") from None
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("has a key that is not of the curve P-256")
        keys.append(SSlibKey.from_crypto(key))
    return tuple(keys)
