"""Route of the caller: who it is, and which scopes it has where."""

from aiohttp import web

from api.auth.principal import Caller
from api.http import responses
from api.http.operation import item_response
from api.routing.endpoint import Endpoint, EndpointCall
from api.v1.fields import (
    EXAMPLE_PRINCIPAL,
    EXAMPLE_PROJECT_NAME,
    PROJECT_NAME,
    TEXT,
    TIMESTAMP,
    Schema,
    described,
    nullable,
    response_object,
)
from api.v1.timestamps import timestamp


async def get(call: EndpointCall) -> web.StreamResponse:
    """Return who the caller is, and its scopes in all projects and in single ones."""
    return responses.item(item(call.caller))


def item(caller: Caller) -> dict[str, object]:
    """Return a caller as JSON. Pure."""
    grants = caller.grants
    return {
        "principal": caller.principal,
        "scopes": None if grants.everywhere is None else sorted(grants.everywhere),
        "projects": [
            {"project": project, "scopes": sorted(scopes)}
            for project, scopes in sorted(grants.by_project.items())
        ],
        "expires_at": timestamp(caller.expires_at),
    }


_SCOPES: Schema = {"type": "array", "items": TEXT}
_SCHEMA = response_object(
    "Whoami",
    {
        "principal": described(TEXT, "Who it is, as in the audit log."),
        "scopes": {
            "type": ["array", "null"],
            "items": TEXT,
            "description": "The scopes in all projects; null for a caller of single projects.",
        },
        "projects": {
            "type": "array",
            "items": response_object(
                "WhoamiProject",
                {"project": PROJECT_NAME, "scopes": described(_SCOPES, "The scopes in this project.")},
            ),
            "description": "The single projects with their scopes.",
        },
        "expires_at": described(nullable(TIMESTAMP), "When the key or token expires; null if never."),
    },
)
_EXAMPLE = {
    "principal": EXAMPLE_PRINCIPAL,
    "scopes": None,
    "projects": [{"project": EXAMPLE_PROJECT_NAME, "scopes": ["deploy", "read", "run"]}],
    "expires_at": None,
}
ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/whoami",
        get,
        "read",
        summary="Get the caller",
        responses=(item_response(_SCHEMA, _EXAMPLE),),
    ),
)
