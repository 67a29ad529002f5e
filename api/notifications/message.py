"""Body and signature of a message, as Standard Webhooks specifies them. Pure."""

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from standardwebhooks import Webhook

from api.http.json_encoding import encode
from api.store.index.notifications.deliveries import DeliveryRow
from api.v1.timestamps import timestamp

SECRET_KEY = "secret"
SECRET_PREFIX = "whsec_"
MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64
HEADERS = {"Content-Type": "application/json", "User-Agent": "crewyard"}


class SigningSecretInvalid(Exception):
    """A Secret without a usable signing secret; the text says what it must hold."""


def signing_secret(secret: Mapping[str, Any] | None, name: str) -> str:
    """Return the signing secret of a Secret. Raises SigningSecretInvalid."""
    if secret is None:
        raise SigningSecretInvalid(f"the Secret {name} does not exist; create it")
    try:
        text = base64.b64decode((secret.get("data") or {}).get(SECRET_KEY) or "").decode().strip()
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        text, key = "", b""
    if not text.startswith(SECRET_PREFIX) or not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        raise SigningSecretInvalid(
            f"the key {SECRET_KEY} of the Secret {name} must be {SECRET_PREFIX} and {MIN_SECRET_BYTES} to "
            f"{MAX_SECRET_BYTES} bytes in base64, for example whsec_$(openssl rand -base64 32)"
        )
    return text


def body(row: DeliveryRow, data: Mapping[str, Any]) -> bytes:
    """Return the body; `data` is the object as GET shows it."""
    return encode({"type": row.type, "timestamp": timestamp(row.event_time), "data": data})


def headers(secret: str, row: DeliveryRow, content: bytes, now: datetime) -> dict[str, str]:
    """Return the headers of an attempt; the id is the same in each attempt."""
    return {
        **HEADERS,
        "webhook-id": row.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(row.id, now, content.decode()),
    }
