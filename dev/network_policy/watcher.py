"""Watch of pods, namespaces and policies for the enforcer.

Three threads, one per kind; each lists again whenever its watch ends, for any reason.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dev.cluster.kube_client import HttpKubeApi, KubeApiError
from dev.network_policy.policy import NetworkPolicy, UnsupportedPolicy, deny_all, parse

_WATCH_SECONDS = 300
_MAX_RETRY_SECONDS = 5.0
_FINISHED_PHASES = ("Succeeded", "Failed")
PODS = "/api/v1/pods"
NAMESPACES = "/api/v1/namespaces"
POLICIES = "/apis/networking.k8s.io/v1/networkpolicies"


@dataclass(frozen=True)
class WatchedPod:
    """The relevant part of a pod. `address` is empty until the kubelet reports it, and after its end."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    address: str


def watched_pod(item: Mapping[str, Any]) -> WatchedPod:
    """Return the pod of an object."""
    metadata, status = item["metadata"], item.get("status") or {}
    without_address = item["spec"].get("hostNetwork") or status.get("phase") in _FINISHED_PHASES
    address = "" if without_address else str(status.get("podIP") or "")
    return WatchedPod(metadata["namespace"], metadata["name"], dict(metadata.get("labels") or {}), address)


class PolicyWatcher:
    """Cache of pods, namespaces and policies; its threads call `on_change` after every change."""

    def __init__(self, kube: HttpKubeApi, on_change: Callable[[], object]) -> None:
        self._kube = kube
        self._on_change = on_change
        self._lock = threading.Lock()
        self._kinds: dict[str, dict[str, Any]] = {}
        self.problems: dict[str, str] = {}
        """Unsupported policies: the reason, by name."""

    def start(self) -> None:
        """Start the watch threads."""
        for path, view in ((PODS, watched_pod), (NAMESPACES, _labels), (POLICIES, self._policy)):
            threading.Thread(target=self._run, args=(path, view), daemon=True).start()

    @property
    def complete(self) -> bool:
        """Whether each kind has been listed once."""
        with self._lock:
            return len(self._kinds) == 3

    def pods(self) -> dict[str, WatchedPod]:
        """Return the pods by uid."""
        return self._items(PODS)

    def namespaces(self) -> dict[str, Mapping[str, str]]:
        """Return labels by namespace."""
        return dict(self._items(NAMESPACES).values())

    def policies(self) -> list[NetworkPolicy]:
        """Return all policies."""
        return list(self._items(POLICIES).values())

    def ensure_known(self, namespace: str, name: str, uid: str) -> bool:
        """Fetch a pod if the cache lacks it. Return False if it does not exist. Raises KubeApiError."""
        if uid in self.pods():
            return True
        item = self._kube.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        if item is None or item["metadata"]["uid"] != uid:
            return False
        with self._lock:
            self._kinds.setdefault(PODS, {})[uid] = watched_pod(item)
        return True

    def _items(self, path: str) -> dict[str, Any]:
        with self._lock:
            return dict(self._kinds.get(path, {}))

    def _policy(self, item: Mapping[str, Any]) -> NetworkPolicy:
        title = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        self.problems.pop(title, None)
        try:
            return parse(item)
        except UnsupportedPolicy as error:
            self.problems[title] = str(error)
            log(f"the policy {title} is not supported, its pods are blocked: {error}")
            return deny_all(item)

    def _run(self, path: str, view: Callable[[Mapping[str, Any]], Any]) -> None:
        retry = 0.1
        while True:
            try:
                self._list_and_watch(path, view)
                retry = 0.1
            except Exception as error:  # nothing restarts this thread
                log(f"{path}: {type(error).__name__}: {error}")
                time.sleep(retry)
                retry = min(retry * 2, _MAX_RETRY_SECONDS)

    def _list_and_watch(self, path: str, view: Callable[[Mapping[str, Any]], Any]) -> None:
        listing = self._kube.call("GET", path)
        if path == POLICIES:
            self.problems.clear()
        fresh = {item["metadata"]["uid"]: view(item) for item in listing["items"]}
        with self._lock:
            self._kinds[path] = fresh
        self._on_change()
        version = listing["metadata"]["resourceVersion"]
        query = f"{path}?watch=1&timeoutSeconds={_WATCH_SECONDS}&resourceVersion={version}"
        for line in self._kube.lines(query, _WATCH_SECONDS + 30):
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise KubeApiError(int(event["object"].get("code") or 0), str(event["object"].get("message")))
            self._apply(path, event, view)

    def _apply(self, path: str, event: Mapping[str, Any], view: Callable[[Mapping[str, Any]], Any]) -> None:
        item, uid = event["object"], event["object"]["metadata"]["uid"]
        current = view(item)
        with self._lock:
            kind = self._kinds[path]
            previous = kind.get(uid)
            if event["type"] == "DELETED":
                kind.pop(uid, None)
                current = None
                self.problems.pop(f"{item['metadata'].get('namespace')}/{item['metadata']['name']}", None)
            else:
                kind[uid] = current
        if current != previous:
            self._on_change()


def _labels(item: Mapping[str, Any]) -> tuple[str, Mapping[str, str]]:
    return item["metadata"]["name"], dict(item["metadata"].get("labels") or {})


def log(text: str) -> None:
    """Write a line to the process's log."""
    print(f"network policy enforcer: {text}", file=sys.stderr, flush=True)
