"""Delivers notifications to their receivers. Started by `api.maintenance.loops` in the leader.

The rows are the outbox: an attempt that is not recorded, since the process ended, is made again.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import structlog

from api.config import ApiConfig
from api.notifications.attempt import Attempt, decide
from api.notifications.message import SigningSecretInvalid, body, headers, signing_secret
from api.notifications.sender import WebhookSender
from api.store.errors import StoreUnavailable
from api.store.index.notifications.deliveries import DeliveryRow
from api.store.index.projects import ProjectRow
from api.store.store import Store
from api.v1.deployments import view as deployment_view
from api.v1.runs import view as run_view
from crds.kinds import SECRET
from crds.secrets.use import credential_problem, notification_reference
from egress.addresses import AddressRules
from kube.client import KubeClient
from kube.errors import KubeError

log = structlog.get_logger()

MAX_PARALLEL_DELIVERIES, MAX_PARALLEL_PER_PROJECT = 16, 4
POLL_SECONDS = 2.0
BUSY_SECONDS = 0.2
"""Pause between two looks for due deliveries while some are sent; bounds their rate."""
PURGE_INTERVAL_SECONDS = 60.0
OBJECT_TIMEOUT_SECONDS = 300.0
"""How long an event may be known before its object is."""
OnAttempt = Callable[[str], None]
"""Called with the status of a delivery after each attempt."""


async def deliver_all(
    store: Store, kube: KubeClient, config: ApiConfig, on_attempt: OnAttempt = lambda status: None
) -> None:
    """Deliver what is due until cancelled."""
    sender = WebhookSender(AddressRules.parse(config.net_allow, config.net_deny))
    try:
        await Dispatcher(store, kube, config, sender, on_attempt).run()
    finally:
        sender.close()


class Dispatcher:
    """Makes attempts, several at a time; no project takes all places."""

    def __init__(
        self,
        store: Store,
        kube: KubeClient,
        config: ApiConfig,
        sender: WebhookSender,
        on_attempt: OnAttempt = lambda status: None,
    ) -> None:
        self._store, self._kube, self._config = store, kube, config
        self._sender, self._on_attempt = sender, on_attempt
        self._sending: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Deliver what is due until cancelled, and delete old deliveries."""
        loop = asyncio.get_running_loop()
        purge_at = loop.time()
        try:
            while True:
                if loop.time() >= purge_at:
                    more = await self._store.deliveries.purge(datetime.now(UTC))
                    await self._store.deliveries.measure()
                    purge_at = loop.time() + (BUSY_SECONDS if more else PURGE_INTERVAL_SECONDS)
                await self.start_due(datetime.now(UTC))
                if self._sending:
                    await asyncio.wait(
                        self._sending.values(), timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED
                    )
                await asyncio.sleep(BUSY_SECONDS if self._sending else POLL_SECONDS)
        finally:
            tasks = list(self._sending.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def start_due(self, now: datetime) -> int:
        """Start attempts in the free places and return their number."""
        self._sending = {key: task for key, task in self._sending.items() if not task.done()}
        free = MAX_PARALLEL_DELIVERIES - len(self._sending)
        if not free:
            return 0
        # Those that are being sent are due too, and keep the places of their projects.
        due = await self._store.deliveries.due(now, MAX_PARALLEL_PER_PROJECT, 2 * MAX_PARALLEL_DELIVERIES)
        chosen = [row for row in due if row.id not in self._sending][:free]
        for row in chosen:
            self._sending[row.id] = asyncio.create_task(self._deliver(row), name=row.id)
        return len(chosen)

    async def _deliver(self, row: DeliveryRow) -> None:
        try:
            attempt = await self._attempt_safely(row)
            change = decide(row, attempt, datetime.now(UTC), random.random())
            await self._store.deliveries.record_attempt(row, change)
        except StoreUnavailable as error:
            log.warning("notification not recorded, it is sent again", delivery=row.id, error=str(error))
            return
        self._on_attempt(change.status)
        if attempt.error is not None:
            log.info("notification not delivered", delivery=row.id, error=attempt.error)

    async def _attempt_safely(self, row: DeliveryRow) -> Attempt:
        try:
            return await self._attempt(row, datetime.now(UTC))
        except StoreUnavailable:
            raise
        except Exception:
            # Without back-off, one delivery that fails here would be repeated without pause or end.
            log.exception("notification not sent", delivery=row.id)
            return Attempt(error="internal error; the log of the API server has the details")

    async def _attempt(self, row: DeliveryRow, now: datetime) -> Attempt:
        project = await self._store.projects.get(row.project)
        notification = _find(project, row)
        if project is None or notification is None:
            return Attempt(error=f"the project has no notification {row.notification} any more", final=True)
        data = await self._data(row, now)
        if data is None:
            late = (now - row.event_time).total_seconds() > OBJECT_TIMEOUT_SECONDS
            return Attempt(error=f"{row.object} does not exist any more", final=late)
        reference = notification_reference(notification)
        if reference is None:
            return Attempt(error="the notification has no secretRef; set it")
        try:
            secret = await self._kube.at(project.object_namespace).get(SECRET, reference.name)
        except KubeError as error:
            return Attempt(error=f"the Secret {reference.name} cannot be read: {type(error).__name__}")
        use = self._config.secret_use
        if problem := credential_problem(secret, reference, project.as_object(), use):
            return Attempt(error=problem)
        try:
            key = signing_secret(secret, reference.name)
        except SigningSecretInvalid as error:
            return Attempt(error=str(error))
        content = body(row, data)
        signed = headers(key, row, content, now)
        return await self._sender.send(str(notification["url"]), content, signed, row.project_uid)

    async def _data(self, row: DeliveryRow, now: datetime) -> dict[str, Any] | None:
        """Return the object as GET shows it; None if it does not exist."""
        url, docs_url = self._config.public_url, self._config.docs_url
        if row.type.startswith("deployment."):
            deployment = await self._store.deployments.get(row.object)
            return None if deployment is None else deployment_view.detail(deployment, url, docs_url=docs_url)
        run = await self._store.runs.get(row.object)
        if run is None:
            return None
        questions = await self._store.input_requests.open_of(run, now)
        prices = self._config.prices
        return run_view.detail(run, url, prices, docs_url=docs_url, questions=questions)


def _find(project: ProjectRow | None, row: DeliveryRow) -> Mapping[str, Any] | None:
    if project is None or project.uid != row.project_uid:
        return None
    notifications = project.spec.get("notifications") or ()
    return next((each for each in notifications if each["name"] == row.notification), None)
