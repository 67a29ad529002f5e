"""From a key to the reconcile of its kind, with its metrics and its errors. Called by the queues' workers."""

import time
from collections.abc import Awaitable, Callable, Mapping

import structlog

from controller.observability.metrics import Metrics
from controller.runtime.errors import is_expected
from controller.runtime.workqueue import Key

LOG = structlog.get_logger("reconcile")
Reconcile = Callable[[str], Awaitable[None]]


class Reconciler:
    """Never raises: a failed reconcile is counted, logged, and done again by the queue."""

    def __init__(self, by_plural: Mapping[str, Reconcile], metrics: Metrics) -> None:
        self._by_plural = by_plural
        self._metrics = metrics

    async def handle(self, key: Key) -> bool:
        """One reconcile; whether it succeeded."""
        began = time.monotonic()
        try:
            await self._by_plural[key.plural](key.name)
        except Exception as error:
            self._failed(key, error)
            return False
        finally:
            self._metrics.seconds.labels(key.plural).observe(time.monotonic() - began)
        self._metrics.reconciles.labels(key.plural, "success").inc()
        return True

    def _failed(self, key: Key, error: Exception) -> None:
        expected = is_expected(error)
        self._metrics.reconciles.labels(key.plural, "retry" if expected else "error").inc()
        if expected:
            LOG.debug("reconcile again", kind=key.plural, name=key.name, why=str(error))
            return
        self._metrics.errors.labels(key.plural).inc()
        LOG.error("reconcile failed", kind=key.plural, name=key.name, error=str(error), exc_info=error)
