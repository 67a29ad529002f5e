"""Builders of objects and rows for tests of the store."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

from api.store.index.claims.claims import ClaimGranted, ClaimRequest
from api.store.index.runs.runs import RunRequest
from api.store.store import Store
from crds.objects import Deployment, Project, Run

NOW = datetime(2026, 11, 21, 10, 0, 0, 123456, UTC)
_versions = itertools.count(1000)


def later(seconds: float) -> datetime:
    """Return NOW plus some seconds."""
    return NOW + timedelta(seconds=seconds)


def _object(
    name: str, uid: str, spec: dict[str, Any], status: dict[str, Any], **metadata: Any
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": uid,
            "resourceVersion": str(next(_versions)),
            "creationTimestamp": "2026-11-21T10:00:00Z",
            **metadata,
        },
        "spec": spec,
        "status": status,
    }


def owned(uid: str, name: str = "demo") -> list[dict[str, Any]]:
    """Return an owner reference to a Project."""
    return [{"apiVersion": "crewyard.dev/v1alpha1", "kind": "Project", "name": name, "uid": uid}]


def project(name: str = "demo", uid: str = "project-1", active: str | None = None, **spec: Any) -> Project:
    """Return a Project with a new resourceVersion."""
    status = {"activeDeployment": active, "activatedAt": "2026-11-21T11:00:00Z"} if active else {}
    return Project(_object(name, uid, spec, status))


def deployment(
    name: str = "dep-a",
    phase: str = "Superseded",
    owner: str | None = "project-1",
    project: str = "demo",
    **status: Any,
) -> Deployment:
    """Return a built Deployment, with a new resourceVersion."""
    plan = {"framework": "python", "entrypoint": "main:kickoff", "python": "3.11"}
    body = _object(
        name,
        f"uid-of-{name}",
        {"project": project, "message": f"message of {name}"},
        {"phase": phase, "plan": plan, **status},
    )
    if owner:
        body["metadata"]["ownerReferences"] = owned(owner)
    return Deployment(body)


def run(name: str, phase: str = "Pending", uid: str = "run-uid", spec: Any = None, **status: Any) -> Run:
    """Return a Run of the project demo, with a new resourceVersion."""
    run_spec = {"project": "demo", "deployment": "dep-a"} if spec is None else spec
    body = _object(name, uid, run_spec, {"phase": phase, "deployment": "dep-a", "project": "demo", **status})
    body["metadata"]["ownerReferences"] = owned("project-1")
    return Run(body)


async def add_demo_project(store: Store) -> None:
    """Add the project demo with the active deployment dep-a."""
    await store.projects.observe(project(active="dep-a"))
    await store.deployments.observe(deployment())


async def create_run(store: Store, **request: Any) -> str:
    """Create a run with a row and an object; return its name."""
    fields = {"project": "demo", "deployment": "dep-a", "input": {}, **request}
    name, _ = await store.runs.create(RunRequest(**fields), NOW, None)
    await store.run_writer.observe(run(name), NOW)
    return name


async def claim_run(store: Store, **request: Any) -> str:
    """Create a run that the pod `pod` holds with the nonce `nonce`; return its name."""
    name = await create_run(store, **request)
    answer = {"deployment_id": "dep_a"}
    found = await store.claims.grant(name, ClaimRequest("run-uid", "pod", "nonce"), answer, later(1))
    assert isinstance(found, ClaimGranted)
    return name
