"""JSON Schemas and examples of uploads. Pure."""

from api.v1.fields import (
    DIGEST,
    EXAMPLE_DIGEST,
    EXAMPLE_PROJECT_NAME,
    EXAMPLE_URL,
    ID,
    PROJECT_NAME,
    SHA256,
    SIZE,
    TEXT,
    TIMESTAMP,
    URL,
    described,
    request_object,
    response_object,
)

CREATE = request_object(
    ["project", "size"],
    {
        "project": PROJECT_NAME,
        "size": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1 << 50,
            "description": "Size of the archive in bytes.",
        },
        "sha256": described(SHA256, "The archive's SHA-256 as 64 lower-case hexadecimal digits."),
    },
    title="UploadCreate",
)
CREATED = response_object(
    "Upload",
    {
        "id": ID,
        "upload_url": described(URL, "The signed URL to send the archive to, without an API key."),
        "build_context_url": described(URL, "The `build_context_url` for POST /v1/deployments."),
        "method": described({"const": "PUT"}, "The HTTP method of the upload."),
        "headers": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "Headers to send with it.",
        },
        "expires_at": described(TIMESTAMP, "When the upload URL expires."),
    },
)
STORED = response_object("UploadStored", {"id": ID, "size": SIZE, "sha256": DIGEST})

EXAMPLE_ID = "upl_ab12"
CREATE_EXAMPLE = {"project": EXAMPLE_PROJECT_NAME, "size": 20480, "sha256": EXAMPLE_DIGEST}
CREATED_EXAMPLE = {
    "id": EXAMPLE_ID,
    "upload_url": f"{EXAMPLE_URL}/uploads/{EXAMPLE_ID}/content?token=signature",
    "build_context_url": f"{EXAMPLE_URL}/uploads/{EXAMPLE_ID}/content",
    "method": "PUT",
    "headers": {"Content-Type": "application/octet-stream"},
    "expires_at": "2026-11-21T11:00:00.000000Z",
}
STORED_EXAMPLE = {"id": EXAMPLE_ID, "size": 20480, "sha256": EXAMPLE_DIGEST}
