"""The name of the Deployment of a commit: whoever makes it, and however often, it is the same object.

Called by the controller, which makes it for a head, and by the facade, which is given a commit.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from crds import names


def git_name(project_uid: str, spec: Mapping[str, Any], attempt: int) -> str:
    """`dep-` and 20 characters, from the project and what `spec` (of a Deployment) says to build."""
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
