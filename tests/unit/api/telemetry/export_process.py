"""A process that exports what is due: `python -m … DIRECTORY ENDPOINT [DATABASE_URL]`. Killed by tests."""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from api.outbound.guarded_post import GuardedPoster
from api.store.store import Store
from api.telemetry.exporter import TraceExporter
from api.telemetry.settings import parse_telemetry
from egress.addresses import AddressRules
from tests.unit.api.timeouts import raise_timeouts


async def export(directory: str, endpoint: str, database_url: str | None) -> None:
    """Make the exports that are due."""
    store = await Store.open(Path(directory), "crews", database_url)
    settings = parse_telemetry(endpoint, "", "")
    assert settings is not None
    poster = GuardedPoster(AddressRules.parse(["127.0.0.2/32"], []), timeout=600.0)
    await TraceExporter(store, settings, poster).export_due(datetime.now(UTC))
    await store.close()


if __name__ == "__main__":
    raise_timeouts(pytest.MonkeyPatch())
    asyncio.run(export(sys.argv[1], sys.argv[2], sys.argv[3] if sys.argv[3:] else None))
