"""What a container of ours is told, as variables. Pure; called by the builders of pods."""

import json
from collections.abc import Mapping
from typing import Any


def told(request: Mapping[str, Any]) -> str:
    """`request` as JSON without a `$`: Kubernetes puts earlier variables in for `$(NAME)`.

    A source's address with $(CREWYARD_TOKEN) in it would carry the build's token to whoever is there.
    """
    return json.dumps(request, separators=(",", ":"), sort_keys=True).replace("$", "\\u0024")


def from_secret(variable: str, secret: str, key: str) -> dict[str, Any]:
    """A variable with an entry of a Secret; left out where either is not there."""
    return {
        "name": variable,
        "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": True}},
    }
