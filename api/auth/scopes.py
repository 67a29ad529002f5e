"""Scopes per project. Pure. Part of `api.auth.principal.Caller`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

Scope = Literal["read", "run", "deploy", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
NO_SCOPES: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Grants:
    """Scopes by project. `everywhere` None: access is limited to the projects of `by_project`."""

    everywhere: frozenset[str] | None = None
    by_project: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @staticmethod
    def of_key(scopes: Iterable[str], projects: Iterable[str] | None) -> "Grants":
        """Return the same scopes in each of these projects (None: all). Every key may read."""
        granted = frozenset(scopes) | {"read"}
        return Grants(granted) if projects is None else Grants(None, dict.fromkeys(projects, granted))

    @cached_property
    def projects(self) -> frozenset[str] | None:
        """The accessible projects; None for all."""
        return None if self.everywhere is not None else frozenset(self.by_project)

    @cached_property
    def scopes(self) -> frozenset[str]:
        """The scopes granted in at least one project."""
        return NO_SCOPES.union(self.everywhere or NO_SCOPES, *self.by_project.values())

    def scopes_in(self, project: str) -> frozenset[str] | None:
        """Return the scopes in one project; None without access to it."""
        return self.everywhere if self.everywhere is not None else self.by_project.get(project)

    def may(self, scope: Scope, project: str | None = None) -> bool:
        """Return whether the scope is granted in the project; without a project, in any project."""
        granted = self.scopes if project is None else self.scopes_in(project) or NO_SCOPES
        return scope in granted or "admin" in granted

    def projects_with(self, scope: Scope) -> frozenset[str] | None:
        """Return the projects in which the scope is granted; None for all."""
        if self.everywhere is not None:
            return None if self.may(scope) else NO_SCOPES
        return frozenset(project for project in self.by_project if self.may(scope, project))
