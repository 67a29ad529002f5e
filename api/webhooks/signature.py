"""Whether a delivery was made by somebody who knows the webhook's secret. Pure.

GitHub, Gitea and Forgejo sign the raw body (HMAC-SHA256); GitLab sends the secret
itself. Whatever a delivery shows must fit, and it must show something: Gitea sends
its signature under several names. Called by `api.webhooks.routes`.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_HUB = "X-Hub-Signature-256"
_PLAIN = ("X-Gitea-Signature", "X-Forgejo-Signature")
_TOKEN = "X-Gitlab-Token"
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MOST_TOKEN = 1024


@dataclass(frozen=True)
class Proof:
    """What a delivery shows: signatures in hexadecimal, tokens."""

    digests: tuple[str, ...] = ()
    tokens: tuple[str, ...] = field(default=(), repr=False)

    @property
    def signed(self) -> bool:
        """Whether the body itself is covered."""
        return bool(self.digests)


def shown(headers: Mapping[str, str]) -> Proof | None:
    """What the headers show; None where that is nothing, or nothing that could fit."""
    digests = [headers[name] for name in _PLAIN if name in headers]
    if _HUB in headers:
        kind, _, digest = headers[_HUB].partition("=")
        digests.append(digest if kind == "sha256" else "")
    tokens = (headers[_TOKEN],) if _TOKEN in headers else ()
    well = all(_DIGEST.fullmatch(digest) for digest in digests)
    if not (digests or tokens) or not well or any(len(token) > _MOST_TOKEN for token in tokens):
        return None
    return Proof(tuple(digests), tokens)


def fits(proof: Proof | None, secret: str, digest: str) -> bool:
    """Whether the proof is that of `secret`; `digest` is the body's HMAC. An empty secret fits nothing.

    Everything is compared, in a time that does not tell where the difference is.
    """
    if proof is None or not secret:
        return False
    good = [hmac.compare_digest(given, digest) for given in proof.digests]
    good += [
        hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())
        for given in proof.tokens
    ]
    return bool(good) and all(good)
