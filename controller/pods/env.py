"""Environment variables of containers. Pure. Called by the pod builders."""

import json
from collections.abc import Mapping
from typing import Any


def json_env(request: Mapping[str, Any]) -> str:
    """Return `request` as JSON without a `$`: Kubernetes expands `$(NAME)` in variables.

    A source URL with $(CREWYARD_TOKEN) in it would send the build's token to that host.
    """
    return json.dumps(request, separators=(",", ":"), sort_keys=True).replace("$", "\\u0024")


def from_secret(variable: str, secret: str, key: str) -> dict[str, Any]:
    """Return a variable from a key of a Secret; unset if Secret or key is missing."""
    return {
        "name": variable,
        "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": True}},
    }
