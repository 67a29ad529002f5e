"""A server that speaks GitHub's endpoints for commit statuses, deployments and pull requests, for tests.

    async with github_server() as github:
        github.url          # http://127.0.0.1:40123
        github.statuses     # posted commit statuses

It stores what it receives, refuses wrong tokens as GitHub does, and fails as `github.failures` says.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from aiohttp import web

from crds.times import format_second

TOKEN = "a token for tests only"
APP, INSTALLATION = "11", "22"
REPOSITORY = "team/crew"
LOGIN = "crewyard-reports"
"""Account of the token."""


@dataclass
class GitHubServer:
    """Received requests and configured behaviour."""

    url: str = ""
    public_key: str = ""
    statuses: list[dict[str, Any]] = field(default_factory=list)
    deployments: list[dict[str, Any]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)
    """Comments on all pull requests: id, number, login and body."""
    closed: set[int] = field(default_factory=set)
    failures: list[int] = field(default_factory=list)
    """Statuses of the next responses, one each."""
    missing_permissions: set[str] = field(default_factory=set)
    """Permissions that no token has: `deployments`, `pulls`, `comments`."""
    failing: dict[str, int] = field(default_factory=dict)
    """Status of each response by the part of the path, such as `comments`, until the test changes it."""
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "no"
    """Message of a refusal."""
    tokens_issued: int = 0
    revoked_tokens: set[str] = field(default_factory=set)
    """Issued tokens that are no longer valid."""
    request_count: int = 0

    def states(self, sha: str) -> list[str]:
        """Return the states of a commit in the order received."""
        return [status["state"] for status in self.statuses if status["sha"] == sha]

    async def _check_request(self, request: web.Request) -> None:
        self.request_count += 1
        if self.failures:
            raise self._failure(self.failures.pop(0))
        token = request.headers.get("Authorization", "")
        issued = {f"token lent {number}" for number in range(1, self.tokens_issued + 1)}
        if token not in {f"token {TOKEN}", *issued} or token in self.revoked_tokens:
            raise self._failure(401)
        if request.match_info.get("repository") not in (None, REPOSITORY):
            raise self._failure(404)
        for word, status in {**dict.fromkeys(self.missing_permissions, 403), **self.failing}.items():
            if f"/{word}" in request.path:
                raise self._failure(status)

    def _failure(self, code: int) -> web.HTTPException:
        kinds = {
            401: web.HTTPUnauthorized,
            403: web.HTTPForbidden,
            404: web.HTTPNotFound,
            422: web.HTTPUnprocessableEntity,
            429: web.HTTPTooManyRequests,
            502: web.HTTPBadGateway,
        }
        text = json.dumps({"message": self.message})
        return kinds[code](text=text, content_type="application/json", headers=self.headers)

    async def status(self, request: web.Request) -> web.Response:
        await self._check_request(request)
        body = await request.json()
        assert body["state"] in ("error", "failure", "pending", "success")
        assert len(body.get("description", "")) <= 140
        self.statuses.append({**body, "sha": request.match_info["sha"]})
        return web.json_response({"id": len(self.statuses)}, status=201)

    async def listed(self, request: web.Request) -> web.Response:
        await self._check_request(request)
        query = request.query
        matches = [
            d
            for d in self.deployments
            if (d["sha"], d["environment"]) == (query["sha"], query["environment"])
        ]
        return web.json_response(matches)

    async def create(self, request: web.Request) -> web.Response:
        await self._check_request(request)
        body = await request.json()
        made = {**body, "sha": body["ref"], "id": 1000 + self.request_count, "states": []}
        self.deployments.append(made)
        return web.json_response(made, status=201)

    async def deployment_status(self, request: web.Request) -> web.Response:
        await self._check_request(request)
        body = await request.json()
        assert body["state"] in (
            "error",
            "failure",
            "inactive",
            "in_progress",
            "queued",
            "pending",
            "success",
        )
        deployment = next((d for d in self.deployments if d["id"] == int(request.match_info["id"])), None)
        if deployment is None:
            raise self._failure(404)
        deployment["states"].append(body["state"])
        return web.json_response({"id": 1}, status=201)

    async def pull(self, request: web.Request) -> web.Response:
        await self._check_request(request)
        number = int(request.match_info["number"])
        return web.json_response({"state": "closed" if number in self.closed else "open"})

    async def user(self, request: web.Request) -> web.Response:
        await self._check_request(request)
        return web.json_response({"login": LOGIN})

    async def list_comments(self, request: web.Request) -> web.Response:
        await self._check_request(request)
        number, page = int(request.match_info["number"]), int(request.query.get("page", "1"))
        size = int(request.query["per_page"])
        matches = [
            {"id": c["id"], "body": c["body"], "user": {"login": c["login"]}}
            for c in self.comments
            if c["number"] == number
        ]
        following = request.url.update_query(page=page + 1)
        links = {"Link": f'<{following}>; rel="next"'} if len(matches) > page * size else {}
        return web.json_response(matches[(page - 1) * size : page * size], headers=links)

    async def create_comment(self, request: web.Request) -> web.Response:
        await self._check_request(request)
        body = (await request.json())["body"]
        self.add_comment(int(request.match_info["number"]), LOGIN, body)
        return web.json_response(self.comments[-1], status=201)

    async def edit_comment(self, request: web.Request) -> web.Response:
        await self._check_request(request)
        comment = next(c for c in self.comments if c["id"] == int(request.match_info["id"]))
        comment["body"] = (await request.json())["body"]
        return web.json_response(comment)

    def add_comment(self, number: int, login: str, body: str) -> None:
        """Add a comment of an account."""
        self.comments.append({"id": len(self.comments) + 1, "number": number, "login": login, "body": body})

    async def create_token(self, request: web.Request) -> web.Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        claims = jwt.decode(token, self.public_key, algorithms=["RS256"])
        assert (scheme.lower(), claims["iss"], request.match_info["id"]) == ("bearer", APP, INSTALLATION)
        self.tokens_issued += 1
        until = format_second(datetime.now(UTC) + timedelta(hours=1))
        return web.json_response({"token": f"lent {self.tokens_issued}", "expires_at": until}, status=201)


@asynccontextmanager
async def github_server() -> AsyncIterator[GitHubServer]:
    """Run the server on a free port of loopback while the context is open."""
    github = GitHubServer()
    app = web.Application()
    repository = "/repos/{repository:[^/]+/[^/]+}"
    app.router.add_post(f"{repository}/statuses/{{sha}}", github.status)
    app.router.add_get(f"{repository}/deployments", github.listed)
    app.router.add_post(f"{repository}/deployments", github.create)
    app.router.add_post(f"{repository}/deployments/{{id}}/statuses", github.deployment_status)
    app.router.add_get(f"{repository}/pulls/{{number}}", github.pull)
    app.router.add_get(f"{repository}/issues/{{number}}/comments", github.list_comments)
    app.router.add_post(f"{repository}/issues/{{number}}/comments", github.create_comment)
    app.router.add_patch(f"{repository}/issues/comments/{{id}}", github.edit_comment)
    app.router.add_get("/user", github.user)
    app.router.add_post("/app/installations/{id}/access_tokens", github.create_token)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    github.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield github
    finally:
        await runner.cleanup()
