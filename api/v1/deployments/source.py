"""The source of a new deployment, resolved before any object is created. Pure.

Called by `api.v1.deployments.create`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from api import errors
from api.store.index.projects import ProjectRow
from api.store.index.uploads import UploadRow
from api.v1.uploads import view

Json = Mapping[str, Any]


def commit_source(project: ProjectRow, commit: str) -> dict[str, Any]:
    """Return the source for a commit of the project's repository. Raises 409 without a repository."""
    git = project.as_object().git
    if git is None:
        raise errors.conflict(
            f"the project {project.name} has no git repository; set its source.git, or upload the code "
            "(POST /v1/uploads) and set build_context_url",
            field="source.git",
        )
    source = {"url": git["url"], "commit": commit}
    return {"git": {**source, "path": git["path"]} if git.get("path") else source}


def commit_spec_defaults(project: ProjectRow, commit: str) -> dict[str, Any]:
    """Return the spec fields that polling sets, so a request for the same commit yields the same object."""
    crew = ((project.spec.get("source") or {}).get("git") or {}).get("crew")
    return {"gitSha": commit, **({"crew": crew} if crew else {})}


def upload_id(body: Json, project: ProjectRow, public_url: str) -> str | None:
    """Return the upload id in a body, or None for an external URL. Raises 409 if the project follows git."""
    if "git" in (project.spec.get("source") or {}) and not body.get("override"):
        raise errors.conflict(
            f"the project {project.name} follows a git repository, which an upload would bypass; set "
            'source.git.commit instead of build_context_url, or add "override": true (crewyard deploy '
            "--override)",
            field="build_context_url",
        )
    return view.parse_upload_url(body["build_context_url"], public_url)


def upload_source(row: UploadRow | None, project: ProjectRow, now: datetime) -> dict[str, Any]:
    """Return the source for an uploaded archive. Raises 400 if the upload is missing, empty or expired."""
    field = "build_context_url"
    if row is None or row.project != project.name:
        raise errors.invalid(
            f"upload not found for the project {project.name}; create one with POST /v1/uploads", field
        )
    if row.stored_at is None:
        expired = row.expires_at <= now
        raise errors.invalid(
            "the upload expired before its bytes arrived; create a new one with POST /v1/uploads"
            if expired
            else "the upload has no content yet; PUT the archive to its upload_url first",
            field,
        )
    return {"archive": {"upload": row.id, **({"sha256": row.sha256} if row.sha256 else {})}}
