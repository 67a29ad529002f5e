"""Simulated crash after the n-th effect: a commit, a blob written or deleted, a file deleted."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from api.store.store import Store


class PowerCut(BaseException):
    """The simulated crash of the process."""


class Cutter:
    """Counter of a store's effects that raises PowerCut after some number of them."""

    def __init__(self, after: int | None) -> None:
        self.seen = 0
        self._after = after

    def effect(self) -> None:
        """Count one effect."""
        self.seen += 1
        if self.seen == self._after:
            raise PowerCut

    def patch(self, store: Store, patched: pytest.MonkeyPatch) -> None:
        """Count the effects of a store from now on."""
        for database, name in ((store.database, "write"), (store.database, "locked")):
            if hasattr(database, name):
                patched.setattr(database, name, self._transaction(getattr(database, name)))
        for name in ("put", "delete"):
            patched.setattr(store.blobs, name, self._call(getattr(store.blobs, name)))
        unlink = Path.unlink

        def counted(path: Path, missing_ok: bool = False) -> None:
            unlink(path, missing_ok)
            self.effect()

        patched.setattr(Path, "unlink", counted)

    def _transaction(self, begin: Callable[..., Any]) -> Callable[..., Any]:
        @asynccontextmanager
        async def transaction(*arguments: Any) -> AsyncIterator[Any]:
            async with begin(*arguments) as connection:
                yield connection
            self.effect()

        return transaction

    def _call(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(*arguments: Any) -> Any:
            result = await call(*arguments)
            self.effect()
            return result

        return counted
