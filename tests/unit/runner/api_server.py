"""A strict fake of the internal API for run pods (docs/protocol.md).

It rejects requests that the protocol does not allow with status 400, and records them in `violations`.
`tests/unit/api/internal/test_fake_run_api.py` compares its answers with those of the API.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from aiohttp import web
from aiohttp.typedefs import Handler

RUN, RUN_UID, POD_UID, TOKEN = "run-01abc", "uid-of-run", "uid-of-pod", "token-of-run"
WARM_POD, WARM_TOKEN = "warm-demo-0123", "token-of-warm-pod"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@dataclass
class StoredArtifact:
    size: int
    sha256: str
    content_type: str
    partial: bool
    body: bytes
    at: float


@dataclass
class FakeRunAPI:
    """State of the fake API, and the responses that a test configures."""

    entrypoint: str = "main:kickoff"
    input: dict[str, Any] = field(default_factory=dict)
    timeout: float = 600
    ask_seconds: float = 0
    limits: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)  # config and context of the run
    include: list[str] = field(default_factory=list)  # patterns of artifacts outside the directory
    claim_states: list[dict[str, Any] | int] = field(default_factory=list)  # responses to the first claims
    refuse_artifacts: dict[str, str] = field(default_factory=dict)
    break_artifacts: set[str] = field(default_factory=set)  # get 400, which the protocol does not define
    missing_first: list[dict[str, Any]] = field(default_factory=list)  # bodies of the first 425 responses
    lost_after: int | None = None  # respond 409 once this many events are stored
    poison: str = ""  # respond 422 to an event that contains this
    keep_no_events: bool = False  # like an API that lost acknowledged events: accepts no later ones
    keep_bodies: bool = True
    uploads_together: int = 0  # the first uploads wait until there are as many

    bound: asyncio.Event = field(default_factory=asyncio.Event)  # a pod that waits for a run gets one
    waits: int = 0
    wait_statuses: list[int] = field(default_factory=list)  # responses to the first waits

    answers: dict[str, Any] = field(default_factory=dict)  # by request id; others wait, for the test
    refuse_question: str = ""
    old: bool = False  # an API that knows no questions
    down: bool = False  # answers 503 to questions

    connections: dict[str, set[int]] = field(default_factory=dict)  # client ports, by last part of the path
    questions: dict[str, dict[str, Any]] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)
    polls: int = 0  # calls that wait for an answer
    idle_polls: int = 0  # that ended without one
    nonce: str = ""
    claims: int = 0
    granted_at: float = 0.0
    events: list[dict[str, Any]] = field(default_factory=list)
    batches: int = 0
    artifacts: dict[str, list[StoredArtifact]] = field(default_factory=dict)
    storing: int = 0
    together: asyncio.Event = field(default_factory=asyncio.Event)
    max_parallel: int = 0
    result: dict[str, Any] | None = None
    results: int = 0
    violations: list[str] = field(default_factory=list)
    url: str = ""
    _runner: web.AppRunner | None = None
    _port: int = 0

    async def start(self) -> None:
        app = web.Application(client_max_size=8 << 20, middlewares=[self._note_connection])
        base = f"/internal/v1/runs/{RUN}"
        app.router.add_post(f"{base}/claim", self._claim)
        app.router.add_post(f"{base}/events", self._events)
        app.router.add_put(base + r"/artifacts/{name:[\s\S]+}", self._artifact)
        app.router.add_post(f"{base}/result", self._result)
        app.router.add_post(f"/internal/v1/warm/{WARM_POD}/wait", self._wait)
        if not self.old:
            app.router.add_post(f"{base}/inputs", self._inputs)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None

    def logs(self, level: str | None = None) -> list[str]:
        return [
            event["data"]["message"]
            for event in self.events
            if event["type"] == "log" and level in (None, event["data"]["level"])
        ]

    @web.middleware
    async def _note_connection(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        assert request.transport is not None
        port = request.transport.get_extra_info("peername")[1]
        self.connections.setdefault(request.path.rpartition("/")[2], set()).add(port)
        return await handler(request)

    def _bad(self, message: str) -> web.Response:
        self.violations.append(message)
        return web.json_response({"error": message}, status=400)

    async def _json(self, request: web.Request) -> dict[str, Any]:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        assert request.content_type == "application/json"
        value = json.loads((await request.read()).decode("utf-8", "strict"), parse_constant=_no_constant)
        assert isinstance(value, dict)
        return value

    async def _wait(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {WARM_TOKEN}"
        body = await request.json()
        self.waits += 1
        if body != {"protocol": 1, "pod_uid": POD_UID, "wait_seconds": 20}:
            return self._bad(f"wait {body}")
        if self.wait_statuses:
            return web.json_response({"error": "configured by the test"}, status=self.wait_statuses.pop(0))
        try:
            async with asyncio.timeout(0.3):
                await self.bound.wait()
        except TimeoutError:
            return web.json_response({"state": "waiting"})
        return web.json_response({"state": "bound", "run": RUN, "run_uid": RUN_UID, "token": TOKEN})

    def _holder(self, body: dict[str, Any]) -> bool:
        return body.get("pod_uid") == POD_UID and body.get("nonce") == self.nonce != ""

    async def _claim(self, request: web.Request) -> web.Response:
        body = await self._json(request)
        self.claims += 1
        if set(body) != {"protocol", "run_uid", "pod_uid", "nonce"} or body["protocol"] != 1:
            return self._bad(f"claim {sorted(body)}")
        if (body["run_uid"], body["pod_uid"]) != (RUN_UID, POD_UID) or len(body["nonce"]) < 16:
            return self._bad("claim: wrong values")
        if self.nonce and body["nonce"] != self.nonce:
            return web.json_response({"state": "refused", "reason": "claimed by another"})
        self.nonce = body["nonce"]
        if self.claim_states:
            state = self.claim_states.pop(0)
            if isinstance(state, int):
                return web.json_response({"error": "configured by the test"}, status=state)
            return web.json_response(state)
        self.granted_at = time.monotonic()
        limits = {
            "event_bytes": 65536, "log_lines": 1_000_000, "artifacts": 1000, "artifact_bytes": 1 << 30,
            "output_bytes": 32768,
        }  # fmt: skip
        return web.json_response(
            {
                "state": "granted", "entrypoint": self.entrypoint, "framework": "python", "input": self.input,
                "timeout_seconds": self.timeout, "ask_seconds": self.ask_seconds, "deployment_id": "dep_1",
                "started_at": "2026-11-21T10:00:00Z",
                "limits": {**limits, **self.limits}, **self.settings,
                **({"artifacts": self.include} if self.include else {}),
            }
        )  # fmt: skip

    async def _events(self, request: web.Request) -> web.Response:
        raw = await request.read()
        body = await self._json(request)
        if not self._holder(body) or (self.lost_after is not None and len(self.events) >= self.lost_after):
            return web.json_response({"error": "not yours"}, status=409)
        self.batches += 1
        if self.keep_no_events:
            return web.json_response({"acknowledged": 0})
        events = body["events"]
        if not 0 < len(events) <= 500 or len(raw) > 1 << 20:
            return self._bad(f"a batch of {len(events)} events, {len(raw)} bytes")
        if self.poison and any(self.poison in json.dumps(event) for event in events):
            return web.json_response({"error": "poison"}, status=422)
        for event in events:
            if set(event) != {"seq", "type", "time", "data"} or not _TIME.fullmatch(event["time"]):
                return self._bad(f"event {event}")
            if len(json.dumps(event["data"], ensure_ascii=False).encode()) > 65536:
                return self._bad(f"event of {len(raw)} bytes")
            expected = len(self.events) + 1
            if event["seq"] > expected:
                return self._bad(f"event {event['seq']} follows {expected - 1}")
            if event["seq"] == expected:
                self.events.append(event)
        return web.json_response({"acknowledged": len(self.events)})

    async def _inputs(self, request: web.Request) -> web.Response:
        body = await self._json(request)
        if not self._holder(body):
            return web.json_response({"error": "not yours"}, status=409)
        identifier = body["request_id"]
        if body.get("done"):
            self.closed.append(identifier)
            return web.json_response({"state": "closed"})
        if self.down:
            return web.json_response({"error": "later"}, status=503)
        expiry = {"expires_at": "2026-11-22T10:00:00Z"}
        allowed = {"pod_uid", "nonce", "request_id", "prompt", "schema", "choices"}
        if (
            not set(body) <= allowed | {"timeout_seconds", "wait_seconds"}
            or not 0 <= body["wait_seconds"] <= 20
        ):
            return self._bad(f"question {sorted(body)}")
        if self.refuse_question:
            return web.json_response({"error": self.refuse_question}, status=422)
        question = self.questions.setdefault(
            identifier, {**body, "expires": time.monotonic() + body["timeout_seconds"]}
        )
        end = time.monotonic() + body["wait_seconds"]
        self.polls += body["wait_seconds"] > 0
        while identifier not in self.answers and not self.down:
            if time.monotonic() >= question["expires"]:
                return web.json_response({"state": "expired", **expiry})
            if time.monotonic() >= end:
                self.idle_polls += body["wait_seconds"] > 0
                return web.json_response({"state": "waiting", **expiry})
            await asyncio.sleep(0.01)
        if self.down:
            return web.json_response({"error": "later"}, status=503)
        answer = {"state": "answered", "value": self.answers[identifier], "by": "key_a"}
        return web.json_response({**answer, **expiry})

    async def _artifact(self, request: web.Request) -> web.Response:
        self.storing += 1
        self.max_parallel = max(self.max_parallel, self.storing)
        try:
            if self.storing >= self.uploads_together:
                self.together.set()
            async with asyncio.timeout(60):
                await self.together.wait()
            return await self._take(request)
        finally:
            self.storing -= 1

    async def _take(self, request: web.Request) -> web.Response:
        name = "/".join(unquote(part) for part in request.raw_path.split("/artifacts/", 1)[1].split("/"))
        headers = request.headers
        if not self._holder({"pod_uid": headers["X-Crewyard-Pod"], "nonce": headers["X-Crewyard-Nonce"]}):
            return web.json_response({"error": "not yours"}, status=409)
        if any(part in ("", ".", "..") for part in name.split("/")):
            return self._bad(f"artifact name {name!r}")
        if name in self.break_artifacts:
            return web.json_response({"error": "a fault"}, status=400)
        if name in self.refuse_artifacts:
            return web.json_response({"error": self.refuse_artifacts[name]}, status=422)
        digest, size, body = hashlib.sha256(), 0, b""
        try:
            async for chunk in request.content.iter_any():
                digest.update(chunk)
                size += len(chunk)
                body += chunk if self.keep_bodies else b""
        except (ConnectionError, asyncio.IncompleteReadError):
            return web.Response(status=400)
        if digest.hexdigest() != headers["X-Crewyard-Sha256"] or size != int(headers["Content-Length"]):
            return self._bad(f"artifact {name!r} differs from its digest")
        partial = {"true": True, "false": False}[headers["X-Crewyard-Partial"]]
        stored = StoredArtifact(
            size, digest.hexdigest(), headers["Content-Type"], partial, body, time.monotonic()
        )
        self.artifacts.setdefault(name, []).append(stored)
        return web.json_response({"name": name, "size": size, "sha256": stored.sha256})

    async def _result(self, request: web.Request) -> web.Response:
        body = await self._json(request)
        self.results += 1
        if not self._holder(body):
            return web.json_response({"error": "not yours"}, status=409)
        keys = {
            "pod_uid", "nonce", "outcome", "reason", "message", "duration_ms", "output", "output_artifact",
            "last_event", "artifacts",
        }  # fmt: skip
        if set(body) != keys or body["outcome"] not in ("succeeded", "failed", "stopped"):
            return self._bad(f"result {body}")
        if (body["outcome"] == "failed") != (body["reason"] is not None) or not isinstance(
            body["duration_ms"], int
        ):
            return self._bad(f"result {body}")
        if self.missing_first:
            return web.json_response({"error": "missing", "missing": self.missing_first.pop(0)}, status=425)
        latest = [versions[-1] for versions in self.artifacts.values()]
        counted = {"count": len(latest), "bytes": sum(version.size for version in latest)}
        if body["last_event"] != len(self.events) or body["artifacts"] != counted:
            self.violations.append(
                f"result {body['last_event']} {body['artifacts']} is {len(self.events)} {counted}"
            )
            missing: dict[str, Any] = {}
            if body["last_event"] > len(self.events):
                missing["events"] = {"stored": len(self.events), "expected": body["last_event"]}
            if body["artifacts"]["count"] > counted["count"]:
                missing["artifacts"] = {
                    "stored": counted["count"],
                    "expected": body["artifacts"]["count"],
                }
            return web.json_response({"error": "missing", "missing": missing}, status=425)
        self.result = body
        return web.json_response({})


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
