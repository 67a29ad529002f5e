"""A small, strict fake of the API calls that the actions make (docs/api.md).

It rejects what the API would reject, records every request, and injects faults: `faults` has, for each call,
the faults of its next requests. Requests and answers are compared with the API's OpenAPI document;
`undescribed` has the differences, and the fixture fails for one.
"""

import asyncio
import hashlib
import json
from collections import defaultdict, deque
from typing import Any

from aiohttp import web

from api.v1.artifacts import schema as artifact_schema
from api.v1.deployments import schema as deployment_schema
from api.v1.projects import schema as project_schema
from api.v1.runs import schema as run_schema
from tests.unit.api.described import DESCRIPTION

KEY = "crw_test_0123456789abcdef"
REQUEST_TOKEN = "request-token"
RATE_LIMITS = {"X-RateLimit-Limit": "600", "X-RateLimit-Remaining": "599", "X-RateLimit-Reset": "1795255260"}
PROXY_STATUSES = (302, 502)
"""Answers that tests configure in place of the API's; a proxy gives them."""


class ConnectionCut(Exception):
    """The connection ends here."""


class FakeService:
    """State of the fake service."""

    def __init__(self) -> None:
        self.keys = {KEY}
        self.projects: dict[str, Any] = {"research": {"name": "research", "source": None}}
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.faults: dict[str, deque[Any]] = defaultdict(deque)
        self.uploads: dict[str, bytes] = {}
        self.announced: dict[str, Any] = {}
        self.created: dict[str, tuple[bytes, Any]] = {}
        self.log: list[str] = ["step 1", "step 2"]
        self.deployments: dict[str, Any] = {}
        self.build: dict[str, Any] = {"status": "active", "activated_at": "2026-11-21T10:00:00Z"}
        self.events: list[tuple[str, Any]] = []
        self.end: dict[str, Any] = {"status": "succeeded", "output": {"n": 1}, "duration_ms": 1200}
        self.files: dict[str, bytes] = {}
        self.overridden_files: dict[str, bytes] = {}
        self.cut_after: deque[int] = deque()
        self.silent = False
        self.canceled = asyncio.Event()
        self.max_upload = 1 << 20
        self.tokens = 0
        self.url = ""
        self.undescribed: list[str] = []
        self.malformed_events = False

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._observe], client_max_size=1 << 24)
        app.router.add_get("/v1/projects/{name}", self.project)
        app.router.add_post("/v1/uploads", self.announce)
        app.router.add_put("/v1/uploads/{id}/content", self.receive)
        app.router.add_post("/v1/deployments", self.deploy)
        app.router.add_get("/v1/deployments/{id}", self.deployment)
        app.router.add_get("/v1/deployments/{id}/logs", self.build_log)
        app.router.add_post("/v1/runs", self.start)
        app.router.add_get("/v1/runs/{id}", self.run)
        app.router.add_post("/v1/runs/{id}/cancel", self.cancel)
        app.router.add_get("/v1/runs/{id}/events", self.follow)
        app.router.add_get("/v1/runs/{id}/artifacts", self.artifacts)
        app.router.add_get("/v1/runs/{id}/artifacts/{name:.+}", self.artifact)
        app.router.add_get("/token", self.token)
        return app

    @web.middleware
    async def _observe(self, request: web.Request, handler: Any) -> web.StreamResponse:
        body = await request.read()
        self.requests.append((request.method, request.path_qs, dict(request.headers), body))
        call = f"{request.method} {request.match_info.route.resource.canonical}"
        fault = self.faults[call].popleft() if self.faults[call] else None
        if fault == "cut":
            request.transport.abort()
            return web.Response()
        response = fault if isinstance(fault, web.Response) else await self._respond(request, handler)
        if fault == "after":  # processed, but the response is lost
            request.transport.abort()
        if request.path != "/token" and response.status not in PROXY_STATUSES:
            self._check(request, body, response)
        return response

    async def _respond(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if not request.path.endswith("/content") and request.path != "/token":
            if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.keys:
                return error(401, "unauthorized", "no valid API key")
        elif "Authorization" in request.headers and request.path != "/token":
            return error(400, "invalid_request", "a signed address got a key")
        if request.method == "POST" and request.content_type != "application/json":
            return error(415, "unsupported_media_type", "Content-Type must be application/json")
        return await handler(request)

    def _check(self, request: web.Request, body: bytes, response: web.StreamResponse) -> None:
        """Record what the OpenAPI document does not describe."""
        if not response.prepared:
            response.headers.update({**RATE_LIMITS, "X-Request-Id": "req_1"})
        content = response.body if isinstance(response, web.Response) else None
        method, path = request.method, request.raw_path.partition("?")[0]
        described = DESCRIPTION.operation(method, path) or {}
        schema = described.get("requestBody", {}).get("content", {}).get("application/json")
        try:
            if schema is not None and response.status < 400:
                DESCRIPTION.check_schema(schema["schema"], json.loads(body), f"request {method} {path}")
            DESCRIPTION.check(method, path, response.status, response.headers, content)
        except AssertionError as difference:
            self.undescribed.append(str(difference))

    async def project(self, request: web.Request) -> web.Response:
        found = self.projects.get(request.match_info["name"])
        if found is None:
            return error(404, "not_found", "the project does not exist")
        return data_response({**project_schema.EXAMPLE, **found})

    async def announce(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body["size"] > self.max_upload:
            return error(413, "payload_too_large", f"an archive can have at most {self.max_upload} bytes")
        upload = f"upl_{len(self.announced)}"
        self.announced[upload] = body
        address = f"{self.url}/v1/uploads/{upload}/content"
        return data_response(
            {
                "id": upload,
                "upload_url": f"{address}?token=signed",
                "build_context_url": address,
                "method": "PUT",
                "headers": {"Content-Type": "application/octet-stream"},
                "expires_at": "2026-11-21T11:00:00Z",
            },
            201,
            {"Location": f"/v1/uploads/{upload}"},
        )

    async def receive(self, request: web.Request) -> web.Response:
        raw, upload = await request.read(), request.match_info["id"]
        announced = self.announced[upload]
        assert request.query["token"] == "signed"
        assert request.headers["Content-Length"] == str(announced["size"]) == str(len(raw))
        assert hashlib.sha256(raw).hexdigest() == announced["sha256"]
        self.uploads[upload] = raw
        return data_response({"id": upload, "size": len(raw), "sha256": announced["sha256"]})

    def _idempotent(self, request: web.Request, raw: bytes, make: Any) -> Any:
        key = request.headers["Idempotency-Key"]
        assert 1 <= len(key) <= 255 and key.isascii() and " " not in key
        first, created = self.created.setdefault(key, (raw, make()))
        assert first == raw, "the key was used for another body"
        return created

    async def deploy(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert ("source" in body) != ("build_context_url" in body)
        if "source" not in body:
            if self.projects.get(body["project"], {}).get("source"):
                return error(409, "conflict", "the project follows a git repository")
            assert body["build_context_url"].split("/")[-2] in self.uploads
        self.deployed = body
        created = self._idempotent(request, await request.read(), lambda: f"dep_a{len(self.created)}")
        shown = {"id": created, "project": body["project"], "status": "building", "message": ""}
        place = {"Location": f"/v1/deployments/{created}"}
        return data_response({**deployment_schema.CREATED_EXAMPLE, **shown}, 201, place)

    async def deployment(self, request: web.Request) -> web.Response:
        wanted = request.match_info["id"]
        shown = {"id": wanted, "activated_at": None, **self.deployments.get(wanted, self.build)}
        return data_response({**deployment_schema.EXAMPLE, **shown})

    async def build_log(self, request: web.Request) -> web.StreamResponse:
        # Like the API: only a line that ends a chunk of the log has an id.
        last = request.headers.get("Last-Event-ID")
        frames = []
        for number, line in enumerate(self.log, 1):
            identifier = number * 10 if number % 3 == 0 else None
            frames.append(frame("log", {"message": line}, identifier))
        frames = frames[int(last) // 10 if last else 0 :]
        end = frame("end", {"status": self.build["status"]}, "end")
        return await self._stream(request, frames if self.silent else [*frames, end])

    async def start(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body["deployment"] == "idle":
            return error(409, "conflict", "the project idle has no active deployment yet")
        self.started = body
        created = self._idempotent(request, await request.read(), lambda: f"run_a{len(self.created)}")
        shown = {"id": created, "status": "pending", "deployment_id": "dep_x", "input": body["input"]}
        place = {"Location": f"/v1/runs/{created}"}
        return data_response({**run_schema.CREATED_EXAMPLE, **shown}, 201, place)

    def _run(self, request: web.Request, **fields: Any) -> dict[str, Any]:
        whole = {key: value for key, value in run_schema.EXAMPLE.items() if key != "output"}
        return {**whole, "id": request.match_info["id"], **fields}

    async def run(self, request: web.Request) -> web.Response:
        return data_response(self._run(request, **self.end))

    async def cancel(self, request: web.Request) -> web.Response:
        self.canceled.set()
        return data_response(self._run(request, status="running"), 202)

    async def follow(self, request: web.Request) -> web.StreamResponse:
        last = int(request.headers.get("Last-Event-ID", "0"))
        if last and last == len(self.events):
            return web.Response(status=204)
        frames = []
        for number, (event, data) in enumerate(self.events, 1):
            frames.append(frame(event, data, number))
            if not self.malformed_events:
                shown = {"id": number, "type": event, "data": data}
                DESCRIPTION.check_schema({"$ref": "#/components/schemas/Event"}, shown, "event")
        return await self._stream(request, frames[last:])

    async def _stream(self, request: web.Request, frames: list[bytes]) -> web.StreamResponse:
        assert request.headers["Accept"] == "text/event-stream"
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Request-Id": "req_1"}
        response = web.StreamResponse(headers=headers | RATE_LIMITS)
        await response.prepare(request)
        await response.write(b"retry: 10\n\n: keepalive\n\n")
        cut = self.cut_after.popleft() if self.cut_after else None
        for number, one_frame in enumerate(frames):
            if number == cut:
                await response.write(one_frame[: len(one_frame) // 2])
                await asyncio.sleep(0.05)
                request.transport.abort()
                return response
            await response.write(one_frame)
        while self.silent and not self.canceled.is_set():
            await response.write(b": keepalive\n\n")
            await asyncio.sleep(0.05)
        return response

    async def artifacts(self, request: web.Request) -> web.Response:
        page, size = int(request.query["page"]), int(request.query["per_page"])
        assert 1 <= size <= 100
        items = [
            {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "partial": False}
            for name, data in self.files.items()
        ]
        part = items[(page - 1) * size : page * size]
        optional = page * size < len(items)
        pagination = {"total": len(items), "page": page, "per_page": size, "has_more": optional}
        shown = [{**artifact_schema.EXAMPLE, **item} for item in part]
        links = {"Link": f'<{self.url}{request.path}?page=1>; rel="first"'}
        return web.json_response({"data": shown, "pagination": pagination}, headers=links)

    async def artifact(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        headers = {
            "Content-Type": "application/octet-stream",
            "ETag": f'"{hashlib.sha256(self.files[name]).hexdigest()}"',
            "Accept-Ranges": "bytes",
            "Content-Disposition": "attachment",
            "Cache-Control": "private, no-cache",
        }
        return web.Response(body=self.overridden_files.get(name, self.files[name]), headers=headers)

    async def token(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {REQUEST_TOKEN}":
            return web.Response(status=403)
        self.tokens += 1
        value = f"jwt-{request.query['audience']}-{self.tokens}"
        self.keys = {value}
        return web.json_response({"value": value})


def frame(event: str, data: Any, identifier: int | str | None = None) -> bytes:
    head = "" if identifier is None else f"id: {identifier}\n"
    return f"{head}event: {event}\ndata: {json.dumps(data)}\n\n".encode()


def data_response(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"data": data}, status=status, headers=headers)


def error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"error": {"code": code, "message": message, "details": {}}}
    if status == 401:
        headers = {"WWW-Authenticate": "Bearer", **(headers or {})}
    return web.json_response(body, status=status, headers=headers)
