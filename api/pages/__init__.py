"""Pages that are served as they are: one file each, nothing from elsewhere, and a policy that says so.

Called by `api.openapi.routes`.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Page:
    """A page's bytes, and the Content-Security-Policy that allows exactly its own script and style."""

    body: bytes
    policy: str


def load(name: str) -> Page:
    """The page of that file name."""
    body = (_HERE / name).read_bytes()
    script, style = _digest(body, b"script"), _digest(body, b"style")
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(body, policy)


def _digest(body: bytes, tag: bytes) -> str:
    found = re.search(b"<%b>(.*?)</%b>" % (tag, tag), body, re.DOTALL)
    assert found is not None
    return f"'sha256-{base64.b64encode(hashlib.sha256(found[1]).digest()).decode()}'"
