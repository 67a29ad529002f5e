"""Who is calling. Made by `api.auth.authenticate` and `api.auth`, asked by `api.routing.endpoint` and the routes."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from api import errors
from api.auth.scopes import Grants, Scope

Kind = Literal["key", "kubernetes", "workflow"]


@dataclass(frozen=True)
class Caller:
    """Somebody who proved who they are. `plan` None means the best of their projects.

    `key_id` names them in the log and owns what they ask for once only (idempotency); for a token it is
    not the token's, since a workflow renews that. `counted_as` is whose minute their requests count in,
    `session` what their streams end with. `token` is the text of a token, to be looked at again.
    """

    key_id: str
    grants: Grants
    plan: str | None
    expires_at: datetime | None
    kind: Kind
    counted_as: str
    session: str
    token: str = field(default="", repr=False)

    @property
    def projects(self) -> frozenset[str] | None:
        """The projects that they hold; None for all."""
        return self.grants.projects

    def may(self, scope: Scope, project: str | None = None) -> bool:
        """Whether they hold the scope in this project, or in some project where none is given."""
        return self.grants.may(scope, project)

    def holds(self, project: str) -> bool:
        """Whether they may know of this project."""
        return self.grants.within(project) is not None

    def require(self, scope: Scope, project: str | None = None) -> None:
        """Raises the 403 that names the scope which is missing, in this project or in all."""
        if not self.may(scope, project):
            held = self.grants.scopes if project is None else self.grants.within(project) or ()
            where = "" if project is None else f" in the project {project}"
            raise errors.forbidden(
                f"this key lacks the scope {scope}{where}; use a key that has it",
                required_scope=scope,
                scopes=sorted(held),
            )

    def require_project(self, project: str, field: str, scope: Scope = "read") -> None:
        """Raises the 403 for a project in a body or a filter that they do not hold, be it there or not.

        Raises that of `require` where they hold it without the scope.
        """
        if not self.holds(project):
            raise errors.forbidden(f"this key is not for the project {project}", field=field)
        self.require(scope, project)
