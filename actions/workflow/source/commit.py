"""Which commit is deployed and what is said of it. Called by the deploy program."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actions.workflow.client.sse import whole
from actions.workflow.source import git

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MESSAGE = 4096


@dataclass(frozen=True)
class Commit:
    """`sha` is None outside of git; `pull_request` where the workflow runs for one."""

    sha: str | None
    message: str
    pull_request: int | None


def read_event(environment: Mapping[str, str]) -> dict[str, Any]:
    """What made the workflow run; empty where there is no such file."""
    path = environment.get("GITHUB_EVENT_PATH")
    try:
        return whole(json.loads(Path(path).read_text("utf-8"))) if path else {}
    except (OSError, ValueError):
        return {}


def read_commit(directory: Path, environment: Mapping[str, str]) -> Commit:
    """The commit of the checkout.

    On a pull request the runner checks out a merge that is no commit of anybody;
    then it is the pull request's head. (Under pull_request_target it is the base
    that is checked out, and the base that is deployed.)
    """
    event, head = read_event(environment), git.text(directory, "rev-parse", "HEAD")
    pull, given = whole(event.get("pull_request")), environment.get("GITHUB_SHA", "")
    sha, title = _sha(head) or _sha(given), None
    if pull and environment.get("GITHUB_EVENT_NAME") != "pull_request_target" and head in (None, "", given):
        sha = _sha(whole(pull.get("head")).get("sha")) or sha
        title = pull.get("title")
    # A shallow checkout of the merge has no head commit.
    subject = git.text(directory, "log", "-1", "--format=%s", sha, "--") if sha else None
    message = subject or (title if isinstance(title, str) else None) or ""
    return Commit(sha, clean_message(message), _number(pull.get("number")))


def clean_message(text: str) -> str:
    """A deployment's message: what the API takes, and no longer than one may be."""
    return text.replace("\0", "").encode("utf-8", "replace").decode().strip()[:_MESSAGE]


def _sha(value: Any) -> str | None:
    return value if isinstance(value, str) and _SHA.fullmatch(value) else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
