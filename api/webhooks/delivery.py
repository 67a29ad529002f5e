"""What a delivery says, in one vocabulary for GitHub, GitLab, Gitea and Forgejo. Pure.

Read after its proof was found good, and still not trusted: what is missing or of
another type counts as not said. Called by `api.webhooks.routes`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import parse_qs

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
_FIELDS = 16
_MOST_ID = 128
_EVENTS = ("X-GitHub-Event", "X-Gitea-Event", "X-Forgejo-Event", "X-Gitlab-Event")
_IDS = ("X-GitHub-Delivery", "X-Gitea-Delivery", "X-Forgejo-Delivery", "X-Gitlab-Event-UUID")
_PUSHES = ("push", "create", "delete", "Push Hook", "Tag Push Hook")
_REQUESTS = ("pull_request", "Merge Request Hook")
_CLOSING = ("closed", "close", "merge")
_MOST_NUMBER = 2**53

Kind = Literal["ping", "push", "closed", "other"]


@dataclass(frozen=True)
class Delivery:
    """`event` as the host calls it; `repository` is owner/name; None: it does not say."""

    kind: Kind
    event: str
    ref: str | None = None
    default_branch: str | None = None
    repository: str | None = None
    number: int | None = None


def identifiers(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The ids under which the host knows a delivery; it gives the same again when it repeats one."""
    return tuple(dict.fromkeys(headers[name][:_MOST_ID] for name in _IDS if headers.get(name)))


def content(body: bytes, content_type: str) -> Mapping[str, Any]:
    """The object that a body carries. Raises ValueError, with the reason, where there is none."""
    text = body.decode(errors="replace")
    if content_type == FORM:
        given = parse_qs(text, max_num_fields=_FIELDS).get("payload")
        if not given:
            raise ValueError("the form has no field payload")
        text = given[0]
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def read(headers: Mapping[str, str], said: Mapping[str, Any] | None) -> Delivery:
    """What a delivery says. Without `said`, of a body too large to be read, only what kind it is."""
    event = next((headers[name] for name in _EVENTS if headers.get(name)), "")[:_MOST_ID]
    known = said or {}
    # GitLab calls it project; its `repository` has neither path nor branch.
    place = _object(known, "project") or _object(known, "repository")
    full = _text(place, "path_with_namespace") or _text(place, "full_name")
    found = Delivery("other", event, default_branch=_text(place, "default_branch"), repository=full)
    if event == "ping":
        return replace(found, kind="ping")
    if event in _PUSHES:
        return replace(found, kind="push", ref=_ref(event, known))
    if event in _REQUESTS:
        request = _object(known, "object_attributes")
        number = known.get("number") or request.get("iid")
        closing = (_text(known, "action") or _text(request, "action")) in _CLOSING
        if closing and type(number) is int and 0 < number < _MOST_NUMBER:
            return replace(found, kind="closed", number=number)
    return found


def _ref(event: str, said: Mapping[str, Any]) -> str | None:
    ref, kind = _text(said, "ref"), _text(said, "ref_type")
    if event in ("create", "delete") and ref and not ref.startswith("refs/"):
        return f"refs/{'tags' if kind == 'tag' else 'heads'}/{ref}"
    return ref


def _object(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = said.get(name)
    return found if isinstance(found, dict) else {}


def _text(said: Mapping[str, Any], name: str) -> str | None:
    found = said.get(name)
    return found if isinstance(found, str) and found else None
