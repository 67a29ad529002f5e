"""Which namespace has a project name: names are unique in the installation, and the older Project has it.

For all but its own reconciler, a Project whose name is taken does not exist. Called by the event handlers and
the reconcilers of each namespace; with a single namespace nothing is ever taken.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

OnChange = Callable[[str], None]
Age = tuple[str, str]
"""Time of creation in the apiserver's format, then uid."""


class ProjectNames:
    """The Projects of all namespaces by name."""

    def __init__(self, namespaces: Iterable[str]) -> None:
        self._unlisted = set(namespaces)
        self.is_shared = len(self._unlisted) > 1
        """Whether there is more than one namespace."""
        self._complete = asyncio.Event()
        self._ages: dict[str, dict[str, Age]] = {}
        self._subscribers: dict[str, OnChange] = {}
        if not self.is_shared:
            self._complete.set()

    def subscribe(self, namespace: str, on_change: OnChange) -> None:
        """Call `on_change` with each name of that namespace that another one may have taken or freed."""
        self._subscribers[namespace] = on_change

    def mark_listed(self, namespace: str) -> None:
        """Record that the Projects of a namespace are known, or cannot be read."""
        self._unlisted.discard(namespace)
        if not self._unlisted:
            self._complete.set()

    async def wait_complete(self) -> None:
        """Return once the Projects of all namespaces are known: before, no holder is certain."""
        await self._complete.wait()

    def see(self, namespace: str, name: str, age: Age) -> None:
        """Record a Project."""
        ages = self._ages.setdefault(name, {})
        if ages.get(namespace) != age:
            ages[namespace] = age
            self._notify_others(namespace, name, ages)

    def forget(self, namespace: str, name: str, uid: str | None) -> None:
        """Record that a Project was deleted; another may have its name from then on."""
        ages = self._ages.get(name, {})
        if namespace not in ages or uid not in (None, ages[namespace][1]):
            return
        del ages[namespace]
        self._notify_others(namespace, name, ages)
        if not ages:
            del self._ages[name]

    def holder(self, name: str) -> str | None:
        """Return the namespace whose Project has this name; None if there is none."""
        ages = self._ages.get(name)
        return min(ages, key=lambda namespace: (ages[namespace], namespace)) if ages else None

    def _notify_others(self, namespace: str, name: str, ages: Mapping[str, Age]) -> None:
        for other in ages:
            if other != namespace and other in self._subscribers:
                self._subscribers[other](name)


@dataclass(frozen=True)
class NamespaceProjectNames:
    """The project names of one namespace among those of all."""

    names: ProjectNames
    namespace: str

    def see(self, project: Mapping[str, Any]) -> None:
        """Record a Project of this namespace."""
        if self.names.is_shared:
            metadata = project["metadata"]
            age = (str(metadata.get("creationTimestamp") or ""), str(metadata.get("uid") or ""))
            self.names.see(self.namespace, metadata["name"], age)

    def forget(self, name: str, uid: str | None = None) -> None:
        """Record that a Project of this namespace was deleted."""
        if self.names.is_shared:
            self.names.forget(self.namespace, name, uid)

    def is_taken(self, name: str) -> bool:
        """Return whether another namespace has this name before a Project of this one."""
        return self.names.is_shared and self.names.holder(name) not in (None, self.namespace)


UNSHARED = NamespaceProjectNames(ProjectNames(()), "")
"""The names of an installation with one namespace."""
