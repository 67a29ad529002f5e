"""Kubernetes API client: raw dictionaries in, raw dictionaries out.

The only module that uses the client library (`kubernetes.aio`, for configuration, authentication and
connections). Called by the reconcilers and the API. Each call has a timeout and raises the errors of
`kube.errors`; retries are left to the callers. Offers merge patches only, never PUT: one writer per field.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from urllib.request import getproxies_environment

import aiohttp
from kubernetes.aio import client, config

from crds.kinds import Kind
from kube import errors, table
from kube.decoding import decode, status_of_error

REQUEST_TIMEOUT_SECONDS = 30.0
CONNECT_TIMEOUT_SECONDS = 5.0
MAX_CONNECTIONS = 64
PAGE_SIZE = 200
"""Objects per list page; bounds the memory of callers that process objects one by one."""
MAX_CREATE_ATTEMPTS = 5
CREATE_PAUSE_SECONDS = 0.05
JSON_TYPE = "application/json"
Object = dict[str, Any]


@dataclass(frozen=True)
class Listing:
    """A consistent list and the resourceVersion where a watch continues."""

    items: list[Object]
    resource_version: str


@dataclass(frozen=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED or BOOKMARK, with the object."""

    type: str
    object: Object


class KubeClient:
    """A client of one apiserver, bound to one namespace."""

    def __init__(self, api: client.ApiClient, namespace: str, field_manager: str | None = None) -> None:
        self._api = api
        self.namespace = namespace
        self._writer = {"fieldManager": field_manager} if field_manager else {}
        self.before_write: Callable[[], Awaitable[None]] | None = None
        """Called before each request that may change something; an error of it prevents the request."""

    @classmethod
    async def connect(
        cls, namespace: str, field_manager: str | None = None, extra_connections: int = 0
    ) -> "KubeClient":
        """Return a client that uses the pod's service account, or else the current kubeconfig context.

        `field_manager` is the manager of our writes in managedFields. `extra_connections` are in
        addition to MAX_CONNECTIONS, for watches and logs that keep one each.
        Raises `kubernetes.aio.config.ConfigException` where there is neither.
        """
        settings = client.Configuration()
        try:
            config.load_incluster_config(client_configuration=settings)
        except config.ConfigException:
            await config.load_kube_config(client_configuration=settings)
        settings.connection_pool_maxsize = MAX_CONNECTIONS + extra_connections
        # Otherwise aiohttp reads ~/.netrc and the environment on each call, in another thread.
        settings.client_session_kwargs = {"trust_env": bool(getproxies_environment())}
        return cls(client.ApiClient(settings), namespace, field_manager)

    def at(self, namespace: str | None) -> "KubeClient":
        """Return a client of that namespace on the same connections; this one for None."""
        if namespace in (None, self.namespace):
            return self
        other = copy.copy(self)
        other.namespace = str(namespace)
        return other

    def apart(self) -> "KubeClient":
        """Return a client with connections of its own: its calls wait for no others. Close it too."""
        other = copy.copy(self)
        other._api = client.ApiClient(self._api.configuration)
        return other

    async def close(self) -> None:
        """Close the connections, also those of the clients from `at`."""
        await self._api.close()

    async def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
        accept: str = JSON_TYPE,
    ) -> aiohttp.ClientResponse:
        headers = {"Content-Type": content_type, "Accept": accept}
        token = await self._api.configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            headers["Authorization"] = token
        url = self._api.configuration.host + path + ("?" + urlencode(query) if query else "")
        try:
            response_wrapper = await self._api.rest_client.request(
                method, url, headers=headers, body=body, _request_timeout=timeout
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise errors.KubeUnavailable(
                0, "Unreachable", f"the apiserver cannot be reached: {error}"
            ) from error
        response: aiohttp.ClientResponse = response_wrapper.response
        if response.status >= 400:
            raise errors.from_status(response.status, status_of_error(await _read(response)))
        return response

    async def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON_TYPE,
        accept: str = JSON_TYPE,
    ) -> Object:
        """Call any path and return the JSON response."""
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SECONDS, sock_connect=CONNECT_TIMEOUT_SECONDS)
        if method != "GET" and self.before_write is not None:
            await self.before_write()
        response = await self._open(method, path, query or {}, body, content_type, timeout, accept)
        try:
            body_json: Object = decode(await _read(response))
        except ValueError as error:
            raise errors.KubeUnavailable(
                0, "Unreachable", f"the response of the apiserver is not JSON: {error}"
            ) from error
        return body_json

    async def get(self, kind: Kind, name: str) -> Object | None:
        """Return the current object from etcd, or None; also for an empty name, whose path is the list's."""
        if not name:
            return None
        try:
            return await self.call("GET", kind.path(self.namespace, name))
        except errors.KubeNotFound:
            return None

    async def list(self, kind: Kind, labels: str = "", fields: str = "") -> Listing:
        """List all matching objects from etcd (linearizable), in pages."""
        items: list[Object] = []
        version = ""
        async for page in self.pages(kind, labels, fields):
            items.extend(page.items)
            version = page.resource_version
        return Listing(items, version)

    async def pages(self, kind: Kind, labels: str = "", fields: str = "") -> AsyncIterator[Listing]:
        """Yield the pages of `list`, all of one consistent state; at most two pages are in memory."""
        async for page in self._pages(kind, labels, fields):
            yield Listing(page.get("items") or [], page["metadata"]["resourceVersion"])

    async def names(self, kind: Kind, labels: str = "", fields: str = "") -> frozenset[str]:
        """Return the names of the matching objects; much cheaper than `list` for client and apiserver."""
        pages = self._pages(kind, labels, fields, table.ACCEPT, table.WITHOUT_OBJECTS)
        return frozenset([name async for page in pages for name in table.names(page)])

    async def _pages(
        self,
        kind: Kind,
        labels: str,
        fields: str,
        accept: str = JSON_TYPE,
        extra_query: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Object]:
        query = {"limit": str(PAGE_SIZE), **(extra_query or {})}
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
        """Create an object. Raises AlreadyExists, Invalid or KubeForbidden.

        Creates at the same time compete for the status of a ResourceQuota: the apiserver refuses one with a
        conflict, and has stored nothing. Tries again some times, then raises KubeUnavailable.
        """
        manifest = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        attempt = 1
        while True:
            try:
                return await self.call("POST", kind.path(self.namespace), self._writer, manifest)
            except errors.KubeConflict as error:
                if attempt == MAX_CREATE_ATTEMPTS:
                    raise errors.KubeUnavailable(error.status, error.reason, error.message) from error
            await asyncio.sleep(CREATE_PAUSE_SECONDS * attempt)
            attempt += 1

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        subresource: str | None = None,
    ) -> Object:
        """Apply a merge patch (RFC 7386), or a list of operations (RFC 6902).

        A `metadata.resourceVersion` in it is a precondition. A merge patch loses each null, also in lists.
        """
        path = kind.path(self.namespace, name, subresource)
        if isinstance(body, Mapping):
            return await self.call("PATCH", path, self._writer, dict(body), "application/merge-patch+json")
        return await self.call("PATCH", path, self._writer, list(body), "application/json-patch+json")

    async def delete(
        self,
        kind: Kind,
        name: str,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
    ) -> bool:
        """Delete an object if the preconditions hold; return False if it was gone. Raises KubeConflict."""
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
        except errors.KubeNotFound:
            return False
        return True

    async def watch(
        self, kind: Kind, resource_version: str, labels: str = "", seconds: int = 240
    ) -> AsyncIterator[WatchEvent]:
        """Yield the changes after a resourceVersion until the server ends the stream after `seconds`.

        Raises Expired where the version is too old, KubeUnavailable where the stream breaks or stays silent
        for 90 s; bookmarks arrive about every minute.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        if labels:
            query["labelSelector"] = labels
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=90)
        response = await self._open("GET", kind.path(self.namespace), query, None, JSON_TYPE, timeout)
        try:
            async for line in response.content:
                event = decode(line)
                if event["type"] == "ERROR":
                    raise errors.from_status(int(event["object"].get("code") or 500), event["object"])
                yield WatchEvent(event["type"], event["object"])
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise errors.KubeUnavailable(0, "WatchBroken", f"the watch broke: {error}") from error
        finally:
            response.close()

    async def pod_log(self, pod: str, container: str, follow: bool = False) -> AsyncIterator[bytes]:
        """Yield a container's log in chunks. Raises KubeNotFound, or Invalid before the container started."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/log"
        query = {"container": container, "follow": str(follow).lower()}
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=3600 if follow else 30
        )
        response = await self._open("GET", path, query, None, JSON_TYPE, timeout)
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError) as error:
            raise errors.KubeUnavailable(0, "LogBroken", f"the log stream broke: {error}") from error
        finally:
            response.close()


async def _read(response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.read()
    except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise errors.KubeUnavailable(
            0, "Unreachable", f"the response of the apiserver ended early: {error}"
        ) from error
