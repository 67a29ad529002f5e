"""What somebody may do, and in which projects. Pure. Held by `api.auth.principal.Caller`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

Scope = Literal["read", "run", "deploy", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Grants:
    """Scopes, by project. `everywhere` None means that only the projects of `by_project` are held."""

    everywhere: frozenset[str] | None = None
    by_project: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @staticmethod
    def of_key(scopes: Iterable[str], projects: Iterable[str] | None) -> "Grants":
        """The same scopes in each of these projects, None standing for all. Every key may read."""
        held = frozenset(scopes) | {"read"}
        return Grants(held) if projects is None else Grants(None, dict.fromkeys(projects, held))

    @cached_property
    def projects(self) -> frozenset[str] | None:
        """The projects that are held; None for all."""
        return None if self.everywhere is not None else frozenset(self.by_project)

    @cached_property
    def scopes(self) -> frozenset[str]:
        """What is allowed in some project at least."""
        return NOTHING.union(self.everywhere or NOTHING, *self.by_project.values())

    def within(self, project: str) -> frozenset[str] | None:
        """The scopes in one project; None where it is not held."""
        return self.everywhere if self.everywhere is not None else self.by_project.get(project)

    def may(self, scope: Scope, project: str | None = None) -> bool:
        """Whether the scope is held in the project, or in some project where none is given."""
        held = self.scopes if project is None else self.within(project) or NOTHING
        return scope in held or "admin" in held

    def where(self, scope: Scope) -> frozenset[str] | None:
        """The projects in which the scope is held; None for all."""
        if self.everywhere is not None:
            return None if self.may(scope) else NOTHING
        return frozenset(project for project in self.by_project if self.may(scope, project))
