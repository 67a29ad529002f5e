"""The asynchronous client. `python3 client/unasync.py` generates `crewyard.client` from it."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from io import StringIO
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from crewyard import calls, exchange, models, retry
from crewyard.call import Call, Page
from crewyard.errors import ApiError, ConnectionFailed, CrewyardError
from crewyard.settings import Settings, resolve
from crewyard.sse import SSEMessage, SSEReader

T = TypeVar("T")
Body = Callable[[], AsyncIterable[bytes]]


class AsyncClient:
    """Client of one Crewyard installation.

    Address and key come from the arguments, CREWYARD_URL and CREWYARD_API_KEY, or the file that `login`
    wrote. Calls raise the classes of `crewyard.errors`. Idempotent calls are retried with exponential
    back-off if the service is unavailable or sends Retry-After; `waiting` receives the error and the seconds
    before each retry. `timeout` is in seconds, for each wait.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = exchange.DEFAULT_TIMEOUT_SECONDS,
        settings: Settings | None = None,
        waiting: Callable[[CrewyardError, float], None] = exchange.ignore_wait,
    ) -> None:
        self.settings = settings or resolve(url, api_key)
        self._waiting = waiting
        try:
            self._http = httpx.AsyncClient(timeout=exchange.timeouts(timeout))
        except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
            raise exchange.wrong_environment(error) from error
        self.runs = AsyncRunCalls(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # Projects

    async def list_projects(self, page: int = 1, per_page: int = 100) -> Page[models.Project]:
        """List the projects that the key can read, newest first."""
        return await self._send(calls.list_projects(page, per_page))

    async def get_project(self, name: str) -> models.Project:
        """Return one project."""
        return await self._send(calls.get_project(name))

    async def create_project(self, name: str, **spec: Any) -> models.Project:
        """Create a project; `spec` has the fields of the API, such as `plan` and `source`."""
        return await self._send(calls.create_project(name, spec))

    async def change_project(self, name: str, **spec: Any) -> models.Project:
        """Change the fields in `spec`; None removes a field."""
        return await self._send(calls.change_project(name, spec))

    async def delete_project(self, name: str) -> None:
        """Delete a project with its deployments, runs and variables."""
        await self._send(calls.delete_project(name))

    async def list_variables(self, project: str, page: int = 1, per_page: int = 100) -> Page[models.Variable]:
        """List the names of a project's environment variables; the API never returns values."""
        return await self._send(calls.list_variables(project, page, per_page))

    async def replace_variables(self, project: str, variables: Mapping[str, str]) -> Page[models.Variable]:
        """Set exactly these variables and remove all others."""
        return await self._send(calls.replace_variables(project, variables))

    async def set_variable(self, project: str, name: str, value: str) -> models.Variable:
        """Set one variable; takes effect with the next run."""
        return await self._send(calls.set_variable(project, name, value))

    async def remove_variable(self, project: str, name: str) -> None:
        """Remove one variable."""
        await self._send(calls.remove_variable(project, name))

    async def list_schedules(self, project: str, page: int = 1, per_page: int = 100) -> Page[models.Schedule]:
        """List a project's schedules with their last and next time."""
        return await self._send(calls.list_schedules(project, page, per_page))

    async def set_schedule(self, project: str, name: str, cron: str, **spec: Any) -> models.Schedule:
        """Create or replace a schedule; `spec` has the fields of the API, such as `time_zone` and `input`."""
        return await self._send(calls.set_schedule(project, name, {"cron": cron, **spec}))

    async def remove_schedule(self, project: str, name: str) -> None:
        """Remove a schedule; its runs stay."""
        await self._send(calls.remove_schedule(project, name))

    async def list_deliveries(
        self, project: str, page: int = 1, per_page: int = 100
    ) -> Page[models.NotificationDelivery]:
        """List the deliveries of a project's notifications in the last seven days."""
        return await self._send(calls.list_deliveries(project, page, per_page))

    async def redeliver(self, project: str, delivery: str) -> models.NotificationDelivery:
        """Send a delivery again, with the same id."""
        return await self._send(calls.redeliver(project, delivery))

    async def get_usage(
        self, project: str, since: str | None = None, until: str | None = None
    ) -> models.Usage:
        """Return usage by day (UTC); `since` and `until` are dates such as 2026-11-01."""
        return await self._send(calls.get_usage(project, since, until))

    async def list_usage(
        self, since: str | None = None, until: str | None = None, page: int = 1, per_page: int = 100
    ) -> Page[models.ProjectUsage]:
        """List the projects with their usage; `since` and `until` are dates such as 2026-11-01."""
        return await self._send(calls.list_usage(since, until, page, per_page))

    # Deployments

    async def announce_upload(self, project: str, size: int, sha256: str | None = None) -> models.Upload:
        """Request a signed upload URL for an archive of `size` bytes."""
        return await self._send(calls.announce_upload(project, size, sha256))

    async def send_upload(self, upload: models.Upload, body: Body) -> None:
        """Send the archive to its signed URL; `body` returns a new iterator of the bytes for each attempt."""

        async def attempt() -> None:
            response = await self._http.request(
                upload["method"], upload["upload_url"], headers=upload["headers"], content=body()
            )
            exchange.check(response)

        await self._repeat(attempt)

    async def create_deployment(
        self, project: str, *, idempotency_key: str | None = None, **body: Any
    ) -> models.DeploymentCreated:
        """Deploy an upload (`build_context_url`) or a commit (`source={"git": {"commit": …}}`)."""
        return await self._send(calls.create_deployment({"project": project, **body}, idempotency_key))

    async def list_deployments(
        self, project: str, status: str | None = None, page: int = 1, per_page: int = 100
    ) -> Page[models.DeploymentItem]:
        """List a project's deployments, newest first."""
        return await self._send(calls.list_deployments(project, status, page, per_page))

    async def get_deployment(self, deployment: str, wait: int | None = None) -> models.Deployment:
        """Get a deployment; with `wait`, once its build has ended or after `wait` seconds (at most 60)."""
        return await self._send(calls.get_deployment(deployment, wait))

    async def roll_back(self, deployment: str) -> models.Deployment:
        """Make an earlier deployment the active one immediately, without a build."""
        return await self._send(calls.roll_back(deployment))

    async def get_inputs(self, deployment: str) -> models.DeploymentInputs:
        """Return the JSON Schema of the input of a deployment, and whether inputs must fit it."""
        return await self._send(calls.get_inputs(deployment))

    async def cancel_deployment(self, deployment: str) -> models.Deployment:
        """Request cancellation of a build; the active deployment stays active."""
        return await self._send(calls.cancel_deployment(deployment))

    async def follow_build_log(self, deployment: str) -> AsyncIterator[str]:
        """Yield the lines of a build log, with line ends, until the build finishes."""
        async for message in self._follow(calls.build_log_path(deployment), "", exchange.ends_build):
            if not exchange.ends_build(message):
                yield exchange.log_text(message)

    async def read_build_log(self, deployment: str) -> str:
        """Return the current text of a build log."""
        return await self._text(calls.build_log_path(deployment))

    def stream_build_log(self, deployment: str) -> AsyncIterator[str]:
        """Yield the current text of a build log in pieces of whole lines."""
        return self._pieces(calls.build_log_path(deployment))

    # Runs

    async def start_run(
        self,
        deployment: str,
        given: Mapping[str, Any] | None = None,
        *,
        entrypoint: str | None = None,
        timeout: str | None = None,
        idempotency_key: str | None = None,
        config: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        wait: int | None = None,
        labels: Mapping[str, str] | None = None,
        traceparent: str | None = None,
    ) -> models.RunCreated:
        """Start a run of a deployment (by id) or of a project's active one, with `given` as crew inputs.

        `config` and `context` are those of a LangGraph graph. With `wait`, return once the run has ended,
        with its outcome, or after `wait` seconds (at most 60). `traceparent` is the span of the caller (W3C
        Trace Context), the parent of the run's.
        """
        return await self._send(
            calls.start_run(
                deployment,
                given,
                entrypoint,
                timeout,
                idempotency_key,
                config,
                context,
                wait,
                labels,
                traceparent,
            )
        )

    async def list_runs(
        self,
        project: str | None = None,
        deployment: str | None = None,
        status: str | None = None,
        page: int = 1,
        per_page: int = 100,
        *,
        label: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
    ) -> Page[models.RunItem]:
        """List runs, newest first; `status` and `label` may name several, with commas."""
        return await self._send(
            calls.list_runs(project, deployment, status, page, per_page, label, created_after, created_before)
        )

    async def get_run(self, run: str, wait: int | None = None) -> models.Run:
        """Return one run, with its output or error once it has finished.

        With `wait`, return once it has ended, or after `wait` seconds (at most 60).
        """
        return await self._send(calls.get_run(run, wait))

    async def wait_run(self, run: str, timeout: float | None = None) -> models.Run:
        """Return a run once it has ended. Raises TimeoutError after `timeout` seconds (None: no limit)."""
        deadline, failures = exchange.deadline(timeout), 0
        while True:
            try:
                found = await self.get_run(run, exchange.next_wait(deadline))
            except (ApiError, ConnectionFailed) as failure:
                failures += 1
                exchange.keep_waiting(failure, failures, deadline)
                continue
            failures = 0
            if found["status"] in exchange.ENDED:
                return found
            if exchange.is_over(deadline):
                raise TimeoutError(
                    f"{run} has not ended after {timeout:g} s ({found['status']}); wait longer, or cancel it"
                )

    async def rerun(
        self,
        run: str,
        given: Mapping[str, Any] | None = None,
        deployment: str | None = None,
        idempotency_key: str | None = None,
        *,
        entrypoint: str | None = None,
    ) -> models.RunCreated:
        """Start a run like an earlier one; `given` replaces its crew inputs, the others what they name."""
        return await self._send(calls.rerun(run, given, deployment, idempotency_key, entrypoint))

    async def cancel_run(self, run: str) -> models.Run:
        """Request cancellation of a run."""
        return await self._send(calls.cancel_run(run))

    async def erase_run(self, run: str) -> None:
        """Erase an ended run: its object, record, events and artifacts."""
        await self._send(calls.erase_run(run))

    async def erase_deployment(self, deployment: str) -> None:
        """Erase a deployment that is neither active nor used by runs, with its image."""
        await self._send(calls.erase_deployment(deployment))

    async def answer_run(self, run: str, request: str, value: object) -> models.InputReceived:
        """Answer a question of a run: an id in its `input_requests`. The first answer counts."""
        return await self._send(calls.answer_run(run, request, value))

    async def follow_run(self, run: str, after: int = 0) -> AsyncIterator[models.Event]:
        """Yield the events of a run with an id above `after` as they arrive, each once, to the last one."""
        path = calls.events_path(run)
        async for message in self._follow(path, str(after) if after else "", exchange.is_last):
            yield exchange.event(message)

    async def list_events(self, run: str, page: int = 1, per_page: int = 100) -> Page[models.Event]:
        """List the stored events of a run, oldest first."""
        return await self._send(calls.list_events(run, page, per_page))

    async def read_run_log(self, run: str) -> str:
        """Return what a run printed and logged so far."""
        return await self._text(calls.run_log_path(run))

    def stream_run_log(self, run: str) -> AsyncIterator[str]:
        """Yield what a run printed and logged so far, in pieces of whole lines."""
        return self._pieces(calls.run_log_path(run))

    async def list_artifacts(self, run: str, page: int = 1, per_page: int = 100) -> Page[models.Artifact]:
        """List the files in a run's artifacts."""
        return await self._send(calls.list_artifacts(run, page, per_page))

    @asynccontextmanager
    async def open_artifact(self, run: str, name: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an artifact; yields an iterator of its bytes in chunks, valid inside the `with` block."""
        path = calls.artifact_path(run, name)
        async with self._open(path, "*/*", follow_redirects=True) as response:
            yield response.aiter_bytes(256 * 1024)

    # Keys

    async def list_keys(self, page: int = 1, per_page: int = 100) -> Page[models.Key]:
        """List the API keys, newest first."""
        return await self._send(calls.list_keys(page, per_page))

    async def create_key(self, name: str, scopes: list[models.Scope], **body: Any) -> models.KeyCreated:
        """Create an API key; only this response contains the key itself."""
        return await self._send(calls.create_key({"name": name, "scopes": scopes, **body}))

    async def revoke_key(self, key: str) -> None:
        """Revoke an API key and close the streams that it opened."""
        await self._send(calls.revoke_key(key))

    # Installation

    async def whoami(self) -> models.Whoami:
        """Return who the caller is, and its scopes."""
        return await self._send(calls.get_caller())

    async def get_installation(self) -> models.Installation:
        """Return whether the parts of the installation work, and what waits and runs."""
        return await self._send(calls.get_installation())

    # Audit

    async def list_audit(
        self,
        project: str | None = None,
        actor: str | None = None,
        since: str | None = None,
        until: str | None = None,
        page: int = 1,
        per_page: int = 100,
    ) -> Page[models.AuditRecord]:
        """List the changes made through the API, newest first; times such as 2026-11-21T10:00:00Z."""
        filters = calls.audit_query(project, actor, since, until)
        return await self._send(calls.list_audit(filters, page, per_page))

    async def export_audit(
        self,
        project: str | None = None,
        actor: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> AsyncIterator[str]:
        """Yield all records of the audit log, each a line of JSON, the oldest first."""
        filters, kind, rest = calls.audit_query(project, actor, since, until), "application/x-ndjson", b""
        async with self._open("/v1/audit", kind, params=filters) as response:
            exchange.check_type(response, kind)
            async for chunk in response.aiter_bytes():
                # Only LF ends a line: a path may contain other line separators of Unicode.
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield line.decode()
        if rest:
            raise ConnectionFailed(f"{self.settings.url} ended the audit log inside a record; try again")

    @asynccontextmanager
    async def _open(self, path: str, accept: str, **options: Any) -> AsyncIterator[httpx.Response]:
        url, headers = self.settings.url + path, exchange.headers(self.settings, accept)
        try:
            async with self._http.stream("GET", url, headers=headers, **options) as response:
                if not response.is_success:
                    await response.aread()
                    exchange.check(response)
                yield response
        except httpx.HTTPError as error:
            raise exchange.connection_failed(error, self.settings) from error

    async def _send(self, call: Call[T]) -> T:
        is_sent = False

        async def attempt() -> T:
            nonlocal is_sent
            was_sent, is_sent = is_sent, True
            try:
                response = await self._http.request(**exchange.arguments(self.settings, call))
            except exchange.NOT_SENT:
                is_sent = was_sent
                raise
            if response.status_code == 429:
                is_sent = was_sent  # The service refused it before it had an effect.
            return exchange.result(call, response, was_sent)

        return await self._repeat(attempt, call.repeatable)

    async def _text(self, path: str) -> str:
        whole = StringIO()
        async for piece in self._pieces(path):
            whole.write(piece)
        return whole.getvalue()

    async def _pieces(self, path: str) -> AsyncIterator[str]:
        """Yield a log, which only grows: after a lost connection what was not yielded before."""
        seen = failures = 0
        while True:
            position, rest = 0, ""
            try:
                async with self._open(path, "text/plain") as response:
                    exchange.check_type(response, "text/plain")
                    async for text in response.aiter_text():
                        lines, end, rest = (rest + text).rpartition("\n")
                        piece = (lines + end)[max(0, seen - position) :]
                        position += len(lines + end)
                        if piece:
                            seen, failures = position, 0
                            yield piece
                if rest:
                    yield rest
                return
            except (ApiError, ConnectionFailed) as failure:
                failures += 1
                seconds = exchange.retry_delay(failure, failures, True)
                self._waiting(failure, seconds)
                await asyncio.sleep(seconds)

    async def _repeat(self, attempt: Callable[[], Awaitable[T]], repeatable: bool = True) -> T:
        failures = 0
        while True:
            try:
                return await attempt()
            except httpx.HTTPError as error:
                failure: CrewyardError = exchange.connection_failed(error, self.settings)
            except (ApiError, ConnectionFailed) as error:
                failure = error
            failures += 1
            seconds = exchange.retry_delay(failure, failures, repeatable)
            self._waiting(failure, seconds)
            await asyncio.sleep(seconds)

    async def _follow(
        self, path: str, after: str, ends: Callable[[SSEMessage], bool]
    ) -> AsyncIterator[SSEMessage]:
        reader, policy = SSEReader(after), retry.ReconnectPolicy()
        while True:
            failure: CrewyardError = exchange.stream_closed(self.settings)
            try:
                async with self._http.stream(
                    "GET",
                    self.settings.url + path,
                    headers=exchange.stream_headers(self.settings, reader.last_id),
                    timeout=exchange.timeouts(exchange.STREAM_TIMEOUT_SECONDS),
                ) as response:
                    if not response.is_success:
                        await response.aread()
                        exchange.check(response)
                    if response.status_code == 204:
                        return
                    exchange.check_type(response, "text/event-stream")
                    policy.record_open()
                    reader.restart()
                    async for chunk in response.aiter_bytes():
                        for message in reader.feed(chunk):
                            policy.record_message()
                            yield message
                            if ends(message):
                                return
            except httpx.HTTPError as error:
                pause = policy.record_end(None, isinstance(error, httpx.TimeoutException))
                failure = exchange.connection_failed(error, self.settings)
                if policy.exhausted:
                    raise failure from error
            except ApiError as error:
                pause, failure = policy.record_end(error.retry_after), error
                if not error.passing or policy.exhausted:
                    raise
            else:
                pause = policy.record_end(None)
                if policy.exhausted:
                    raise failure
            self._waiting(failure, pause)
            await asyncio.sleep(pause)


class AsyncRunCalls:
    """Calls that follow one run to its end: `client.runs.wait` and `client.runs.follow`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def wait(self, run: str, timeout: float | None = None) -> models.Run:
        """Return a run once it has ended. Raises TimeoutError after `timeout` seconds (None: no limit)."""
        return await self._client.wait_run(run, timeout)

    def follow(self, run: str, after: int = 0) -> AsyncIterator[models.Event]:
        """Yield the events of a run with an id above `after` as they arrive, each once, to the last one."""
        return self._client.follow_run(run, after)
