"""Which workflows may do what: the entries of `Project.spec.oidc` against a token's claims. Pure.

Called by `api.auth.oidc`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from api.auth.scopes import Grants

_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}", re.ASCII)
_LONGEST = 255
PULLS = "refs/pull/"


@dataclass(frozen=True)
class Workflow:
    """Who a token proves: a job of a repository, on a git reference, perhaps in an environment."""

    repository: str
    ref: str | None
    environment: str | None

    @property
    def name(self) -> str:
        """The same for all tokens of such jobs."""
        place = [part for part in (self.ref, self.environment) if part is not None]
        return ":".join(["workflow", self.repository, *place])


@dataclass(frozen=True)
class Entry:
    """What a project lets a workflow do; None matches any, but no pull request, and `/*` all below."""

    project: str
    repository: str
    ref: str | None
    environment: str | None
    scopes: frozenset[str]

    def matches(self, workflow: Workflow) -> bool:
        """Whether it is for this workflow. Repositories are the same in upper and lower case."""
        return (
            self.repository.lower() == workflow.repository.lower()
            and self._admits(workflow.ref)
            and self.environment in (None, workflow.environment)
        )

    def _admits(self, ref: str | None) -> bool:
        """Without a `ref` branches and tags only: who opens a pull request may be anybody."""
        if self.ref is None:
            return ref is None or not ref.startswith(PULLS)
        if self.ref.endswith("/*"):
            return ref is not None and ref.startswith(self.ref[:-1])
        return ref == self.ref


def of_claims(claims: Mapping[str, Any]) -> Workflow | None:
    """The workflow of proved claims; None where they name no repository, or something that is no name."""
    repository = claims.get("repository")
    if not isinstance(repository, str) or not _REPOSITORY.fullmatch(repository):
        return None
    others = [claims.get(name) or None for name in ("ref", "environment")]
    if not all(other is None or _name(other) for other in others):
        return None
    return Workflow(repository, *others)


def _name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST and value.isprintable()


def entries(project: str, spec: Any) -> list[Entry]:
    """The entries of one project's `oidc`; what is malformed matches nothing."""
    found = []
    for one in spec if isinstance(spec, list) else ():
        try:
            entry = Entry(
                project, one["repository"], one.get("ref"), one.get("environment"), frozenset(one["scopes"])
            )
        except (KeyError, TypeError, AttributeError):
            continue
        if all(
            isinstance(part, str) for part in (entry.repository, entry.ref or "", entry.environment or "")
        ):
            found.append(entry)
    return found


def grants(known: Iterable[Entry], workflow: Workflow) -> Grants | None:
    """In each project the scopes of all its matching entries, and read; None where nothing matches."""
    found: dict[str, frozenset[str]] = {}
    for entry in known:
        if entry.matches(workflow):
            # Never admin, whatever stands there: what a repository's writers may do stays below that.
            scopes = entry.scopes & {"read", "run", "deploy"} | {"read"}
            found[entry.project] = found.get(entry.project, frozenset()) | scopes
    return Grants(None, found) if found else None
