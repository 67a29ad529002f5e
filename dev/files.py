"""Write keys, and records that later calls read: an interrupted command leaves no incomplete file."""

import os
from pathlib import Path

PRIVATE_MODE = 0o600
FRESH_SUFFIX = ".new"


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace the file's content in one step; create its directory if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + FRESH_SUFFIX)
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
    fresh.replace(path)
