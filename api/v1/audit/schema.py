"""JSON Schema and examples of the audit log. Pure."""

from api.v1.fields import (
    EXAMPLE_PROJECT_NAME,
    EXAMPLE_RUN_ID,
    EXAMPLE_TIMESTAMP,
    TEXT,
    TIMESTAMP,
    Schema,
    described,
    nullable,
    response_object,
)

_HASH: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
RECORD = response_object(
    "AuditRecord",
    {
        "number": {"type": "integer", "minimum": 1, "description": "Its number; counts from 1 without gaps."},
        "time": described(TIMESTAMP, "When the request arrived."),
        "actor": described(
            TEXT,
            "Who: `key:<id>`, `kubernetes:<user>`, `user:<name>`, `workflow:<repository>:…`; "
            "`webhook:<host>` for deliveries of git hosts, `service` for retention.",
        ),
        "remote": described(TEXT, "The client's address."),
        "method": described(TEXT, "The method of the call."),
        "path": described(TEXT, "The path of the call."),
        "project": described(nullable(TEXT), "The project; null if the change concerns no single one."),
        "target": described(nullable(TEXT), "The id or name of the object that is created or changed."),
        "outcome": {
            "type": "string",
            "enum": ["accepted", "failed", "pruned"],
            "description": (
                "accepted: recorded before the change; failed: the call failed after that record; "
                "pruned: records up to the number in `target` were removed, whose last hash is in `code`."
            ),
        },
        "code": described(nullable(TEXT), "The error code of a failed call."),
        "request_id": described(TEXT, "The request id, as in X-Request-Id and the log."),
        "previous": described(_HASH, "The hash of the record before it; zeros for the first."),
        "hash": described(
            _HASH,
            "SHA-256 of the other fields as JSON with sorted keys, without spaces, in ASCII.",
        ),
    },
)
EXAMPLE = {
    "number": 1,
    "time": EXAMPLE_TIMESTAMP,
    "actor": "key:Xa81kd02Pq",
    "remote": "192.0.2.7",
    "method": "POST",
    "path": "/v1/runs",
    "project": EXAMPLE_PROJECT_NAME,
    "target": EXAMPLE_RUN_ID,
    "outcome": "accepted",
    "code": None,
    "request_id": "req_0123456789abcdef",
    "previous": "0" * 64,
    "hash": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
}
LINES_EXAMPLE = '{"number":1,"actor":"key:Xa81kd02Pq"}\n'
