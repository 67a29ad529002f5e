"""What a container of ours is told, as the value of one variable. Pure; called by the builders of pods."""

import json
from collections.abc import Mapping
from typing import Any


def told(request: Mapping[str, Any]) -> str:
    """`request` as JSON without a `$`: Kubernetes puts earlier variables in for `$(NAME)`.

    A source's address with $(CREWYARD_TOKEN) in it would carry the build's token to whoever is there.
    """
    return json.dumps(request, separators=(",", ":"), sort_keys=True).replace("$", "\\u0024")
