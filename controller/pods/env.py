"""Environment variables of containers. Pure. Called by the pod builders."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from plan.config.configuration import SERVICE_VARIABLE

# Of keys of a Secret, those that name a variable: the kube-apiserver would refuse a pod with another one.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


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


def usable(variables: Collection[str]) -> list[str]:
    """Return the keys of the Secret with a project's variables that its runs get, without reserved ones."""
    return sorted(name for name in variables if not SERVICE_VARIABLE.fullmatch(name))


def all_from_secret(secret: str, variables: Collection[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return `env` and the field `envFrom` of a container that gets the variables of a Secret.

    With `envFrom`, a reserved name that kubectl has written would change the Python or the runner of the pod.
    """
    names = usable(variables)
    if len(names) == len(variables):
        return [], {"envFrom": [{"secretRef": {"name": secret, "optional": True}}]}
    return [from_secret(name, secret, name) for name in names if _NAME.fullmatch(name)], {}
