"""The client whose calls are awaited. `crewyard.client` is made of it by `python3 client/unasync.py`."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from crewyard import calls, exchange, models, retry
from crewyard.call import Call, Page
from crewyard.errors import ApiError, ConnectionFailed, CrewyardError
from crewyard.settings import Settings, resolve
from crewyard.sse import Message, Reader

T = TypeVar("T")
Body = Callable[[], AsyncIterable[bytes]]


class AsyncClient:
    """Calls one Crewyard: of its arguments, CREWYARD_URL and CREWYARD_API_KEY, or what `login` kept.

    Every call raises `crewyard.errors`. What may be repeated without harm is repeated with growing pauses
    where the service is away or asks to come later; `waiting` is told why, and for how many
    seconds. `timeout` is in seconds, for each wait.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = exchange.SECONDS,
        settings: Settings | None = None,
        waiting: Callable[[CrewyardError, float], None] = exchange.nobody,
    ) -> None:
        self.settings = settings or resolve(url, api_key)
        self._waiting = waiting
        self._http = httpx.AsyncClient(timeout=exchange.limits(timeout))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connections."""
        await self._http.aclose()

    # Projects

    async def list_projects(self, page: int = 1, per_page: int = 100) -> Page[models.Project]:
        """The projects that the key may see, newest first."""
        return await self._send(calls.list_projects(page, per_page))

    async def get_project(self, name: str) -> models.Project:
        """One project."""
        return await self._send(calls.get_project(name))

    async def create_project(self, name: str, **spec: Any) -> models.Project:
        """Makes a project; `spec` are the fields of the API, such as `plan` and `source`."""
        return await self._send(calls.create_project(name, spec))

    async def change_project(self, name: str, **spec: Any) -> models.Project:
        """Changes the fields that are given; None removes one."""
        return await self._send(calls.change_project(name, spec))

    async def delete_project(self, name: str) -> None:
        """Removes a project with all that belongs to it."""
        await self._send(calls.delete_project(name))

    async def list_variables(self, project: str, page: int = 1, per_page: int = 100) -> Page[models.Variable]:
        """The names of a project's environment variables; values never come back."""
        return await self._send(calls.list_variables(project, page, per_page))

    async def replace_variables(self, project: str, variables: Mapping[str, str]) -> Page[models.Variable]:
        """Sets exactly these variables; all others go."""
        return await self._send(calls.replace_variables(project, variables))

    async def set_variable(self, project: str, name: str, value: str) -> models.Variable:
        """Sets one variable; it holds from the next run on."""
        return await self._send(calls.set_variable(project, name, value))

    async def remove_variable(self, project: str, name: str) -> None:
        """Removes one variable."""
        await self._send(calls.remove_variable(project, name))

    async def get_usage(
        self, project: str, since: str | None = None, until: str | None = None
    ) -> models.Usage:
        """Usage by day (UTC), from and to such as 2026-11-01."""
        return await self._send(calls.get_usage(project, since, until))

    # Deployments

    async def announce_upload(self, project: str, size: int, sha256: str | None = None) -> models.Upload:
        """Asks where to send an archive of that many bytes."""
        return await self._send(calls.announce_upload(project, size, sha256))

    async def send_upload(self, upload: models.Upload, body: Body) -> None:
        """Sends the archive to its signed address; `body` gives the bytes, anew for each try."""

        async def attempt() -> None:
            response = await self._http.request(
                upload["method"], upload["upload_url"], headers=upload["headers"], content=body()
            )
            exchange.check(response)

        await self._repeat(attempt)

    async def create_deployment(
        self, project: str, *, idempotency_key: str | None = None, **body: Any
    ) -> models.DeploymentCreated:
        """Deploys an upload (`build_context_url`) or a commit (`source={"git": {"commit": …}}`)."""
        return await self._send(calls.create_deployment({"project": project, **body}, idempotency_key))

    async def list_deployments(
        self, project: str, status: str | None = None, page: int = 1, per_page: int = 100
    ) -> Page[models.DeploymentItem]:
        """A project's deployments, newest first."""
        return await self._send(calls.list_deployments(project, status, page, per_page))

    async def get_deployment(self, deployment: str) -> models.Deployment:
        """One deployment."""
        return await self._send(calls.get_deployment(deployment))

    async def roll_back(self, deployment: str) -> models.Deployment:
        """Makes an earlier deployment the active one, at once."""
        return await self._send(calls.roll_back(deployment))

    async def follow_build_log(self, deployment: str) -> AsyncIterator[str]:
        """The text of a build log as it comes, line by line with their ends, to the build's end."""
        async for message in self._follow(calls.build_log_path(deployment), "", exchange.ends_build):
            if not exchange.ends_build(message):
                yield exchange.log_text(message)

    async def read_build_log(self, deployment: str) -> str:
        """A build log as it is now."""
        return await self._text(calls.build_log_path(deployment))

    # Runs

    async def start_run(
        self,
        deployment: str,
        given: Mapping[str, Any] | None = None,
        *,
        entrypoint: str | None = None,
        timeout: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.RunCreated:
        """Starts a run of a deployment's id or a project's active one, with `given` as the crew's inputs."""
        return await self._send(calls.start_run(deployment, given, entrypoint, timeout, idempotency_key))

    async def list_runs(
        self,
        project: str | None = None,
        deployment: str | None = None,
        status: str | None = None,
        page: int = 1,
        per_page: int = 100,
    ) -> Page[models.RunItem]:
        """Runs, newest first."""
        return await self._send(calls.list_runs(project, deployment, status, page, per_page))

    async def get_run(self, run: str) -> models.Run:
        """One run, with its output or error once it has ended."""
        return await self._send(calls.get_run(run))

    async def cancel_run(self, run: str) -> models.Run:
        """Asks a run to stop."""
        return await self._send(calls.cancel_run(run))

    async def follow_run(self, run: str, after: int = 0) -> AsyncIterator[models.Event]:
        """The events of a run with an id above `after`, as they come, each once, to the last one."""
        path = calls.events_path(run)
        async for message in self._follow(path, str(after) if after else "", exchange.is_last):
            yield exchange.event(message)

    async def list_events(self, run: str, page: int = 1, per_page: int = 100) -> Page[models.Event]:
        """The events of a run that are there, oldest first."""
        return await self._send(calls.list_events(run, page, per_page))

    async def read_run_log(self, run: str) -> str:
        """What a run printed and logged so far."""
        return await self._text(calls.run_log_path(run))

    async def list_artifacts(self, run: str, page: int = 1, per_page: int = 100) -> Page[models.Artifact]:
        """The files that a run left."""
        return await self._send(calls.list_artifacts(run, page, per_page))

    @asynccontextmanager
    async def open_artifact(self, run: str, name: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of an artifact, in chunks, while the block is open."""
        url = self.settings.url + calls.artifact_path(run, name)
        try:
            async with self._http.stream(
                "GET", url, headers=exchange.headers(self.settings, "*/*"), follow_redirects=True
            ) as response:
                if not response.is_success:
                    await response.aread()
                    exchange.check(response)
                yield response.aiter_bytes(256 * 1024)
        except httpx.HTTPError as error:
            raise exchange.trouble(error, self.settings) from error

    # Keys

    async def list_keys(self, page: int = 1, per_page: int = 100) -> Page[models.Key]:
        """The API keys, newest first."""
        return await self._send(calls.list_keys(page, per_page))

    async def create_key(self, name: str, scopes: list[models.Scope], **body: Any) -> models.KeyCreated:
        """Makes an API key; the answer has it, this once."""
        return await self._send(calls.create_key({"name": name, "scopes": scopes, **body}))

    async def revoke_key(self, key: str) -> None:
        """Ends an API key, and the streams that it opened."""
        await self._send(calls.revoke_key(key))

    async def _send(self, call: Call[T]) -> T:
        tries = 0

        async def attempt() -> T:
            nonlocal tries
            tries += 1
            response = await self._http.request(**exchange.arguments(self.settings, call))
            return exchange.result(call, response, tries > 1)

        return await self._repeat(attempt, call.repeatable)

    async def _text(self, path: str) -> str:
        async def attempt() -> str:
            response = await self._http.get(
                self.settings.url + path, headers=exchange.headers(self.settings, "text/plain")
            )
            exchange.check(response)
            exchange.check_text(response)
            return response.text

        return await self._repeat(attempt)

    async def _repeat(self, attempt: Callable[[], Awaitable[T]], repeatable: bool = True) -> T:
        failures = 0
        while True:
            try:
                return await attempt()
            except httpx.HTTPError as error:
                problem: CrewyardError = exchange.trouble(error, self.settings)
            except (ApiError, ConnectionFailed) as error:
                problem = error
            failures += 1
            seconds = exchange.wait(problem, failures, repeatable)
            self._waiting(problem, seconds)
            await asyncio.sleep(seconds)

    async def _follow(self, path: str, after: str, ends: Callable[[Message], bool]) -> AsyncIterator[Message]:
        reader, patience = Reader(after), retry.Patience()
        while True:
            problem: CrewyardError = exchange.closed(self.settings)
            try:
                async with self._http.stream(
                    "GET",
                    self.settings.url + path,
                    headers=exchange.stream_headers(self.settings, reader.last_id),
                    timeout=exchange.limits(exchange.SILENCE),
                ) as response:
                    if not response.is_success:
                        await response.aread()
                        exchange.check(response)
                    if response.status_code == 204:
                        return
                    exchange.check_stream(response)
                    patience.opened()
                    reader.restart()
                    async for chunk in response.aiter_bytes():
                        for message in reader.feed(chunk):
                            patience.heard()
                            yield message
                            if ends(message):
                                return
            except httpx.HTTPError as error:
                pause = patience.broken(None, isinstance(error, httpx.TimeoutException))
                problem = exchange.trouble(error, self.settings)
                if patience.exhausted:
                    raise problem from error
            except ApiError as error:
                pause, problem = patience.broken(error.retry_after), error
                if not error.passing or patience.exhausted:
                    raise
            else:
                pause = patience.broken(None)
                if patience.exhausted:
                    raise problem
            self._waiting(problem, pause)
            await asyncio.sleep(pause)
