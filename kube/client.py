"""The Kubernetes API as we use it: raw dictionaries in, raw dictionaries out.

The only module that knows the client library (the `aio` half of `kubernetes`,
which gives configuration, authentication and connections). Called by the
reconcilers and by the facade. Each call has a time limit and raises the errors
of `kube.errors`; nothing is retried here, callers know what a retry means.
Only merge patches are offered, never a whole-object PUT: one writer per field.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from urllib.request import getproxies_environment

import aiohttp
from kubernetes.aio import client, config

from crds.kinds import Kind
from kube import errors, table
from kube.decoding import decoded, refusal

REQUEST_TIMEOUT = 30.0
CONNECT_TIMEOUT = 5.0
PAGE = 200
"""Objects that a list brings at a time: where they are looked at one by one, no more are in memory."""
JSON = "application/json"
Object = dict[str, Any]


@dataclass(frozen=True)
class Listing:
    """A consistent list and the resourceVersion from which a watch continues it."""

    items: list[Object]
    resource_version: str


@dataclass(frozen=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED or BOOKMARK, with the object."""

    type: str
    object: Object


class Kube:
    """A connection to one apiserver, bound to one namespace."""

    def __init__(self, api: client.ApiClient, namespace: str, field_manager: str | None = None) -> None:
        self._api = api
        self.namespace = namespace
        self._writer = {"fieldManager": field_manager} if field_manager else {}

    @classmethod
    async def connect(cls, namespace: str, field_manager: str | None = None) -> "Kube":
        """A connection with the pod's service account, or else the current kubeconfig context.

        `field_manager` is the name under which managedFields list what we write.
        Raises `kubernetes.aio.config.ConfigException` where there is neither.
        """
        settings = client.Configuration()
        try:
            config.load_incluster_config(client_configuration=settings)
        except config.ConfigException:
            await config.load_kube_config(client_configuration=settings)
        settings.connection_pool_maxsize = 64
        # Else ~/.netrc and the environment are read again at every call, on another thread.
        settings.client_session_kwargs = {"trust_env": bool(getproxies_environment())}
        return cls(client.ApiClient(settings), namespace, field_manager)

    async def close(self) -> None:
        """Closes the connections."""
        await self._api.close()

    async def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
        accept: str = JSON,
    ) -> aiohttp.ClientResponse:
        headers = {"Content-Type": content_type, "Accept": accept}
        token = await self._api.configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            headers["Authorization"] = token
        url = self._api.configuration.host + path + ("?" + urlencode(query) if query else "")
        try:
            answer = await self._api.rest_client.request(
                method, url, headers=headers, body=body, _request_timeout=timeout
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise errors.Unavailable(0, "Unreachable", f"the apiserver cannot be reached: {error}") from error
        response: aiohttp.ClientResponse = answer.response
        if response.status >= 400:
            raise errors.from_status(response.status, refusal(await _read(response)))
        return response

    async def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Object:
        """One call to any path, with a JSON answer."""
        limit = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT, sock_connect=CONNECT_TIMEOUT)
        response = await self._open(method, path, query or {}, body, content_type, limit, accept)
        found: Object = decoded(await _read(response))
        return found

    async def get(self, kind: Kind, name: str) -> Object | None:
        """The object as etcd has it now, or None."""
        try:
            return await self.call("GET", kind.path(self.namespace, name))
        except errors.NotFound:
            return None

    async def list(self, kind: Kind, labels: str = "", fields: str = "") -> Listing:
        """All objects that match, as etcd has them now (linearizable), read in pages."""
        items: list[Object] = []
        version = ""
        async for page in self.pages(kind, labels, fields):
            items.extend(page.items)
            version = page.resource_version
        return Listing(items, version)

    async def pages(self, kind: Kind, labels: str = "", fields: str = "") -> AsyncIterator[Listing]:
        """What `list` gives, all of one state, of which no more than two pages are ever held."""
        async for page in self._pages(kind, labels, fields):
            yield Listing(page.get("items") or [], page["metadata"]["resourceVersion"])

    async def names(self, kind: Kind, labels: str = "", fields: str = "") -> frozenset[str]:
        """The names of what `list` gives, for a small part of what that costs both sides."""
        pages = self._pages(kind, labels, fields, table.ACCEPT, table.WITHOUT_OBJECTS)
        return frozenset([name async for page in pages for name in table.names(page)])

    async def _pages(
        self, kind: Kind, labels: str, fields: str, accept: str = JSON, more: Mapping[str, str] | None = None
    ) -> AsyncIterator[Object]:
        query = {"limit": str(PAGE), **(more or {})}
        if labels:
            query["labelSelector"] = labels
        if fields:
            query["fieldSelector"] = fields
        while True:
            page = await self.call("GET", kind.path(self.namespace), query, accept=accept)
            yield page
            token = page["metadata"].get("continue")
            if not token:
                return
            query = {**query, "continue": token}

    async def create(self, kind: Kind, body: Mapping[str, Any]) -> Object:
        """Creates an object. Raises AlreadyExists, Invalid or Forbidden where it is refused."""
        whole = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        return await self.call("POST", kind.path(self.namespace), self._writer, whole)

    async def patch(
        self, kind: Kind, name: str, body: Mapping[str, Any], subresource: str | None = None
    ) -> Object:
        """Merges `body` into an object (RFC 7386). A `metadata.resourceVersion` in it is a precondition."""
        path = kind.path(self.namespace, name, subresource)
        return await self.call("PATCH", path, self._writer, dict(body), "application/merge-patch+json")

    async def delete(
        self,
        kind: Kind,
        name: str,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
    ) -> bool:
        """Deletes an object if the preconditions hold; False where it is gone already. Raises Conflict."""
        conditions = {
            key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value
        }
        options: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
        }
        if conditions:
            options["preconditions"] = conditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            await self.call("DELETE", kind.path(self.namespace, name), body=options)
        except errors.NotFound:
            return False
        return True

    async def watch(
        self, kind: Kind, resource_version: str, labels: str = "", seconds: int = 240
    ) -> AsyncIterator[WatchEvent]:
        """The changes after a resourceVersion, until the server ends the stream after `seconds`.

        Raises Expired where the version is too old, Unavailable where the stream breaks or is silent too
        long; bookmarks come about every minute.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        if labels:
            query["labelSelector"] = labels
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=90)
        response = await self._open("GET", kind.path(self.namespace), query, None, JSON, limit)
        try:
            async for line in response.content:
                event = decoded(line)
                if event["type"] == "ERROR":
                    raise errors.from_status(int(event["object"].get("code") or 500), event["object"])
                yield WatchEvent(event["type"], event["object"])
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise errors.Unavailable(0, "WatchBroken", f"the watch broke: {error}") from error
        finally:
            response.close()

    async def pod_log(self, pod: str, container: str, follow: bool = False) -> AsyncIterator[bytes]:
        """A container's log in chunks, to its end. Raises NotFound, or Invalid while it has not started."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/log"
        query = {"container": container, "follow": str(follow).lower()}
        limit = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT, sock_read=3600 if follow else 30
        )
        response = await self._open("GET", path, query, None, JSON, limit)
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError) as error:
            raise errors.Unavailable(0, "LogBroken", f"the log stream broke: {error}") from error
        finally:
            response.close()


async def _read(response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.read()
    except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise errors.Unavailable(0, "Unreachable", f"the apiserver's answer broke off: {error}") from error
