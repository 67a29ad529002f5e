"""Project rows as JSON, and request bodies as specs. Pure. Called by the routes of projects."""

from collections.abc import Iterator, Mapping
from typing import Any

from api.http import casing
from api.store.index.notifications.outbox import known_names
from api.store.index.projects import ProjectRow
from api.v1.projects.schema import SPEC
from api.v1.timestamps import timestamp
from crds import conditions, names
from crds.objects import DEFAULT_PLAN


def item(row: ProjectRow) -> dict[str, Any]:
    """Return a project with every field of the spec, null if not set."""
    spec = casing.to_snake(SPEC, dict(row.spec))
    found = row.status.get("conditions") or ()
    ready = conditions.find(found, conditions.READY) or {}
    limited = conditions.find(found, conditions.LIMITED)
    return {
        "name": row.name,
        "namespace": row.object_namespace,
        "plan": spec.get("plan") or DEFAULT_PLAN,
        **{field: spec.get(field) for field in map(casing.snake, SPEC["properties"]) if field != "plan"},
        "created_at": timestamp(row.created_at),
        "created_by": row.created_by,
        "active_deployment_id": names.id_of(row.active) if row.active else None,
        "ready": {
            "status": {"True": True, "False": False}.get(str(ready.get("status"))),
            "reason": ready.get("reason") or "Pending",
            "message": ready.get("message") or "",
        },
        "limited": {"reason": limited["reason"], "message": limited["message"]} if limited else None,
        "failing_notifications": known_names(row.spec.get("notifications"), row.failing_notifications or ()),
    }


def spec(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec, or its merge patch, for a validated body."""
    fields = {name: value for name, value in body.items() if name not in ("name", "namespace")}
    result: dict[str, Any] = casing.to_camel(SPEC, fields)
    return result


_ADMIN_FIELDS = ("plan", "budget", "oidc", "notifications", "pod.image_pull_secrets", "source.git.verify")


def admin_fields(body: Any, path: str = "") -> Iterator[str]:
    """Yield the fields of a body that only admins may set.

    These are plan, budget, oidc, notifications and references to Secrets. A reference to a Secret is a
    permission: its content is sent to the URL in the same object.
    """
    if isinstance(body, Mapping):
        for key, value in body.items():
            field = f"{path}.{key}" if path else str(key)
            if field in _ADMIN_FIELDS or key == "secret_ref":
                yield field
            else:
                yield from admin_fields(value, field)


_SECRET_DESTINATIONS = (
    (("source", "git"), "url"),
    (("github",), "repository"),
    (("commitStatus",), "provider"),
    (("commitStatus",), "repository"),
)
"""Parents of `secretRef` in the spec, and the sibling field with the destination of the Secret's content."""


def redirected_secrets(body: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of a merge patch that send a referenced Secret to another destination."""
    for parent, field in _SECRET_DESTINATIONS:
        current, change = _nested(spec, parent), _nested(body, tuple(map(casing.snake, parent)))
        if current.get("secretRef") and field in change and change[field] != current.get(field):
            yield ".".join((*map(casing.snake, parent), field))


def dropped_verification(body: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the field of a merge patch that removes `source.git.verify` with the object around it."""
    if not _nested(spec, ("source", "git")).get("verify"):
        return
    if "source" in body and not isinstance(body["source"], Mapping):
        yield "source"
    elif "git" in (source := body.get("source") or {}) and not isinstance(source["git"], Mapping):
        yield "source.git"


def _nested(value: Any, path: tuple[str, ...]) -> Mapping[str, Any]:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
