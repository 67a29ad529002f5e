"""JSON as the apiserver sends it, read whatever users have put into it. Pure; called by `kube.client`."""

import json
import sys
from collections.abc import Mapping
from typing import Any

DEEPEST = 40_000
"""Levels of a JSON text that are read; 60,000 fit into a thread's stack."""


def decoded(raw: bytes) -> Any:
    """The JSON value, however deeply it is nested. Raises ValueError where it is none.

    The apiserver keeps objects of 10,000 levels, and what their managers own in as many again: one such
    object must not keep all others from being listed.
    """
    try:
        return json.loads(raw)
    except RecursionError:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, DEEPEST))
        try:
            return json.loads(raw)
        finally:
            sys.setrecursionlimit(before)


def refusal(body: bytes) -> Mapping[str, Any]:
    """The Status object of a refusal; one with its text as the message where it is none."""
    try:
        found = json.loads(body)
    except ValueError:
        return {"message": body[:500].decode(errors="replace")}
    return found if isinstance(found, dict) else {}
