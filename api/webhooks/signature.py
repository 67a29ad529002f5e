"""Signature check of deliveries. Pure.

GitHub, Gitea and Forgejo sign the raw body (HMAC-SHA256); GitLab sends the secret itself. At least
one proof must be present and every proof must match: Gitea sends its signature in several headers.
Called by `api.webhooks.routes`.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_DIGEST = "([0-9a-f]{64})"
_SIGNATURES = {
    "X-Gitea-Signature": re.compile(_DIGEST, re.ASCII),
    "X-Forgejo-Signature": re.compile(_DIGEST, re.ASCII),
    "X-Hub-Signature-256": re.compile(f"sha256={_DIGEST}", re.ASCII),
}
_TOKEN_HEADER = "X-Gitlab-Token"
_MAX_TOKEN_LENGTH = 1024


@dataclass(frozen=True)
class DeliveryProof:
    """Proofs of a delivery: hexadecimal signatures and tokens."""

    digests: tuple[str, ...] = ()
    tokens: tuple[str, ...] = field(default=(), repr=False)

    @property
    def signed(self) -> bool:
        """Whether the body is signed."""
        return bool(self.digests)


def parse_proof(headers: Mapping[str, str]) -> DeliveryProof | None:
    """Return the proofs in the headers; None without any or with a malformed one."""
    signatures = [form.fullmatch(headers[name]) for name, form in _SIGNATURES.items() if name in headers]
    tokens = (headers[_TOKEN_HEADER],) if _TOKEN_HEADER in headers else ()
    digests = tuple(signature[1] for signature in signatures if signature)
    if len(digests) < len(signatures) or any(len(token) > _MAX_TOKEN_LENGTH for token in tokens):
        return None
    return DeliveryProof(digests, tokens) if digests or tokens else None


def verify(proof: DeliveryProof | None, secret: str, digest: str) -> bool:
    """Return whether all proofs match `secret`; `digest` is the HMAC of the body.

    Compares every proof, in constant time. An empty secret never matches.
    """
    if proof is None or not secret:
        return False
    matches = [hmac.compare_digest(signature, digest) for signature in proof.digests]
    matches += [
        hmac.compare_digest(token.encode(errors="surrogateescape"), secret.encode()) for token in proof.tokens
    ]
    return bool(matches) and all(matches)
