"""JSON Schemas and examples of API keys. Pure."""

from api.auth.scopes import SCOPES
from api.v1.fields import (
    CREATED_AT,
    CREATED_BY,
    EXAMPLE_PRINCIPAL,
    EXAMPLE_PROJECT_NAME,
    EXAMPLE_TIMESTAMP,
    NAME_PATTERN,
    NO_NUL_PATTERN,
    PROJECT_NAME,
    TEXT,
    TIMESTAMP,
    Schema,
    described,
    nullable,
    request_object,
    response_object,
)

ID: Schema = {"type": "string", "pattern": "^[0-9A-Za-z]{10}$", "description": "The id of a key."}
CREATE = request_object(
    ["name", "scopes"],
    {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
            "pattern": NO_NUL_PATTERN,
            "description": "Purpose of the key.",
        },
        "scopes": {
            "type": "array",
            "minItems": 1,
            "maxItems": len(SCOPES),
            "uniqueItems": True,
            "items": {"type": "string", "enum": SCOPES},
            "description": "Its scopes: admin includes all, deploy includes preview; every key can read.",
        },
        "projects": {
            "type": ["array", "null"],
            "minItems": 1,
            "maxItems": 100,
            "uniqueItems": True,
            "items": PROJECT_NAME,
            "description": "Projects of the key; all projects if null or omitted.",
        },
        "plan": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": 63,
            "pattern": NAME_PATTERN,
            "description": "Plan for the rate limit of the key; the best plan of its projects if omitted.",
        },
        "expires_at": {
            "type": ["string", "null"],
            "maxLength": 40,
            "format": "date-time",
            "description": "Expiry time, for example 2027-01-01T00:00:00Z; never if omitted.",
        },
    },
    title="KeyCreate",
)
_KEY: dict[str, Schema] = {
    "id": ID,
    "name": described(TEXT, "Its purpose."),
    "scopes": {
        "type": "array",
        "items": {"type": "string", "enum": list(SCOPES)},
        "description": "Its scopes; `admin` includes all.",
    },
    "projects": {"type": ["array", "null"], "items": PROJECT_NAME, "description": "Null for all."},
    "plan": described(
        nullable(TEXT), "The plan that limits its requests; null for the best plan of its projects."
    ),
    "created_at": CREATED_AT,
    "created_by": CREATED_BY,
    "expires_at": described(nullable(TIMESTAMP), "When it expires; null if never."),
    "last_used_at": described(
        nullable(TIMESTAMP), "When it was last used, to about a minute; null if never."
    ),
}
ITEM = response_object("Key", _KEY)
CREATED = response_object("KeyCreated", {**_KEY, "key": described(TEXT, "The key itself, shown only once.")})

EXAMPLE_ID = "K3yK3yK3yK"
CREATE_EXAMPLE = {
    "name": "Deploy from CI",
    "scopes": ["deploy", "run"],
    "projects": [EXAMPLE_PROJECT_NAME],
    "expires_at": "2027-11-21T00:00:00Z",
}
EXAMPLE = {
    "id": EXAMPLE_ID,
    "name": "Deploy from CI",
    "scopes": ["deploy", "run"],
    "projects": [EXAMPLE_PROJECT_NAME],
    "plan": None,
    "created_at": EXAMPLE_TIMESTAMP,
    "created_by": EXAMPLE_PRINCIPAL,
    "expires_at": "2027-11-21T00:00:00Z",
    "last_used_at": None,
}
CREATED_EXAMPLE = {**EXAMPLE, "key": f"crw_{EXAMPLE_ID}_…"}
