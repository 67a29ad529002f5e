"""Report of a step's result to the controller, a second before the kubelet's. Called by build.__main__."""

import http
import http.client
from collections.abc import Mapping
from typing import Any

from build.api_client import InternalApiClient
from build.settings import BuildSettings

_TIMEOUT_SECONDS = 2.0
_MAX_ATTEMPTS = 4
"""The Service may choose a standby of the controller, which answers 503 immediately."""


def report_result(settings: BuildSettings, container: str, result: Mapping[str, Any]) -> bool:
    """Report the result; return whether the controller accepted it.

    No answer is not tried again, because the termination message carries the same result a little later.
    """
    if not settings.controller_url or not settings.pod_uid:
        return False
    controller = InternalApiClient(
        settings.controller_url, settings.token, _TIMEOUT_SECONDS, settings.internal_ca
    )
    body = {"pod_uid": settings.pod_uid, "container": container, "words": dict(result)}
    for _ in range(_MAX_ATTEMPTS):
        try:
            status, _answer = controller.post(f"/internal/v1/builds/{settings.deployment}/answer", body)
        except (OSError, http.client.HTTPException):
            return False
        if status != http.HTTPStatus.SERVICE_UNAVAILABLE:
            return status == http.HTTPStatus.OK
    return False
