"""The Idempotency-Key header: repeated requests with the same key create one object.

Pure. Called by the routes that create runs and deployments.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from api import errors
from api.http.query import Parameter
from api.store.index.idempotency import Idempotency

HEADER = "Idempotency-Key"
_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
PARAMETER = Parameter(
    HEADER,
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[\\x21-\\x7e]+$"},
    description="A repeated key returns the same object, as it is now, for 24 hours, or 409 "
    "if the body differs.",
)


def parse_header(header: str | None, owner: str, path: str, body: Mapping[str, Any]) -> Idempotency | None:
    """Return the idempotency key of a request, or None without the header. Raises 400 for an invalid key.

    A key is scoped to one API key and one operation. The order of the body's fields does not matter.
    """
    if header is None:
        return None
    if not _KEY.fullmatch(header):
        raise errors.invalid(f"{HEADER} must be 1 to 255 visible ASCII characters without spaces", HEADER)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return Idempotency(owner, f"{path} {header}", hashlib.sha256(text.encode()).hexdigest())
