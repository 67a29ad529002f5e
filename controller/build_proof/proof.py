"""Proof that a Deployment's image is the result of its build, and not only written into its status. Pure.

Only the service has the key, so a right to write `deployments/status` or to push images gives none.
Written by `controller.deployment.decide`; checked before an image is reused or attested.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from typing import Any

from crds.objects import Deployment

PROVEN_FIELDS = ("image", "dependenciesDigest", "tree", "sourceKey", "buildKey", "dependenciesKey")
BASE_FIELDS = ("baseKey", "baseDigest")
"""Proven where they are set: images of an earlier version have proofs without them."""


def prove(key: str, namespace: str, deployment: Deployment, pod_uid: str, status: Mapping[str, Any]) -> str:
    """Return the proof that the pod with this uid made the image of `status` for the Deployment."""
    return f"{pod_uid}.{_signature(key, namespace, deployment, pod_uid, status)}"


def proven_pod(keys: Iterable[str], namespace: str, deployment: Deployment) -> str | None:
    """Return the uid of the pod that made the Deployment's image; None without a proof by one of the keys."""
    pod_uid, _, signature = str(deployment.status.get("proof") or "").partition(".")
    if not pod_uid or not deployment.image:
        return None
    expected = (_signature(key, namespace, deployment, pod_uid, deployment.status) for key in keys)
    valid = [hmac.compare_digest(one.encode(), signature.encode()) for one in expected]
    return pod_uid if any(valid) else None


def _signature(
    key: str, namespace: str, deployment: Deployment, pod_uid: str, status: Mapping[str, Any]
) -> str:
    of = [namespace, deployment.project, deployment.name, deployment.uid, pod_uid]
    # A colon is in no token's body, so no signature counts as both.
    proven = [status.get(name) or "" for name in PROVEN_FIELDS]
    base = [status[name] for name in BASE_FIELDS if status.get(name)]
    body = "build:" + json.dumps([*of, *proven, *base])
    return hmac.new(key.encode(), body.encode(), hashlib.sha256).hexdigest()
