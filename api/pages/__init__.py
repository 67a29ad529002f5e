"""Static pages: one file each, no external resources, and a Content-Security-Policy that enforces it.

Called by `api.openapi.routes`.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class StaticPage:
    """Bytes of a page, and a Content-Security-Policy that allows only its own script and style."""

    body: bytes
    policy: str


def load(name: str) -> StaticPage:
    """Return the page with this file name."""
    body = (_HERE / name).read_bytes()
    script, style = _digest(body, b"script"), _digest(body, b"style")
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return StaticPage(body, policy)


def _digest(body: bytes, tag: bytes) -> str:
    match = re.search(b"<%b>(.*?)</%b>" % (tag, tag), body, re.DOTALL)
    assert match is not None
    return f"'sha256-{base64.b64encode(hashlib.sha256(match[1]).digest()).decode()}'"
