"""Files in which blobs are written until they are whole, left by a process that was killed.

The object-store library gives them the blob's name with `#` and a number, and never lists them. Called by
`api.store.blobs.blobs`. Blocks.
"""

import os
import re
from datetime import datetime
from pathlib import Path

_STAGED = re.compile(r".+#[0-9]+")


def remove_staged(directory: Path, before: datetime) -> int:
    """Deletes those that nobody wrote to since `before`; gives how many. Raises OSError."""
    done = 0
    for folder, _, names in os.walk(directory):
        for name in filter(_STAGED.fullmatch, names):
            path = Path(folder, name)
            try:
                if path.stat().st_mtime < before.timestamp():
                    path.unlink()
                    done += 1
            except FileNotFoundError:
                continue
    return done
