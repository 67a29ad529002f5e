"""Matches the entries of `Project.spec.oidc` against token claims. Pure.

Called by `api.auth.oidc`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from api.auth.scopes import Grants

_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}", re.ASCII)
_MAX_NAME_LENGTH = 255
PULL_REQUEST_REFS = "refs/pull/"


@dataclass(frozen=True)
class Workflow:
    """The subject of a token: a job of a repository, on a git ref, optionally in an environment."""

    repository: str
    ref: str | None
    environment: str | None

    @property
    def name(self) -> str:
        """The name shared by all tokens of such jobs."""
        qualifiers = [part for part in (self.ref, self.environment) if part is not None]
        return ":".join(["workflow", self.repository, *qualifiers])


@dataclass(frozen=True)
class OidcEntry:
    """Scopes granted to a workflow. None matches any value, but no pull request ref; `/*` any ref below."""

    project: str
    repository: str
    ref: str | None
    environment: str | None
    scopes: frozenset[str]

    def matches(self, workflow: Workflow) -> bool:
        """Return whether the entry applies to this workflow; repository names ignore case."""
        return (
            self.repository.lower() == workflow.repository.lower()
            and self._matches_ref(workflow.ref)
            and self.environment in (None, workflow.environment)
        )

    def _matches_ref(self, ref: str | None) -> bool:
        """Match the ref; without `ref`, branches and tags only, since anyone can open a pull request."""
        if self.ref is None:
            return ref is None or not ref.startswith(PULL_REQUEST_REFS)
        if self.ref.endswith("/*"):
            return ref is not None and ref.startswith(self.ref[:-1])
        return ref == self.ref


def of_claims(claims: Mapping[str, Any]) -> Workflow | None:
    """Return the workflow of verified claims; None without a repository or with an invalid name."""
    repository = claims.get("repository")
    if not isinstance(repository, str) or not _REPOSITORY.fullmatch(repository):
        return None
    names = [claims.get(name) or None for name in ("ref", "environment")]
    if not all(other is None or _is_name(other) for other in names):
        return None
    return Workflow(repository, *names)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_NAME_LENGTH and value.isprintable()


def entries(project: str, spec: Any) -> list[OidcEntry]:
    """Parse the `oidc` entries of a project; skip malformed ones."""
    result = []
    for item in spec if isinstance(spec, list) else ():
        try:
            entry = OidcEntry(
                project,
                item["repository"],
                item.get("ref"),
                item.get("environment"),
                frozenset(item["scopes"]),
            )
        except (KeyError, TypeError, AttributeError):
            continue
        if all(
            isinstance(part, str) for part in (entry.repository, entry.ref or "", entry.environment or "")
        ):
            result.append(entry)
    return result


def grants(entries: Iterable[OidcEntry], workflow: Workflow) -> Grants | None:
    """Return per project the scopes of all matching entries plus read; None without a match."""
    by_project: dict[str, frozenset[str]] = {}
    for entry in entries:
        if entry.matches(workflow):
            # Never admin, even if listed: writers of a repository must not administer a project.
            scopes = entry.scopes & {"read", "run", "deploy"} | {"read"}
            by_project[entry.project] = by_project.get(entry.project, frozenset()) | scopes
    return Grants(None, by_project) if by_project else None
