"""Objects as the apiserver gives them, in three lines each."""

import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller.config import ControllerConfig
from controller.git.client import Git
from crds.names import LABEL_DEPLOYMENT, LABEL_PROJECT, LABEL_RUN
from crds.objects import Deployment, Pod, Project, Run
from crds.times import format_second
from tests.testbed.git_server import GitServer
from tests.unit.controller.source import polling

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


class Make:
    """Builders of objects; everything not given is the ordinary case."""

    now = NOW

    def __init__(self) -> None:
        # A test's own, below what an apiserver that it plays gives: no other test's objects move it.
        self._versions = itertools.count(1)

    @staticmethod
    def ago(seconds: float) -> str:
        return format_second(NOW - timedelta(seconds=seconds))

    def _metadata(self, name: str, more: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name,
            "namespace": "crews",
            "uid": f"uid-{name}",
            "resourceVersion": str(next(self._versions)),
            "generation": 1,
            "creationTimestamp": self.ago(60),
            **more,
        }

    def project(self, name: str = "demo", status: dict[str, Any] | None = None, **spec: Any) -> Project:
        meta = spec.pop("metadata", {})
        return Project({"metadata": self._metadata(name, meta), "spec": spec, "status": status or {}})

    def deployment(
        self,
        name: str = "dep-a",
        project: str = "demo",
        built: bool = True,
        order: int = 0,
        phase: str = "Building",
        status: dict[str, Any] | None = None,
        **spec: Any,
    ) -> Deployment:
        meta = spec.pop("metadata", {})
        whole = {"project": project, "source": {"archive": {"upload": "upl_1"}}, **spec}
        found: dict[str, Any] = {"phase": phase, **(status or {})}
        if order:
            found["order"] = order
        if built:
            found["image"] = "registry/crews/demo@sha256:00"
            found["conditions"] = [{"type": "Built", "status": "True", "reason": "Built", "message": "m"}]
        return Deployment({"metadata": self._metadata(name, meta), "spec": whole, "status": found})

    def run(self, name: str = "run-a", status: dict[str, Any] | None = None, **spec: Any) -> Run:
        meta = spec.pop("metadata", {})
        spec = spec or {"project": "demo"}
        found = {"phase": "Pending", **(status or {})}
        return Run({"metadata": self._metadata(name, meta), "spec": spec, "status": found})

    def pod(self, name: str = "run-a", owner: str = "uid-run-a", **more: Any) -> Pod:
        meta = {
            "ownerReferences": [{"uid": owner}],
            "labels": {LABEL_RUN: name, LABEL_PROJECT: "demo", LABEL_DEPLOYMENT: "dep-a"},
            **more.pop("metadata", {}),
        }
        spec = more.pop("spec", {})
        status = {"phase": "Running", **more}
        return Pod({"metadata": self._metadata(name, meta), "spec": spec, "status": status})

    def waiting(
        self,
        name: str,
        container: str,
        labels: dict[str, str],
        age: float,
        running: float | None,
        **more: Any,
    ) -> Pod:
        """Return a pod of the Project that was created `age` seconds ago and runs for `running` seconds."""
        state = {"running": {"startedAt": self.ago(age - 1 if running is None else running)}}
        created = {"labels": {LABEL_PROJECT: "demo", **labels}, "creationTimestamp": self.ago(age)}
        more = {"containerStatuses": [{"name": container, "state": state}], **more}
        return self.pod(name, "uid-demo", **{**more, "metadata": {**created, **more.get("metadata", {})}})

    def scheduled(self, seconds: float = 5) -> list[dict[str, Any]]:
        return [{"type": "PodScheduled", "status": "True", "lastTransitionTime": self.ago(seconds)}]

    def ended(self, container: str = "crew", code: int = 0, **more: Any) -> list[dict[str, Any]]:
        return [{"name": container, "state": {"terminated": {"exitCode": code, **more}}}]


@pytest.fixture
def make() -> Make:
    return Make()


@pytest.fixture
def config() -> ControllerConfig:
    return ControllerConfig(
        namespace="crews",
        internal_url="http://crewyard-api.crewyard-system.svc:8080",
        token_key="a key for tests only",
        service_image="registry/service@sha256:11",
        kaniko_image="registry/kaniko:v1.24.0",
        base_images={"3.11": "registry/library/python:3.11-slim"},
        registry="registry:5000/team",
        registry_insecure=True,
    )


@pytest.fixture
def secured(config: ControllerConfig) -> ControllerConfig:
    return replace(config, registry_secret="push", registry_insecure=False)


@pytest.fixture
async def git() -> AsyncIterator[Git]:
    """A git client that may connect to this machine."""
    made = Git(polling.PollingConfig())  # type: ignore[arg-type]
    yield made
    await made.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    """A git server of the module's own."""
    with GitServer(tmp_path_factory.mktemp("git")) as made:
        yield made
