"""The security contexts of the pods we make. Pure; called by the pod builders."""

from typing import Any

USER = 65532
"""The user and group of runner, crew and our own build containers."""


def restricted_pod() -> dict[str, Any]:
    """What the profile *restricted* demands of a pod."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def restricted_container() -> dict[str, Any]:
    """What the profile *restricted* demands of a container."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def kaniko_container() -> dict[str, Any]:
    """Root, since Kaniko unpacks images as what they are, with three capabilities and no way to more."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "FOWNER", "DAC_OVERRIDE"]},
        "runAsNonRoot": False,
        "runAsUser": 0,
        "runAsGroup": 0,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def resources(
    asked: dict[str, Any] | None, requests: dict[str, str], limits: dict[str, str]
) -> dict[str, Any]:
    """Requests and limits: what the Project asks for over our defaults.

    A default request above an asked-for limit would be refused by the apiserver, so it is left out.
    """
    given = asked or {}
    wanted_limits = {**limits, **(given.get("limits") or {})}
    kept = {key: value for key, value in requests.items() if key not in (given.get("limits") or {})}
    return {"requests": {**kept, **(given.get("requests") or {})}, "limits": wanted_limits}
