"""Partial blob files left by a killed process.

The object-store library gives them the blob's name with `#` and a number and never lists them. Called by
`api.store.blobs.blobs`. Blocks.
"""

import os
import re
from datetime import datetime
from pathlib import Path

_STALE_PART = re.compile(r".+#[0-9]+")


def delete_stale_parts(directory: Path, before: datetime) -> int:
    """Delete those not written since `before`; return how many. Raises OSError."""
    deleted = 0
    for folder, _, names in os.walk(directory):
        for name in filter(_STALE_PART.fullmatch, names):
            path = Path(folder, name)
            try:
                if path.stat().st_mtime < before.timestamp():
                    path.unlink()
                    deleted += 1
            except FileNotFoundError:
                continue
    return deleted
