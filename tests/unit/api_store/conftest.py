"""A real store in a directory of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.store.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "data", "crews")
    yield opened
    await opened.close()
