"""Worker: runs the reconcile of a key and records metrics and errors. Called by the work queues."""

import time
from collections.abc import Awaitable, Callable, Mapping

import structlog

from controller.observability.metrics import ControllerMetrics
from controller.runtime.errors import is_expected
from controller.runtime.workqueue import ReconcileKey

LOG = structlog.get_logger("reconcile")
Reconcile = Callable[[str], Awaitable[None]]


class Worker:
    """Dispatches keys to reconcilers. Never raises: it counts and logs failures; the queue retries."""

    def __init__(self, reconcilers: Mapping[str, Reconcile], metrics: ControllerMetrics) -> None:
        self._reconcilers = reconcilers
        self._metrics = metrics

    async def handle(self, key: ReconcileKey) -> bool:
        """Reconcile one key; return whether it succeeded."""
        began = time.monotonic()
        try:
            await self._reconcilers[key.plural](key.name)
        except Exception as error:
            self._record_failure(key, error)
            return False
        finally:
            self._metrics.seconds.labels(key.plural).observe(time.monotonic() - began)
        self._metrics.reconciles.labels(key.plural, "success").inc()
        return True

    def _record_failure(self, key: ReconcileKey, error: Exception) -> None:
        expected = is_expected(error)
        self._metrics.reconciles.labels(key.plural, "retry" if expected else "error").inc()
        if expected:
            LOG.debug("retrying reconcile", kind=key.plural, name=key.name, why=str(error))
            return
        self._metrics.errors.labels(key.plural).inc()
        LOG.error("reconcile failed", kind=key.plural, name=key.name, error=str(error), exc_info=error)
