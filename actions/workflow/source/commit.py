"""The commit to deploy and its message. Called by the action `deploy`."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actions.workflow.client.sse import as_object
from actions.workflow.source import git

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MAX_MESSAGE_CHARS = 4096


@dataclass(frozen=True)
class CheckoutCommit:
    """The commit. `sha` is None outside git; `pull_request` is set if the workflow runs for one."""

    sha: str | None
    message: str
    pull_request: int | None


def read_event(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the event payload of the workflow; {} if there is no file."""
    path = environment.get("GITHUB_EVENT_PATH")
    try:
        return as_object(json.loads(Path(path).read_text("utf-8"))) if path else {}
    except (OSError, ValueError):
        return {}


def read_commit(directory: Path, environment: Mapping[str, str]) -> CheckoutCommit:
    """Return the commit of the checkout.

    For a pull request the runner checks out a temporary merge commit, so this is the head of the pull
    request. (For pull_request_target the runner checks out the base, so this is the base.)
    """
    event, head = read_event(environment), git.text(directory, "rev-parse", "HEAD")
    pull, event_sha = as_object(event.get("pull_request")), environment.get("GITHUB_SHA", "")
    sha, title = _sha(head) or _sha(event_sha), None
    if (
        pull
        and environment.get("GITHUB_EVENT_NAME") != "pull_request_target"
        and head in (None, "", event_sha)
    ):
        sha = _sha(as_object(pull.get("head")).get("sha")) or sha
        title = pull.get("title")
    # A shallow checkout of the merge has no head commit.
    subject = git.text(directory, "log", "-1", "--format=%s", sha, "--") if sha else None
    message = subject or (title if isinstance(title, str) else None) or ""
    return CheckoutCommit(sha, clean_message(message), _number(pull.get("number")))


def clean_message(text: str) -> str:
    """Return the text as a valid deployment message, truncated to the limit of the API."""
    return text.replace("\0", "").encode("utf-8", "replace").decode().strip()[:_MAX_MESSAGE_CHARS]


def _sha(value: Any) -> str | None:
    return value if isinstance(value, str) and _SHA.fullmatch(value) else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
