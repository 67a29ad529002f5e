"""The console: a page of modules that call the API with the key of who signed in. Served as it is.

Called by `api.console.routes`. Nothing comes from elsewhere, and the policy says so; trusted types make
sure that no text is ever read as HTML.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


@dataclass(frozen=True)
class File:
    """A file's bytes, its media type, and its entity tag."""

    body: bytes
    content_type: str
    tag: str


def load() -> dict[str, File]:
    """All files by name."""
    return {
        path.name: File(body := path.read_bytes(), _TYPES[path.suffix], _tag(body))
        for path in sorted(_HERE.iterdir())
        if path.suffix in _TYPES
    }


def _tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'
