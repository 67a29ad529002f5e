"""The Idempotency-Key header: one key, one object, however often a request is repeated.

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
    description="The same key within 24 hours gives the same answer again; with another body it is a 409.",
)


def use(header: str | None, owner: str, path: str, body: Mapping[str, Any]) -> Idempotency | None:
    """What the header asks for; None without one. Raises a 400 for a header that is no key.

    A key belongs to one API key and one operation. The order of a body's fields does not matter.
    """
    if header is None:
        return None
    if not _KEY.fullmatch(header):
        raise errors.invalid(f"{HEADER} must be 1 to 255 visible ASCII characters without spaces", HEADER)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return Idempotency(owner, f"{path} {header}", hashlib.sha256(text.encode()).hexdigest())
