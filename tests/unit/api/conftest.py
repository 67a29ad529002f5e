"""The client API over a real store in a temporary directory, without an apiserver."""

import contextlib
import functools
import itertools
import shutil
import socket
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web_app
from aiohttp.test_utils import TestClient, TestServer

from api import app
from api.auth.api_keys import StoredKey
from api.config import parse
from api.ratelimit import counters
from api.ratelimit.fixed_window import FixedWindows
from api.services import SERVICES
from api.store.backend import INDEX
from api.store.index.api_keys import KeyRow
from api.store.index.claims.claims import ClaimRequest
from api.store.index.runs.input_requests import Question
from api.store.logs.event_log import NewEvent
from api.store.sql.migrate import migrate
from api.store.sql.schema import deliveries
from api.store.store import Store
from api.v1 import path_parameters
from api.v1.projects.schema import SPEC_EXAMPLE
from crds import api_keys, objects
from crds.times import format_second
from tests.testbed.apiserver import plain_client
from tests.unit.api.auth.issuer import Issuer, wait_patiently
from tests.unit.api.described import DESCRIPTION
from tests.unit.api.timeouts import raise_timeouts

NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
_uids = itertools.count(1)


@pytest.fixture(autouse=True)
def patient_timeouts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the timeouts of the store, unless the test is about them."""
    if "product_timeouts" not in request.fixturenames:
        raise_timeouts(monkeypatch)


@pytest.fixture
def product_timeouts() -> None:
    """Keep the timeouts as the product has them."""


@pytest.fixture
def stopped_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the minute of the rate limits not pass: a busy machine may need longer for a test's requests."""
    now = time.time()
    monkeypatch.setattr(counters, "FixedWindows", functools.partial(FixedWindows, lambda: now))


def key(*scopes: str, projects: list[str] | None = None, plan: str = "enterprise", **more: Any):
    """Return the text and the stored record of a new key."""
    drawn = api_keys.generate()
    held = None if projects is None else frozenset(projects)
    return drawn.text, StoredKey(drawn.key_id, drawn.hash, "test", frozenset(scopes), held, plan, **more)


class ApiTestbed:
    """A client API under test and the contents of its store."""

    def __init__(
        self, client: TestClient, store: Store, admin: str, ring: dict[str, StoredKey], clock: list
    ) -> None:
        self.client, self.store, self.admin, self._ring, self.clock = client, store, admin, ring, clock

    def create_key(self, *scopes: str, **more: Any) -> str:
        """Add a key with these scopes; return its text."""
        text, record = key(*scopes, **more)
        self._ring[record.key_id] = record
        return text

    async def call(self, method: str, path: str, body: Any = None, *, bearer: str | None = None, **more: Any):
        """Call the API, by default with an admin key; return status, JSON body (or bytes) and headers."""
        headers = dict(more.pop("headers", {}))
        token = self.admin if bearer is None else bearer
        if token:
            headers["Authorization"] = f"Bearer {token}"
        async with self.client.request(method, path, json=body, headers=headers, **more) as answer:
            raw = await answer.read()
            DESCRIPTION.check(method, answer.url.raw_path, answer.status, answer.headers, raw)
            found = await answer.json() if answer.content_type == "application/json" and raw else raw
            return answer.status, found, answer.headers

    async def get(self, path: str, **more: Any) -> Any:
        """Return the body of a successful GET."""
        status, found, _ = await self.call("GET", path, **more)
        assert status == 200, found
        return found

    def reset_rate_limits(self) -> None:
        """Forget all counted requests."""
        self.client.server.app[SERVICES].limiter.__init__()

    async def add_example_objects(self, renamed: Callable[[str], str] = str) -> None:
        """Add the objects of the OpenAPI examples: project, deployment, finished run, artifact, delivery."""
        names = {part: renamed(value) for part, value in path_parameters.EXAMPLES.items()}
        deployment, run = (names[kind].replace("_", "-", 1) for kind in ("deployments", "runs"))
        await self.add_project(names["name"], SPEC_EXAMPLE, activeDeployment=deployment)
        await self.add_deployment(deployment, names["name"])
        held = frozenset({names["name"]})
        await self.store.keys.put(
            KeyRow(names["api-keys"], "0" * 64, "CI", frozenset({"run"}), held, None, self.clock[0])
        )
        raw = await self.add_run(run, names["name"], deployment)
        await self.claim_run(raw)
        now = self.clock[0]
        question = Question(names["request_id"], "Go on?", None, None)
        await self.store.input_requests.open(run, question, now, now + timedelta(hours=1))
        await self.append_log_lines(run, "Reading about tides")
        await self.add_artifact(run, names["artifact"], b"# Tides")
        await self.add_delivery(names["deliveries"], names["name"], run)
        await self.finish_run(raw, "Succeeded", result={"output": "{}"}, durationMs=5)

    async def add_delivery(self, identity: str, project: str, run: str) -> None:
        """Store a pending delivery of a run's end to the receiver chat."""
        row = await self.store.projects.get(project)
        assert row is not None
        now = self.clock[0]
        values = {"namespace": "crews", "id": identity, "project": project, "project_uid": row.uid}
        values |= {"notification": "chat", "type": "run.failed", "object": run, "event_time": now}
        values |= {"created_at": now, "status": "pending", "attempts": 0, "next_at": now, "expires_at": now}
        async with self.store.database.write() as connection:
            await connection.execute(deliveries.insert().values(values))

    async def add_artifact(
        self, run: str, name: str, content: bytes, partial: bool = False, content_type: str = "text/markdown"
    ) -> None:
        """Store an artifact as uploaded by the pod."""

        async def chunks() -> AsyncIterator[bytes]:
            yield content

        blob = f"runs/{run}/{name}"
        stored = await self.store.blobs.put(blob, chunks(), len(content), None)
        await self.store.artifacts.put(
            run, name, len(content), stored.sha256, content_type, partial, blob, self.clock[0]
        )

    async def call_example(self, method: str, path: str, **more: Any) -> Any:
        """Call an operation with the examples of the OpenAPI document."""
        found = DESCRIPTION.operation(method, path)
        assert found is not None
        query = {p["name"]: p["example"] for p in found.get("parameters", ()) if "example" in p}
        for parameter in DESCRIPTION.whole["paths"][path].get("parameters", ()):
            path = path.replace("{" + parameter["name"] + "}", parameter["example"])
        content = found.get("requestBody", {}).get("content", {}).get("application/json", {})
        return await self.call(method, path, content.get("example"), params=query, **more)

    async def add_project(self, name: str, spec: Any = None, **status: Any) -> str:
        """Project a Project object; return its uid."""
        raw = _object(name, spec or {}, status)
        await self.store.projects.observe(objects.Project(raw))
        return raw["metadata"]["uid"]

    async def update_spec(self, name: str, **more: Any) -> None:
        """Change the spec of a Project."""
        row = await self.store.projects.get(name)
        assert row is not None
        raw = _object(name, {**row.spec, **more}, dict(row.status))
        raw["metadata"]["uid"] = row.uid
        await self.store.projects.observe(objects.Project(raw))

    async def change_project(self, name: str, **status: Any) -> None:
        """Change the status of a Project."""
        row = await self.store.projects.get(name)
        assert row is not None
        raw = _object(name, row.spec, {**row.status, **status})
        raw["metadata"]["uid"] = row.uid
        await self.store.projects.observe(objects.Project(raw))

    async def add_deployment(
        self, name: str, project: str, phase: str = "Active", spec: Any = None, **status: Any
    ) -> dict[str, Any]:
        """Project a Deployment object; return it."""
        built = phase in ("Active", "Superseded")
        whole = {"phase": phase, **({"image": "r/x@sha256:0"} if built else {}), **status}
        if built:
            whole["conditions"] = [{"type": "Built", "status": "True", "reason": "Built", "message": ""}]
        fields = {"project": project, "source": {"archive": {"upload": "upl_1"}}, **(spec or {})}
        raw = _object(name, fields, whole)
        await self.store.deployments.observe(objects.Deployment(raw))
        return raw

    async def change_deployment(self, raw: dict[str, Any], **status: Any) -> None:
        """Change the status of a deployment."""
        raw["metadata"]["resourceVersion"] = str(int(raw["metadata"]["resourceVersion"]) + 1000)
        raw["status"] |= status
        await self.store.deployments.observe(objects.Deployment(raw))

    async def add_run(
        self,
        name: str,
        project: str,
        deployment: str = "dep-a",
        phase: str = "Pending",
        spec: Any = None,
        **status: Any,
    ):
        """Project a Run object; return it."""
        raw = _object(
            name,
            {"project": project, "deployment": deployment, "input": {"topic": "tides"}, **(spec or {})},
            {"phase": phase, "project": project, "deployment": deployment, **status},
        )
        await self.store.run_writer.observe(objects.Run(raw), self.clock[0])
        return raw

    async def claim_run(self, raw: Any) -> None:
        """Claim the run as a pod."""
        name, uid = raw["metadata"]["name"], raw["metadata"]["uid"]
        answer = {"deployment_id": "dep_a"}
        await self.store.claims.grant(name, ClaimRequest(uid, "pod", "nonce"), answer, self.clock[0])
        self.store.events.notify_state_changed(name)

    async def append_log_lines(self, run: str, *lines: str) -> None:
        """Append log events as the pod does."""
        data = [
            {
                "run_id": run.replace("-", "_", 1),
                "timestamp": "2026-11-21T10:00:01Z",
                "message": line,
                "level": "info",
            }
            for line in lines
        ]
        async with self.store.events.open_writer(run) as log:
            last = log.seq
            await log.append([NewEvent(last + n, "log", d) for n, d in enumerate(data, 1)])
        self.store.events.notify_appended(run)

    async def finish_run(self, raw: Any, phase: str, **status: Any) -> None:
        """Finish the run."""
        raw["metadata"]["resourceVersion"] = str(int(raw["metadata"]["resourceVersion"]) + 1000)
        raw["status"] |= {"phase": phase, "completionTime": format_second(self.clock[0]), **status}
        await self.store.run_writer.observe(objects.Run(raw), self.clock[0])


def _object(name: str, spec: Any, status: Any) -> dict[str, Any]:
    number = next(_uids)
    return {
        "metadata": {
            "name": name,
            "namespace": "crews",
            "uid": f"uid-{number}",
            "resourceVersion": str(number),
            "creationTimestamp": format_second(NOW + timedelta(seconds=number)),
        },
        "spec": spec,
        "status": status,
    }


@pytest.fixture
def clock() -> list[datetime]:
    """The clock of the API, in a mutable list."""
    return [NOW]


@pytest.fixture(scope="session")
def empty(tmp_path_factory) -> Path:
    """An index without rows, created once: its migrations take longer than a test."""
    directory = tmp_path_factory.mktemp("empty")
    migrate(directory / INDEX)
    return directory / INDEX


@pytest.fixture
async def store(tmp_path: Path, empty: Path) -> AsyncIterator[Store]:
    """An open store without rows, on SQLite."""
    (tmp_path / "data").mkdir()
    shutil.copy(empty, tmp_path / "data" / INDEX)
    opened = await Store.open(tmp_path / "data", "crews")
    yield opened
    await opened.close()


@pytest.fixture
async def issuer(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Issuer]:
    """An issuer of workflow tokens."""
    wait_patiently(monkeypatch)
    made = Issuer()
    await made.start()
    yield made
    await made.server.close()


@pytest.fixture
def settings() -> dict[str, str]:
    """Additional settings; a test module overrides this fixture."""
    return {}


@pytest.fixture
async def testbed(tmp_path, clock, empty, settings) -> AsyncIterator[ApiTestbed]:
    async with open_testbed(tmp_path, clock, empty, settings) as opened:
        yield opened


@contextlib.asynccontextmanager
async def open_testbed(
    directory: Path, clock: list[datetime], empty: Path, settings: dict[str, str]
) -> AsyncIterator[ApiTestbed]:
    """Run the client API in this process, with its store in a directory."""
    config = parse(
        {
            "CREWYARD_TOKEN_KEY": "0123456789abcdef0123456789abcdef",
            "CREWYARD_DATA": str(directory),
            "CREWYARD_PUBLIC_URL": "http://crewyard.example",
            **settings,
        }
    )
    shutil.copy(empty, directory / INDEX)
    store = await Store.open(directory, config.namespace)
    # Bound, not listening, until the end of the test: refuses connections, and no other server gets the port.
    no_server = socket.socket()
    no_server.bind(("127.0.0.1", 0))
    connection = plain_client(f"http://127.0.0.1:{no_server.getsockname()[1]}", config.namespace)
    text, record = key("admin")
    ring = {record.key_id: record}
    application = app.make_client_app(config, store, connection, ring, lambda: clock[0])
    port = urlsplit(config.public_url).port
    async with TestClient(TestServer(application, port=port)) as client:
        yield ApiTestbed(client, store, text, ring, clock)
    await connection.close()
    await store.close()
    no_server.close()
    # aiohttp's cache of handlers would keep the applications of hundreds of tests.
    web_app._cached_build_middleware.cache_clear()
