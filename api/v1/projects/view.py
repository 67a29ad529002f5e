"""Projects: rows to the API's JSON, and bodies to specs. Pure. Called by the routes of projects."""

from collections.abc import Iterator, Mapping
from typing import Any

from api.http import casing
from api.store.index.projects import ProjectRow
from api.v1.schemas import PROJECT_SPEC
from api.v1.timestamps import moment
from crds import conditions, names


def item(row: ProjectRow) -> dict[str, Any]:
    """A project, in lists and by itself: every field of the spec, null where it is not set."""
    spec = casing.to_snake(PROJECT_SPEC, dict(row.spec))
    ready = conditions.find(row.status.get("conditions") or (), conditions.READY) or {}
    return {
        "name": row.name,
        "plan": spec.get("plan") or "free",
        **{
            field: spec.get(field)
            for field in map(casing.snake, PROJECT_SPEC["properties"])
            if field != "plan"
        },
        "created_at": moment(row.created_at),
        "active_deployment_id": names.id_of(row.active) if row.active else None,
        "ready": {
            "status": {"True": True, "False": False}.get(str(ready.get("status"))),
            "reason": ready.get("reason") or "Pending",
            "message": ready.get("message") or "",
        },
    }


def spec(body: Mapping[str, Any]) -> dict[str, Any]:
    """A spec, or a merge patch of one, from a checked body."""
    found: dict[str, Any] = casing.to_camel(PROJECT_SPEC, {k: v for k, v in body.items() if k != "name"})
    return found


_GRANTS = ("plan", "oidc", "image_pull_secrets", "secret_ref")


def admin_fields(body: Any, path: str = "") -> Iterator[str]:
    """The fields of a body that only admin may set: the plan, who else may call, and any Secret.

    A Secret's name is a permission: its content is sent to the address that stands beside it.
    """
    if isinstance(body, Mapping):
        for key, value in body.items():
            here = f"{path}.{key}" if path else str(key)
            if key in _GRANTS:
                yield here
            else:
                yield from admin_fields(value, here)


_SENT_TO = ((("source", "git"), "url"), (("github",), "repository"))
"""Beside which field of the spec a Secret is named whose content is sent there."""


def diverted(body: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a merge patch that send a Secret's content elsewhere than where it was named for."""
    for place, address in _SENT_TO:
        before, after = _within(spec, place), _within(body, place)
        if before.get("secretRef") and address in after and after[address] != before.get(address):
            yield ".".join((*place, address))


def _within(found: Any, place: tuple[str, ...]) -> Mapping[str, Any]:
    for part in place:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
