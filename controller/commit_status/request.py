"""Requests that set a commit status, by provider, and what their responses mean. Pure.

GitLab: "Set the pipeline status of a commit"; Gitea and Forgejo: "Create a commit status". Called by
`controller.commit_status.host`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from controller.github.report import DeploymentReport

GITLAB = "gitlab"
PASSING_STATUSES = (408, 409, 425, 429)
"""409 of GitLab: another client writes a status of the commit at this moment."""
DEFAULT_PAUSE_SECONDS = 60.0
"""Pause after 429 without Retry-After."""
_GITLAB_STATES = {
    "queued": "pending",
    "in_progress": "running",
    "success": "success",
    "inactive": "success",
    "failure": "failed",
    "error": "canceled",
}
_HINTS = {
    401: "the token in spec.commitStatus.secretRef is invalid or has expired",
    403: "the token in spec.commitStatus.secretRef may not write commit statuses",
    404: "the token in spec.commitStatus.secretRef cannot access spec.commitStatus.repository, or the commit "
    "is not in it",
}


class StatusProblem(Exception):
    """Failed call. `transient` if a retry may help, after `retry_after` seconds at the earliest."""

    def __init__(self, message: str, transient: bool, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after


@dataclass(frozen=True)
class StatusRequest:
    """A POST: URL, headers and JSON body."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: Mapping[str, str]


def state_of(provider: str, report: DeploymentReport) -> str:
    """Return the provider's name of the state."""
    return _GITLAB_STATES[report.state] if provider == GITLAB else report.commit_state


def status_request(provider: str, base_url: str, token: str, report: DeploymentReport) -> StatusRequest:
    """Return the request that sets the commit status."""
    body = {
        "state": state_of(provider, report),
        "description": report.description,
        "context": report.context,
        **({"target_url": report.log_url} if report.log_url else {}),
    }
    if provider == GITLAB:
        project = quote(report.repository, safe="")
        url = f"{base_url}/api/v4/projects/{project}/statuses/{report.commit}"
        return StatusRequest(url, {"PRIVATE-TOKEN": token}, body)
    url = f"{base_url}/api/v1/repos/{quote(report.repository)}/statuses/{report.commit}"
    return StatusRequest(url, {"Authorization": f"token {token}"}, body)


def problem_of(provider: str, status: int, headers: Mapping[str, str], text: str) -> StatusProblem | None:
    """Return the problem that a response tells, or None."""
    if 200 <= status < 300 or (provider == GITLAB and status == 400 and "Cannot transition status" in text):
        # GitLab refuses the state that the commit has already.
        return None
    if status >= 500 or status in PASSING_STATUSES:
        given = headers.get("Retry-After", "")
        pause = float(given) if given.isascii() and given.isdecimal() else 0.0
        return StatusProblem(
            f"{provider} responded {status}; will retry",
            True,
            pause or (DEFAULT_PAUSE_SECONDS if status == 429 else 0.0),
        )
    return StatusProblem(f"{provider} responded {status}: {_HINTS.get(status, _line(text))}", False)


def read_token(secret: Mapping[str, Any] | None, name: str, value: bytes | None) -> str:
    """Return the token of a Secret. Raises StatusProblem; the message names the key, never its value."""
    if secret is None:
        raise StatusProblem(
            f"Secret {name} does not exist; create it, or correct spec.commitStatus.secretRef", False
        )
    try:
        token = (value or b"").decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isprintable():
        raise StatusProblem(f"the key token of the Secret {name} is missing or no token", False)
    return token


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
