"""Which port serves the calls of pods."""

import pytest

from api.routing.pod_calls import refusal

CLAIM = "/internal/v1/runs/run-a/claim"


@pytest.mark.parametrize(
    ("path", "secure", "plain", "status"),
    [
        (CLAIM, True, True, None),
        (CLAIM, True, False, None),
        (CLAIM, False, True, None),
        (CLAIM, False, False, 403),
        ("/v1/runs", True, True, 404),
        ("/metrics", True, True, 404),
        ("/healthz", True, False, 404),
        ("/internalx", True, True, 404),
        ("/v1/runs", False, False, None),
        ("/metrics", False, False, None),
        ("/healthz", False, False, None),
    ],
)
def test_ports_and_paths(path: str, secure: bool, plain: bool, status: int | None) -> None:
    error = refusal(path, secure, plain)
    assert (error.status if error else None) == status
