"""Which source a new deployment is made from, and under which name: decided before anything is created.

Called by `POST /v1/deployments`. Pure but for the rows it is given.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from api import errors
from api.store.index.projects import ProjectRow
from api.store.index.uploads import UploadRow
from api.v1.uploads import view
from crds.objects import Project

Json = Mapping[str, Any]


def of_commit(project: ProjectRow, commit: str) -> dict[str, Any]:
    """A commit of the repository that the project follows. Raises a 409 where it follows none."""
    git = Project({"metadata": {}, "spec": project.spec}).git
    if git is None:
        raise errors.conflict(
            f"the project {project.name} follows no repository; set its source.git, or upload the code "
            "(POST /v1/uploads) and give build_context_url",
            field="source.git",
        )
    found = {"url": git["url"], "commit": commit}
    return {"git": {**found, "path": git["path"]} if git.get("path") else found}


def defaults_of_commit(project: ProjectRow, commit: str) -> dict[str, Any]:
    """What the poll says of a commit; a request that says no more asks for the same object."""
    crew = ((project.spec.get("source") or {}).get("git") or {}).get("crew")
    return {"gitSha": commit, **({"crew": crew} if crew else {})}


def upload_of(body: Json, project: ProjectRow, public_url: str) -> str | None:
    """The id of the upload that a body names; None for a foreign address. Raises 409 (a followed project)."""
    if "git" in (project.spec.get("source") or {}) and not body.get("override"):
        raise errors.conflict(
            f"the project {project.name} follows a git repository, which an upload would bypass; give "
            'source.git.commit instead of build_context_url, or add "override": true',
            field="build_context_url",
        )
    return view.named_by(body["build_context_url"], public_url)


def of_upload(row: UploadRow | None, project: ProjectRow, now: datetime) -> dict[str, Any]:
    """An archive that was sent. Raises a 400 that says what is the matter with the upload."""
    field = "build_context_url"
    if row is None or row.project != project.name:
        raise errors.invalid(
            f"there is no such upload for the project {project.name}; POST /v1/uploads gives one", field
        )
    if row.stored_at is None:
        late = row.expires_at <= now
        raise errors.invalid(
            "the upload expired before its bytes arrived; ask for a new one with POST /v1/uploads"
            if late
            else "the upload's bytes are not here yet; PUT them to its upload_url first",
            field,
        )
    return {"archive": {"upload": row.id, **({"sha256": row.sha256} if row.sha256 else {})}}
