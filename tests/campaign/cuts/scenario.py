"""What users do, and what is seen of it in the end: one Run, a cancellation, a rollback, a commit.

Each is played undisturbed first, and then once for each cut. Called by
`tests.campaign.cuts.passes`. What a client does is repeated until it is answered,
as a client would.
"""

import secrets
from abc import ABC, abstractmethod
from typing import Any

from crds.deployment_name import git_name
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.names import id_of, name_of
from tests.campaign import ledger
from tests.campaign.cuts import cluster_view
from tests.campaign.cuts.cluster_view import ClusterView
from tests.campaign.cuts.stage import LINE, OTHER, CutStage
from tests.campaign.warm import let_builders_wait, let_pods_wait


class Scenario(ABC):
    """`essential` are the writes that every undisturbed play of it makes, by process."""

    name = ""
    essential: tuple[str, ...] = ()
    only_essential = False
    """Whether its other writes are those of another scenario, and are cut there."""
    possible: tuple[str, ...] = ()
    """Writes that it may make, and that are cut then, besides the essential ones."""
    detours: frozenset[str] = frozenset()
    """Kubernetes Events that it may have besides, after a restart."""

    @abstractmethod
    async def act(self, stage: CutStage) -> str:
        """Does it; gives the name of the object it is about."""

    @abstractmethod
    async def view(self, stage: CutStage, subject: str) -> ClusterView:
        """What is seen of it now."""

    @abstractmethod
    def is_finished(self, seen: ClusterView) -> bool:
        """Whether it came to its end."""


class SubmittedRun(Scenario):
    """A run by POST that succeeds, with events and an artifact."""

    name = "run"
    essential = (
        "api: create runs",
        "api: patch runs/status claim",
        "api: patch runs/status claim result",
        "controller: create pods of a run",
        "controller: patch runs/status Running",
        "controller: patch runs/status Succeeded",
    )

    def input(self, stage: CutStage) -> dict[str, Any]:
        """The crew's script."""
        return {"ledger": stage.testbed.ledger.url, "events": 3, "artifact": 1000, "sleep": 1.5}

    async def act(self, stage: CutStage) -> str:
        body = {"deployment": stage.testbed.project, "input": self.input(stage)}
        order = {"Idempotency-Key": secrets.token_hex(8)}
        made = await stage.testbed.ask("POST", "/v1/runs", body, **order)
        return name_of(made["id"])

    async def view(self, stage: CutStage, subject: str) -> ClusterView:
        return await cluster_view.run_view(stage.testbed, subject)

    def is_finished(self, seen: ClusterView) -> bool:
        shown, pods = seen["shown"], seen.get("pods") or ()
        ended = isinstance(shown, dict) and shown["status"] in ("succeeded", "failed", "canceled")
        return ended and all(finished for _, finished in pods) and (seen["object"] or {}).get("phase") in (
            "Succeeded", "Failed", "Canceled",
        )  # fmt: skip


class EssentialRun(SubmittedRun):
    """A run by POST that is cut only at the writes that every run makes."""

    only_essential = True


class WarmRun(SubmittedRun):
    """A run that takes a pod that waits for one, whose place another pod takes."""

    name = "warm run"
    only_essential = True
    essential = (
        "controller: patch pods activeDeadlineSeconds annotations labels ownerReferences",
        "controller: create pods of a run",
        "controller: patch runs/status Running",
        "api: patch runs/status claim",
    )

    async def act(self, stage: CutStage) -> str:
        await let_pods_wait(stage.testbed)
        return await super().act(stage)

    async def view(self, stage: CutStage, subject: str) -> ClusterView:
        found = await super().view(stage, subject)
        # A controller that was killed may not have seen the pod wait: the run starts cold then.
        if found.get("object"):
            found["object"]["pod"] = None
        return {**found, "pods": [("", finished) for _, finished in found.get("pods") or ()]}


class AppliedRun(SubmittedRun):
    """A run by kubectl that is canceled while its crew works."""

    name = "cancel"
    essential = (
        "api: patch runs cancel",
        "api: patch runs/status claim",
        "controller: create pods of a run",
        "controller: patch runs/status Running",
        "controller: patch runs labels ownerReferences",
        "controller: delete pods",
        "controller: patch runs/status Canceled",
    )

    async def act(self, stage: CutStage) -> str:
        name = f"run-cut-{secrets.token_hex(4)}"
        script = {"ledger": stage.testbed.ledger.url, "sleep": 3600}
        spec = {"project": stage.testbed.project, "input": script}
        await stage.testbed.kube.create(RUN, {"metadata": {"name": name}, "spec": spec})
        await stage.wait_until(lambda: name in ledger.starts(stage.testbed.ledger.entries()))
        # Shown as running, so that the writes of its start are not left out.
        await stage.wait_shown(name, "running")
        await stage.testbed.ask("POST", f"/v1/runs/{id_of(name)}/cancel")
        return name

    async def view(self, stage: CutStage, subject: str) -> ClusterView:
        found = await super().view(stage, subject)
        if found.get("object"):
            # A runner that cannot reach the API server within its grace period is killed without a report.
            found["object"]["outcome"] = None
        return found


class PrunedRun(SubmittedRun):
    """A finished run whose object is pruned; the API still returns it."""

    name = "prune"
    only_essential = True
    essential = ("api: delete runs",)

    async def act(self, stage: CutStage) -> str:
        await self._keep(stage, "1h")
        name = await super().act(stage)

        async def ended() -> bool:
            record = await stage.testbed.ask("GET", f"/v1/runs/{id_of(name)}")
            return bool(record["status"] == "succeeded")

        # The object may be pruned already: the API server may not have seen the longer TTL yet.
        await stage.wait_for(ended)
        await self._keep(stage, "1s")
        return name

    async def _keep(self, stage: CutStage, time: str) -> None:
        retention = {"spec": {"retention": {"runs": time}}}
        await stage.testbed.kube.patch(PROJECT, stage.testbed.project, retention)

    def is_finished(self, seen: ClusterView) -> bool:
        return seen["object"] is None and not seen["pods"]


class RolledBackDeployment(Scenario):
    """A rollback to the deployment that is not active."""

    name = "rollback"
    essential = (
        "api: patch deployments activation",
        "controller: patch projects/status lastOrder",
        "controller: patch deployments/status order activationSeen",
        "controller: patch projects/status activeDeployment",
        "controller: patch deployments/status Active",
        "controller: patch deployments/status Superseded",
    )

    async def act(self, stage: CutStage) -> str:
        project = await stage.testbed.ask("GET", f"/v1/projects/{stage.testbed.project}")
        active = name_of(project["active_deployment_id"])
        name = stage.testbed.deployment if active == OTHER else OTHER
        await stage.testbed.ask("POST", f"/v1/deployments/{id_of(name)}/rollback")
        return name

    async def view(self, stage: CutStage, subject: str) -> ClusterView:
        return await cluster_view.deployment_view(stage, subject)

    def is_finished(self, seen: ClusterView) -> bool:
        return bool(
            seen.get("phase") == "Active" and seen["is active"] and seen["active ones"] == 1
            and seen["shown"] == [True]
        )  # fmt: skip


class CommittedDeployment(RolledBackDeployment):
    """A commit whose tree was built before: its image is taken over."""

    name = "commit"
    essential = (
        "controller: create deployments",
        "controller: patch projects/status lastOrder",
        "controller: patch deployments/status order",
        "controller: patch deployments/status Building image",
        "controller: patch projects/status activeDeployment",
        "controller: patch deployments/status Active",
        "controller: patch deployments/status Superseded",
        "controller: create events NewCommit",
        "controller: create events Activated",
    )
    detours = frozenset(("Building", "Built"))

    async def view(self, stage: CutStage, subject: str) -> ClusterView:
        # A restarted controller may not know the source yet; then it builds it again.
        return {**await super().view(stage, subject), "pods": None}

    def variant(self, stage: CutStage) -> str:
        """A built tree that is not the head's."""
        last = list(stage.commits.values())[-1]
        return "ebb" if last == "flood" else "flood"

    async def act(self, stage: CutStage) -> str:
        sha = await stage.commit(self.variant(stage))
        await stage.request_poll()
        project = await stage.testbed.kube.get(PROJECT, LINE)
        assert project is not None
        spec = {"source": {"git": {"url": stage.url, "commit": sha}}}
        name = git_name(project["metadata"]["uid"], spec, 1)

        async def made() -> bool:
            return await stage.testbed.kube.get(DEPLOYMENT, name) is not None

        await stage.wait_for(made)
        return name


class BuiltDeployment(RolledBackDeployment):
    """A new commit that is asked for, and built for real; the dependencies are there."""

    name = "build"
    only_essential = True
    essential = (
        "api: create deployments",
        "controller: create pods of a build",
        "controller: patch deployments/status Building buildPod",
        "controller: patch deployments/status image",
    )

    async def act(self, stage: CutStage) -> str:
        variant = secrets.token_hex(4)
        sha = await stage.commit(variant)
        body = {"project": LINE, "source": {"git": {"commit": sha}}}
        made = await stage.testbed.ask("POST", "/v1/deployments", body)
        return name_of(made["id"])

    async def view(self, stage: CutStage, subject: str) -> ClusterView:
        found = await super().view(stage, subject)
        return {**found, "image": None}


class WarmBuiltDeployment(BuiltDeployment):
    """A new commit whose build takes a pod that waits for one, whose place another pod takes."""

    name = "warm build"
    essential = (
        "controller: patch pods activeDeadlineSeconds annotations labels ownerReferences",
        "controller: create pods of a build",
        "controller: create events Building",
    )
    # The build may end before a first status that conflicts is written again.
    possible = (
        "controller: patch deployments/status Building buildPod",
        "controller: patch deployments/status Building image buildPod",
        "controller: patch deployments/status image",
    )

    async def act(self, stage: CutStage) -> str:
        await let_builders_wait(stage.testbed, LINE)
        # The controller sees the pod run.
        await stage.wait_idle()
        return await super().act(stage)

    async def view(self, stage: CutStage, subject: str) -> ClusterView:
        # A controller that was killed may not have seen the pod wait: the build gets a new pod then.
        return {**await super().view(stage, subject), "pods": None}
