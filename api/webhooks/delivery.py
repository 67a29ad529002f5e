"""Parses deliveries of GitHub, GitLab, Gitea and Forgejo into one form. Pure.

Runs after the signature check and still treats the payload as untrusted: a missing field or one of
the wrong type counts as absent. Called by `api.webhooks.routes`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import parse_qs

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
_MAX_FORM_FIELDS = 16
_MAX_ID_LENGTH = 128
_EVENT_HEADERS = {
    "X-Forgejo-Event": "forgejo",
    "X-Gitea-Event": "gitea",
    "X-Gitlab-Event": "gitlab",
    "X-GitHub-Event": "github",
}
"""Header of the event → host. Forgejo sends those of Gitea and GitHub too, Gitea those of GitHub."""
_ID_HEADERS = ("X-GitHub-Delivery", "X-Gitea-Delivery", "X-Forgejo-Delivery", "X-Gitlab-Event-UUID")
_PUSH_EVENTS = ("push", "create", "delete", "Push Hook", "Tag Push Hook")
_PULL_REQUEST_EVENTS = ("pull_request", "Merge Request Hook")
_CLOSING_ACTIONS = ("closed", "close", "merge")
_MAX_NUMBER = 2**53

DeliveryKind = Literal["ping", "push", "closed", "other"]


@dataclass(frozen=True)
class Delivery:
    """A parsed delivery. `event` is the name used by the host, `repository` is owner/name; None: absent.

    `host` is the kind of the host, as its headers say.
    """

    kind: DeliveryKind
    event: str
    ref: str | None = None
    default_branch: str | None = None
    repository: str | None = None
    number: int | None = None
    host: str = ""


def identifiers(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the delivery ids of the host, which are ASCII; a redelivery has the same ids."""
    found = (headers.get(name, "") for name in _ID_HEADERS)
    return tuple(dict.fromkeys(text[:_MAX_ID_LENGTH] for text in found if text and text.isascii()))


def parse_payload(body: bytes, content_type: str) -> Mapping[str, Any]:
    """Return the JSON object of a body. Raises ValueError with the reason if there is none."""
    text = body.decode(errors="replace")
    if content_type == FORM:
        values = parse_qs(text, max_num_fields=_MAX_FORM_FIELDS).get("payload")
        if not values:
            raise ValueError("the form has no field payload")
        text = values[0]
    try:
        payload = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg}") from None
    if not isinstance(payload, dict):
        raise ValueError("it is not a JSON object")
    return payload


def parse_delivery(headers: Mapping[str, str], payload: Mapping[str, Any] | None) -> Delivery:
    """Parse a delivery. Without `payload` (the body was too large) only its kind is known."""
    header = next((name for name in _EVENT_HEADERS if headers.get(name)), None)
    event = headers[header][:_MAX_ID_LENGTH] if header else ""
    host = _EVENT_HEADERS[header] if header else ""
    fields = payload or {}
    # GitLab has it in `project`; its `repository` has neither path nor branch.
    repository = _object(fields, "project") or _object(fields, "repository")
    full = _text(repository, "path_with_namespace") or _text(repository, "full_name")
    branch = _text(repository, "default_branch")
    delivery = Delivery("other", event, default_branch=branch, repository=full, host=host)
    if event == "ping":
        return replace(delivery, kind="ping")
    if event in _PUSH_EVENTS:
        return replace(delivery, kind="push", ref=_ref(event, fields))
    if event in _PULL_REQUEST_EVENTS:
        request = _object(fields, "object_attributes")
        number = fields.get("number") or request.get("iid")
        closing = (_text(fields, "action") or _text(request, "action")) in _CLOSING_ACTIONS
        if closing and type(number) is int and 0 < number < _MAX_NUMBER:
            return replace(delivery, kind="closed", number=number)
    return delivery


def _ref(event: str, payload: Mapping[str, Any]) -> str | None:
    ref, kind = _text(payload, "ref"), _text(payload, "ref_type")
    if event in ("create", "delete") and ref and not ref.startswith("refs/"):
        return f"refs/{'tags' if kind == 'tag' else 'heads'}/{ref}"
    return ref


def _object(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = payload.get(name)
    return value if isinstance(value, dict) else {}


def _text(payload: Mapping[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) and value else None
