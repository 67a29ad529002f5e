"""A request to the apiserver, taken apart: what it does to which object. Pure; called by proxy and rules."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class ProxiedRequest:
    """One request. `resource` is empty where the path is of no resource (`/version`, `/healthz`)."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @cached_property
    def _parts(self) -> tuple[str, str, str]:
        parts = self.path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
        if len(parts) > 2 and parts[0] == "namespaces":
            parts = parts[2:]
        resource, name, subresource = ([*parts, "", "", ""])[:3]
        return resource, name, subresource

    @property
    def resource(self) -> str:
        """The plural, such as `runs`."""
        return self._parts[0]

    @property
    def name(self) -> str:
        """The object's name; of a creation, the one in its body; empty for a collection."""
        return self._parts[1] or str((self.sent.get("metadata") or {}).get("name") or "")

    @property
    def subresource(self) -> str:
        """`status`, `log`, or nothing."""
        return self._parts[2]

    @property
    def watches(self) -> bool:
        """Whether its answer is a stream of events."""
        return self.method == "GET" and self.query.get("watch") in ("true", "1")

    @property
    def lists(self) -> bool:
        """Whether it reads a collection."""
        return self.method == "GET" and bool(self.resource) and not self._parts[1] and not self.watches

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.method in VERBS and bool(self.resource)

    @property
    def verb(self) -> str:
        """As RBAC names it."""
        if self.writes:
            return VERBS[self.method]
        return "watch" if self.watches else "list" if self.lists else "get"

    @property
    def kind(self) -> str:
        """`runs` or `runs/status`."""
        return "/".join(part for part in (self.resource, self.subresource) if part)

    @cached_property
    def sent(self) -> Mapping[str, Any]:
        """The body as JSON, empty where there is none."""
        try:
            found = json.loads(self.body) if self.body else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def selection(self) -> tuple[str, str, str]:
        """What a list is of, whichever page and version: path, labels, fields."""
        return self.path, self.query.get("labelSelector", ""), self.query.get("fieldSelector", "")
