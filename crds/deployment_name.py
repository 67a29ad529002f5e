"""Deterministic name of the Deployment of a commit: every creator gets the same object.

Called by the controller, for revisions it observes, and by the API, for commits in requests.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from crds import names


def git_name(project_uid: str, spec: Mapping[str, Any], attempt: int) -> str:
    """Return `dep-` and 20 characters, a hash of the project and the build inputs in `spec`."""
    git = spec["source"]["git"]
    parts = [
        project_uid,
        git["url"],
        git.get("path") or "",
        spec.get("crew") or "",
        spec.get("preview"),
        git["commit"],
        attempt,
    ]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).digest()
    return names.DEPLOYMENT_PREFIX + base64.b32encode(digest).decode().lower()[:20]
