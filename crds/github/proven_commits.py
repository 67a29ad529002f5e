"""Proof that an upload was made by a workflow that ran for its commit. Pure.

The API server writes it into a Deployment, from the token of the workflow, and the controller checks it
before it reports the commit to GitHub: users of kubectl cannot write one. Standard library only.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any


def proof(key: str, spec: Mapping[str, Any], repository: str, commit: str) -> str | None:
    """Return the proof for the spec of a Deployment; None without an upload.

    `key` is the one that API and controller share. The proof holds for one upload in one project, so it
    cannot be moved to other code. Names of repositories ignore case.
    """
    upload = ((spec.get("source") or {}).get("archive") or {}).get("upload")
    if not key or not upload:
        return None
    # A colon is in no token's body, so no signature counts as both.
    body = "commit:" + json.dumps([spec["project"], upload, repository.lower(), commit])
    return hmac.new(key.encode(), body.encode(), hashlib.sha256).hexdigest()


def is_proven(
    keys: tuple[str, ...], spec: Mapping[str, Any], repository: str, commit: str, given: str
) -> bool:
    """Return whether `given` is the proof by one of the keys."""
    expected = [proof(key, spec, repository, commit) for key in keys]
    return any(one is not None and hmac.compare_digest(one.encode(), given.encode()) for one in expected)
