"""Matches the entries of `Project.spec.oidc` against token claims. Pure.

Called by `api.auth.oidc`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from api.auth.principal import ProvenCommit
from api.auth.scopes import Grants

_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_MAX_NAME_LENGTH = 255
PULL_REQUEST_REFS = "refs/pull/"
FORK_EVENTS = ("pull_request_target", "workflow_run")
_OPTIONAL = ("ref", "environment", "repositoryId", "workflow", "event")
"""Fields of an entry that may be missing."""


@dataclass(frozen=True)
class Workflow:
    """The subject of a token: a job of a repository, on a git ref, optionally in an environment.

    `workflow` is the file below .github/workflows; `event` is what started it.
    """

    repository: str
    ref: str | None
    environment: str | None
    repository_id: str | None = None
    workflow: str | None = None
    event: str | None = None

    @property
    def name(self) -> str:
        """The name shared by all tokens of such jobs."""
        qualifiers = [part for part in (self.ref, self.environment) if part is not None]
        return ":".join(["workflow", self.repository, *qualifiers])


@dataclass(frozen=True)
class OidcEntry:
    """Scopes granted to a workflow.

    None matches any value, but no pull request ref and no event of `FORK_EVENTS`; `/*` any ref below.
    """

    project: str
    repository: str
    ref: str | None
    environment: str | None
    scopes: frozenset[str]
    project_uid: str = ""
    repository_id: str | None = None
    workflow: str | None = None
    event: str | None = None

    def matches(self, workflow: Workflow) -> bool:
        """Return whether the entry applies to this workflow; repository names ignore case."""
        return (
            self.repository.lower() == workflow.repository.lower()
            and self._matches_ref(workflow.ref)
            and self.environment in (None, workflow.environment)
            and self.repository_id in (None, workflow.repository_id)
            and self.workflow in (None, workflow.workflow)
            and self._matches_event(workflow.event)
        )

    def _matches_event(self, event: str | None) -> bool:
        """Match the event; without `event`, none that runs with the base's identity for anyone's fork."""
        return event not in FORK_EVENTS if self.event is None else event == self.event

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
    ref, environment = claims.get("ref") or None, claims.get("environment") or None
    if not all(name is None or _is_name(name) for name in (ref, environment)):
        return None
    identity, event = (
        value if _is_name(value) else None
        for value in (claims.get("repository_id"), claims.get("event_name"))
    )
    return Workflow(repository, ref, environment, identity, _workflow_file(repository, claims), event)


def _workflow_file(repository: str, claims: Mapping[str, Any]) -> str | None:
    """Return the file of `owner/name/.github/workflows/FILE@REF` if it is of this repository."""
    path, _, _ = str(claims.get("workflow_ref")).partition("@")
    directory = f"{repository}/.github/workflows/"
    return path[len(directory) :] if path.lower().startswith(directory.lower()) else None


def proven_commit(claims: Mapping[str, Any]) -> ProvenCommit | None:
    """Return the commit of verified claims; None unless they also have the id of its repository."""
    repository, identity, commit = (claims.get(name) for name in ("repository", "repository_id", "sha"))
    if not (isinstance(identity, str) and identity and isinstance(commit, str) and _COMMIT.fullmatch(commit)):
        return None
    return ProvenCommit(str(repository), commit)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_NAME_LENGTH and value.isprintable()


def entries(project: str, spec: Any, project_uid: str = "") -> list[OidcEntry]:
    """Parse the `oidc` entries of a project; skip malformed ones."""
    result = []
    for item in spec if isinstance(spec, list) else ():
        try:
            ref, environment, *others = (item.get(name) for name in _OPTIONAL)
            scopes = frozenset(item["scopes"])
            entry = OidcEntry(project, item["repository"], ref, environment, scopes, project_uid, *others)
        except (KeyError, TypeError, AttributeError):
            continue
        optional = all(isinstance(part, str | None) for part in (ref, environment, *others))
        if isinstance(entry.repository, str) and optional:
            result.append(entry)
    return result


def grants(entries: Iterable[OidcEntry], workflow: Workflow) -> Grants | None:
    """Return per project the scopes of all matching entries plus read; None without a match."""
    by_project: dict[str, frozenset[str]] = {}
    for entry in entries:
        if entry.matches(workflow):
            # Never admin, even if listed: writers of a repository must not administer a project.
            scopes = entry.scopes & {"run", "preview", "deploy"} | {"read"}
            by_project[entry.project] = by_project.get(entry.project, frozenset()) | scopes
    return Grants(None, by_project) if by_project else None
