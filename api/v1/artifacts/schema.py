"""JSON Schema and example of artifacts. Pure."""

from api.v1.fields import (
    DIGEST,
    EXAMPLE_DIGEST,
    EXAMPLE_RUN_ID,
    EXAMPLE_TIMESTAMP,
    EXAMPLE_URL,
    SIZE,
    TEXT,
    TIMESTAMP,
    URL,
    described,
    response_object,
)

ITEM = response_object(
    "Artifact",
    {
        "name": described(TEXT, "Its path below /app/artifacts."),
        "size": SIZE,
        "content_type": described(TEXT, "Its media type, derived from its name."),
        "sha256": DIGEST,
        "partial": {"type": "boolean", "description": "Whether the crew was stopped before it finished."},
        "created_at": described(TIMESTAMP, "When this version was stored."),
        "url": described(URL, "Its download URL."),
    },
)

EXAMPLE_NAME = "report.md"
EXAMPLE = {
    "name": EXAMPLE_NAME,
    "size": 1280,
    "content_type": "text/markdown",
    "sha256": EXAMPLE_DIGEST,
    "partial": False,
    "created_at": EXAMPLE_TIMESTAMP,
    "url": f"{EXAMPLE_URL}/runs/{EXAMPLE_RUN_ID}/artifacts/{EXAMPLE_NAME}",
}
