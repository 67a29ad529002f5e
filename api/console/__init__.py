"""The console: static files whose JavaScript calls the API with the user's key. Called by `.routes`.

Content-Security-Policy allows no resources from other origins, and trusted types forbid parsing text as HTML.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; "
    "frame-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


@dataclass(frozen=True)
class StaticFile:
    """Content, media type and ETag of a file."""

    body: bytes
    content_type: str
    etag: str


def load_files() -> dict[str, StaticFile]:
    """Return all files by their path below `/console/`."""
    return {
        path.relative_to(_HERE).as_posix(): StaticFile(
            body := path.read_bytes(), _TYPES[path.suffix], _etag(body)
        )
        for path in sorted(_HERE.rglob("*"))
        if path.suffix in _TYPES
    }


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'
