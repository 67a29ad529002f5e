"""Scopes per project. Pure. Part of `api.auth.principal.Caller`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

Scope = Literal["read", "run", "preview", "deploy", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
NO_SCOPES: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Grants:
    """Scopes in all projects and in single ones, which add to the former.

    `everywhere` None: access is limited to the projects of `by_project`.
    """

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

    @property
    def administers_all(self) -> bool:
        """Whether the scope admin is granted in all projects."""
        return "admin" in (self.everywhere or NO_SCOPES)

    def scopes_in(self, project: str) -> frozenset[str] | None:
        """Return the scopes in one project; None without access to it."""
        single = self.by_project.get(project)
        return single if self.everywhere is None else self.everywhere | (single or NO_SCOPES)

    def may(self, scope: Scope, project: str | None = None) -> bool:
        """Return whether the scope is granted in the project; without a project, in any project."""
        granted = self.scopes if project is None else self.scopes_in(project) or NO_SCOPES
        return _includes(granted, scope)

    def projects_with(self, scope: Scope) -> frozenset[str] | None:
        """Return the projects in which the scope is granted; None for all."""
        if self.everywhere is not None and _includes(self.everywhere, scope):
            return None
        return frozenset(project for project in self.by_project if self.may(scope, project))


def _includes(granted: frozenset[str], scope: Scope) -> bool:
    return scope in granted or "admin" in granted or (scope == "preview" and "deploy" in granted)
