"""Security contexts of pods. Pure. Called by the pod builders."""

from typing import Any

USER_ID = 65532
"""User and group of runner, crew and service containers."""


def restricted_pod() -> dict[str, Any]:
    """Return the pod security context of the *restricted* profile."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER_ID,
        "runAsGroup": USER_ID,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def restricted_container() -> dict[str, Any]:
    """Return the container security context of the *restricted* profile."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": USER_ID,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def kaniko_container() -> dict[str, Any]:
    """Return Kaniko's context: root, to unpack files with their owners; only three capabilities."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "FOWNER", "DAC_OVERRIDE"]},
        "runAsNonRoot": False,
        "runAsUser": 0,
        "runAsGroup": 0,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def resources(
    requested: dict[str, Any] | None, requests: dict[str, str], limits: dict[str, str]
) -> dict[str, Any]:
    """Return requests and limits: the Project's over our defaults.

    The apiserver rejects a request above a limit: a default request is dropped if the Project sets the limit.
    """
    own = requested or {}
    wanted_limits = {**limits, **(own.get("limits") or {})}
    defaults = {key: value for key, value in requests.items() if key not in (own.get("limits") or {})}
    return {"requests": {**defaults, **(own.get("requests") or {})}, "limits": wanted_limits}
