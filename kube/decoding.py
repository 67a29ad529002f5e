"""Decoding of the apiserver's JSON at any nesting depth. Pure. Called by `kube.client`."""

import json
import sys
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 40_000
"""Nesting levels that are decoded; 60,000 fit into a thread's stack."""


def decode(raw: bytes) -> Any:
    """Decode JSON of any nesting depth. Raises ValueError where `raw` is not JSON.

    The apiserver stores objects of 10,000 levels, and their managedFields double that; one such object must
    not prevent listing the others.
    """
    try:
        return json.loads(raw)
    except RecursionError:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, MAX_DEPTH))
        try:
            return json.loads(raw)
        finally:
            sys.setrecursionlimit(before)


def status_of_error(body: bytes) -> Mapping[str, Any]:
    """Return the Status object of an error response; where it is not JSON, its text as the message."""
    try:
        status = json.loads(body)
    except ValueError:
        return {"message": body[:500].decode(errors="replace")}
    return status if isinstance(status, dict) else {}
