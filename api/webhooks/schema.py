"""JSON Schema and examples of webhook deliveries. Pure."""

from api.v1.fields import EXAMPLE_DIGEST, response_object

OUTCOME = response_object(
    "Delivery",
    {
        "effect": {
            "type": "string",
            "enum": ["look", "close", "none"],
            "description": "`look`: poll the repository now; `close`: remove previews; `none`: no effect.",
        },
        "reason": {"type": "string", "description": "A sentence for users."},
    },
)

DELIVERY_EXAMPLE = {
    "ref": "refs/heads/main",
    "after": "1f7a7a4c0d7e3b6f0a8f5d2c9b4e6a1d3c5f7e9b",
    "repository": {"full_name": "team/research", "default_branch": "main"},
}
SIGNATURE_EXAMPLE = f"sha256={EXAMPLE_DIGEST}"
ACCEPTED_EXAMPLE = {"effect": "look", "reason": "the repository is polled now"}
PING_EXAMPLE = {"effect": "none", "reason": "a ping; the webhook works"}
