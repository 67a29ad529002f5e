"""An apiserver stub that reviews tokens and access."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import jwt
from aiohttp import web

from kube.client import KubeClient
from tests.testbed.apiserver import serving
from tests.unit.api.conftest import NOW

EXPIRES = NOW + timedelta(minutes=10)
ACCEPTED = {"authenticated": True, "audiences": ["crewyard"], "user": {"username": "ci"}}
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def token(name: str = "ci", **claims: object) -> str:
    """Return a token for this service; the apiserver alone could verify it."""
    found = {"sub": name, "aud": ["crewyard"], "exp": int(EXPIRES.timestamp()), **claims}
    return jwt.encode(found, "x" * 64, "HS256")


class Reviews:
    """The review of every token, and the allowed namespaces, verbs and resources; `asked` lists requests.

    Reviews of tokens wait until the stub is `answering`.
    """

    def __init__(self) -> None:
        self.review: object = {"status": ACCEPTED}
        self.allowed = {("crews", "get", "runs")}
        self.asked: list[object] = []
        self.waiting, self.most_waiting = 0, 0
        self.answering = asyncio.Event()
        self.answering.set()

    async def review_token(self, request: web.Request) -> web.Response:
        """Answer a TokenReview, the same for every token."""
        self.asked.append(await request.json())
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        await self.answering.wait()
        self.waiting -= 1
        return web.json_response(self.review)

    async def review_access(self, request: web.Request) -> web.Response:
        """Answer a SubjectAccessReview."""
        review = await request.json()
        self.asked.append(review)
        asked = review["spec"]["resourceAttributes"]
        allowed = (asked["namespace"], asked["verb"], asked["resource"]) in self.allowed
        return web.json_response({"status": {"allowed": allowed}})


@contextlib.asynccontextmanager
async def reviewing() -> AsyncIterator[tuple[Reviews, KubeClient]]:
    """Yield the reviews of a server, and its client in the namespace crews."""
    reviews = Reviews()
    routes = [web.post(TOKEN_REVIEWS, reviews.review_token), web.post(ACCESS_REVIEWS, reviews.review_access)]
    async with serving(routes) as kube:
        yield reviews, kube
        reviews.answering.set()
