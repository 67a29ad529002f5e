"""Snapshots of an API server's store: now, and after all retention periods.

Called by `tests.campaign.checks.observation` when a campaign is over.
"""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.campaign.child import Child
from tests.campaign.store.contents import BUSY_SECONDS, StoreContents, read

PATIENCE = timedelta(days=2)
"""Longer than a blob without a row, or an upload, may stay: a day, and until the next maintenance round."""
SECONDS = 300.0
LATER = Path(__file__).parent / "run_maintenance.py"
ELSEWHERE = ("CREWYARD_DATABASE_URL", "CREWYARD_BLOBS_URL")
"""Settings with which the store is outside of the API server's directory."""


def in_directory(api: Child) -> bool:
    """Return whether the whole store is in the API server's directory, so that it can be copied."""
    return not any(api.settings.get(name) for name in ELSEWHERE)


async def stores(api: Child, namespace: str) -> tuple[StoreContents, StoreContents] | None:
    """Return the store now and later; None if it is not all in its directory.

    Stops the API server while its files are copied. Raises AssertionError if the maintenance fails.
    """
    if not in_directory(api):
        return None
    data = Path(api.settings["CREWYARD_DATA"])
    # On the same file system, for the second names of blobs.
    copy = data.parent / "later"
    await asyncio.to_thread(shutil.rmtree, copy, True)
    api.stop()
    try:
        await asyncio.to_thread(_copy, data, copy)
    finally:
        api.cont()
    now = await asyncio.to_thread(read, copy, namespace)
    await asyncio.to_thread(_grow_old, api.tree, copy, namespace)
    return now, await asyncio.to_thread(read, copy, namespace)


def _copy(data: Path, to: Path) -> None:
    to.mkdir()
    with (
        closing(sqlite3.connect(data / "index.sqlite3", timeout=BUSY_SECONDS)) as index,
        closing(sqlite3.connect(to / "index.sqlite3")) as other,
    ):
        index.backup(other)
    for name, by in (("blobs", os.link), ("events", shutil.copy2), ("buildlogs", shutil.copy2)):
        # A blob is never written to again: a second name for it is enough.
        if (data / name).is_dir():
            shutil.copytree(data / name, to / name, copy_function=by)


def _grow_old(tree: Path, copy: Path, namespace: str) -> None:
    moment = (datetime.now(UTC) + PATIENCE).isoformat()
    done = subprocess.run(
        [sys.executable, "-P", str(LATER), str(copy), namespace, moment],
        cwd=tree, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"the store could not grow old:\n{done.stderr[-4000:]}"
