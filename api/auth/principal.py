"""The authenticated caller. Created by `api.auth`, checked by `api.routing.endpoint` and the routes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from api import errors
from api.auth.scopes import Grants, Scope

CallerKind = Literal["key", "kubernetes", "workflow", "user"]


@dataclass(frozen=True)
class ProvenCommit:
    """The commit that a workflow runs for, by the token of its issuer."""

    repository: str
    commit: str


@dataclass(frozen=True)
class Caller:
    """An authenticated caller. `plan` None: the best plan of its projects.

    `key_id` identifies the caller in logs and owns its idempotency keys; for tokens it identifies the
    subject instead of the token, which a workflow renews. `rate_limit_key` selects the rate limit window.
    `credential_id` identifies the key or token whose end closes the streams. `commit` is what a workflow's
    token proves. `token` is the text of a token, for revalidation.
    """

    key_id: str
    grants: Grants
    plan: str | None
    expires_at: datetime | None
    kind: CallerKind
    rate_limit_key: str
    credential_id: str
    commit: ProvenCommit | None = None
    namespaces: Mapping[str, frozenset[Scope]] | None = None
    """The scopes by namespace, for a caller whose access follows from rights in several namespaces."""
    token: str = field(default="", repr=False)

    @property
    def projects(self) -> frozenset[str] | None:
        """The accessible projects; None for all."""
        return self.grants.projects

    @property
    def principal(self) -> str:
        """For records: `key:<id>`, `kubernetes:<user>`, `user:<name>` or `workflow:<repository>:…`."""
        return f"key:{self.key_id}" if self.kind == "key" else self.key_id

    def may(self, scope: Scope, project: str | None = None) -> bool:
        """Return whether the caller has the scope in this project; without a project, in any project.

        Without a project, rights in a namespace without projects count too.
        """
        if self.grants.may(scope, project):
            return True
        return project is None and any(Grants(each).may(scope) for each in (self.namespaces or {}).values())

    def can_see(self, project: str) -> bool:
        """Return whether the caller has access to this project."""
        return self.grants.scopes_in(project) is not None

    def may_create_in(self, namespace: str | None, scope: Scope) -> bool:
        """Return whether the caller may create projects in a namespace; None for the one of a call without.

        With rights by namespace, those decide; without, another namespace than that one needs the scope
        admin for all projects.
        """
        if self.namespaces is not None:
            return Grants(self.namespaces.get(namespace or next(iter(self.namespaces)))).may(scope)
        return namespace is None or self.grants.administers_all

    def require(self, scope: Scope, project: str | None = None) -> None:
        """Raise a 403 that names the missing scope, in this project or in all."""
        if not self.may(scope, project):
            scopes = self.grants.scopes if project is None else self.grants.scopes_in(project) or ()
            where = "" if project is None else f" in the project {project}"
            raise errors.forbidden(
                f"this key lacks the scope {scope}{where}; use a key that has it",
                required_scope=scope,
                scopes=sorted(scopes),
            )

    def require_project(self, project: str, field: str, scope: Scope = "read") -> None:
        """Raise a 403 for an inaccessible project in a body or filter, whether it exists or not.

        Raises the 403 of `require` if the project is accessible but the scope is missing.
        """
        if not self.can_see(project):
            raise errors.forbidden(
                f"this key is not for the project {project}; use a key for it, or one for all projects",
                field=field,
            )
        self.require(scope, project)
