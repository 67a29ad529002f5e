"""Hash chain of the audit log. Pure. `crewyard audit --verify` computes the same digest.

Each record has the hash of the one before it, so a changed, missing or moved record breaks the chain.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

FIRST_PREVIOUS = "0" * 64
"""The previous hash of record 1."""


def digest(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record as the API shows it, without its own hash: keys sorted, no spaces."""
    fields = {name: value for name, value in record.items() if name != "hash"}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
