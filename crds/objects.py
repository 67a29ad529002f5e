"""Read-only, typed views of the custom resources and pods, tolerant of unknown fields.

A view wraps the object from the apiserver. The controller and the projector read through views and write
plain dictionaries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crds import conditions
from crds.kinds import Kind
from crds.names import (
    ANNOTATION_BOUND_AT,
    ANNOTATION_CREATED_BY,
    ANNOTATION_ERASED,
    ANNOTATION_FAILING_NOTIFICATIONS,
    LABEL_DEPLOYMENT,
    LABEL_RUN,
    LABEL_WARM,
    LABEL_WARM_BUILDER,
)
from crds.reasons import TERMINAL_RUN_PHASES
from crds.times import parse_time

DEFAULT_PLAN = "free"
"""The plan of a Project that names none; the smallest."""
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Object:
    """A view of any object."""

    raw: Json

    @property
    def metadata(self) -> Json:
        """The object's metadata."""
        metadata: Json = self.raw.get("metadata") or {}
        return metadata

    @property
    def spec(self) -> Json:
        """The desired state."""
        spec: Json = self.raw.get("spec") or {}
        return spec

    @property
    def status(self) -> Json:
        """The observed state."""
        status: Json = self.raw.get("status") or {}
        return status

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.metadata.get("namespace", ""))

    @property
    def uid(self) -> str:
        """Its uid; a recreated object of the same name has another one."""
        return str(self.metadata.get("uid", ""))

    @property
    def resource_version(self) -> str:
        """Its resourceVersion."""
        return str(self.metadata.get("resourceVersion", ""))

    @property
    def generation(self) -> int:
        """Its generation, which counts changes of the spec."""
        return int(self.metadata.get("generation", 0))

    @property
    def deleting(self) -> bool:
        """Whether it is being deleted."""
        return "deletionTimestamp" in self.metadata

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self.metadata.get("annotations") or {}

    @property
    def created_by(self) -> str | None:
        """Who created it through the API; None for other creators."""
        return self.annotations.get(ANNOTATION_CREATED_BY)

    @property
    def owner_uids(self) -> frozenset[str]:
        """The uids of its owners."""
        return frozenset(owner["uid"] for owner in self.metadata.get("ownerReferences") or ())

    def owner_uid(self, kind: Kind) -> str | None:
        """Return the uid of its owner of that kind, or None."""
        for owner in self.metadata.get("ownerReferences") or ():
            if (owner.get("kind"), owner.get("apiVersion")) == (kind.name, kind.api_version):
                return str(owner["uid"])
        return None

    @property
    def created(self) -> datetime:
        """Its creation time, in whole seconds."""
        return parse_time(str(self.metadata["creationTimestamp"]))

    @property
    def conditions(self) -> list[Json]:
        """Its conditions."""
        return list(self.status.get("conditions") or ())

    @property
    def phase(self) -> str:
        """Its phase; Pending where none is set."""
        return str(self.status.get("phase") or "Pending")

    @property
    def error(self) -> Json | None:
        """Why it failed, `{reason, message}`."""
        return self.status.get("error")


@dataclass(frozen=True)
class Project(Object):
    """A view of a Project."""

    @property
    def plan(self) -> str:
        """Its plan; free where none is set."""
        return str(self.spec.get("plan") or DEFAULT_PLAN)

    @property
    def git(self) -> Json | None:
        """Its git source."""
        return (self.spec.get("source") or {}).get("git")

    @property
    def reported_repositories(self) -> list[str]:
        """The repositories at git hosts, owner/name, to which its deployments are reported."""
        hosts = (self.spec.get("github"), self.spec.get("commitStatus"))
        return [str(host["repository"]) for host in hosts if host]

    @property
    def active(self) -> str | None:
        """The active Deployment's name."""
        return self.status.get("activeDeployment")

    @property
    def last_order(self) -> int:
        """The greatest order assigned so far."""
        return int(self.status.get("lastOrder") or 0)

    @property
    def run_nodes(self) -> list[str]:
        """The nodes to which the image of a new active Deployment is pulled ahead, newest first."""
        return list((self.status.get("pullAhead") or {}).get("nodes") or ())

    @property
    def failing_notifications(self) -> list[str]:
        """Names of its notifications that the API server has recorded as failing."""
        recorded = self.annotations.get(ANNOTATION_FAILING_NOTIFICATIONS, "").split(",")
        known = {str(entry.get("name")) for entry in self.spec.get("notifications") or ()}
        return sorted(known.intersection(recorded))


@dataclass(frozen=True)
class Deployment(Object):
    """A view of a Deployment."""

    @property
    def project(self) -> str:
        """Its Project's name."""
        return str(self.spec["project"])

    @property
    def preview(self) -> bool:
        """Whether it is a preview, which never becomes active."""
        return "preview" in self.spec

    @property
    def message(self) -> str | None:
        """The message that it was created with; else the subject of its commit, which its build has read."""
        return self.spec.get("message") or self.status.get("message")

    @property
    def image(self) -> str | None:
        """Its image by digest, after the build."""
        return self.status.get("image")

    @property
    def built(self) -> bool:
        """Whether its image is in the registry and its smoke run, if any, has succeeded."""
        return (
            bool(self.image)
            and conditions.is_true(self.conditions, conditions.BUILT)
            and not self.awaits_smoke_run
        )

    @property
    def awaits_smoke_run(self) -> bool:
        """Whether it has an image but no success of its smoke run."""
        tested = conditions.find(self.conditions, conditions.SMOKE_TESTED)
        return tested is not None and tested.get("status") != "True"

    @property
    def failed(self) -> bool:
        """Whether it failed, which is final."""
        return self.phase == "Failed"

    @property
    def order(self) -> int:
        """Its order; 0 before one is assigned."""
        return int(self.status.get("order") or 0)

    @property
    def activation(self) -> int:
        """The number of requested rollbacks to it."""
        return int(self.spec.get("activation") or 0)

    @property
    def cancel(self) -> bool:
        """Whether the cancellation of its build was requested."""
        return bool(self.spec.get("cancel"))

    @property
    def activation_seen(self) -> int:
        """The number of rollbacks handled by the controller."""
        return int(self.status.get("activationSeen") or 0)

    @property
    def unused(self) -> bool:
        """Whether it is superseded or failed, and no rollback to it is pending."""
        return (self.failed or self.phase == "Superseded") and self.activation <= self.activation_seen

    @property
    def erased(self) -> bool:
        """Whether its erasure is requested and it is unused."""
        return self.unused and ANNOTATION_ERASED in self.annotations

    @property
    def plan(self) -> Json:
        """The plan from its configuration."""
        plan: Json = self.status.get("plan") or {}
        return plan


@dataclass(frozen=True)
class Run(Object):
    """A view of a Run."""

    @property
    def project(self) -> str | None:
        """Its Project's name: resolved, else as requested."""
        return self.status.get("project") or self.spec.get("project")

    @property
    def deployment(self) -> str | None:
        """Its Deployment's name: resolved, else as requested."""
        return self.status.get("deployment") or self.spec.get("deployment")

    @property
    def cancel(self) -> bool:
        """Whether its cancellation was requested."""
        return bool(self.spec.get("cancel"))

    @property
    def ended(self) -> bool:
        """Whether its phase is terminal."""
        return self.phase in TERMINAL_RUN_PHASES

    @property
    def claim(self) -> Json | None:
        """The pod that claimed the run, `{podUid, time}`."""
        return self.status.get("claim")

    @property
    def result(self) -> Json | None:
        """The result that the pod reported."""
        return self.status.get("result")

    @property
    def input_requests(self) -> list[Json]:
        """Its open questions to a person."""
        return list(self.status.get("inputRequests") or ())

    @property
    def has_asked(self) -> bool:
        """Whether it ever asked a person."""
        return self.status.get("inputRequests") is not None

    @property
    def pod(self) -> Json | None:
        """The pod created for it, `{name, uid}`."""
        return self.status.get("pod")


@dataclass(frozen=True)
class Pod(Object):
    """A view of a pod."""

    @property
    def containers(self) -> list[Json]:
        """The statuses of its init containers and containers, in order."""
        return [
            *(self.status.get("initContainerStatuses") or ()),
            *(self.status.get("containerStatuses") or ()),
        ]

    @property
    def finished(self) -> bool:
        """Whether all of its containers have terminated for good."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def node(self) -> str:
        """The name of its node; empty before it has one."""
        return str(self.spec.get("nodeName") or "")

    @property
    def run(self) -> str | None:
        """The name of its Run; None for a pod that waits for one, or is not of a Run."""
        return self.labels.get(LABEL_RUN)

    @property
    def warm(self) -> bool:
        """Whether it was started before its Run."""
        return LABEL_WARM in self.labels

    @property
    def waits_for_build(self) -> bool:
        """Whether it was started before its build, and has none yet."""
        return LABEL_WARM_BUILDER in self.labels and LABEL_DEPLOYMENT not in self.labels

    @property
    def bound_at(self) -> datetime | None:
        """When it got its Run or build, if it was started before it."""
        bound_at = self.annotations.get(ANNOTATION_BOUND_AT)
        return parse_time(bound_at) if bound_at else None

    @property
    def assigned(self) -> datetime:
        """When it got its Run or build: its creation, unless it had waited for one."""
        return self.bound_at or self.created

    @property
    def scheduled_at(self) -> datetime:
        """When it got its node; its creation where the cluster does not say when, as on virtual nodes."""
        since = (conditions.find(self.conditions, "PodScheduled") or {}).get("lastTransitionTime")
        return parse_time(str(since)) if since else self.created

    def terminated(self, container: str) -> Json | None:
        """Return a container's `terminated` state (exitCode, reason, message, finishedAt), or None."""
        for status in self.containers:
            if status.get("name") == container:
                return (status.get("state") or {}).get("terminated")
        return None


def creation_order(item: Object) -> tuple[str, str]:
    """Return the sort key by creation: times are whole seconds, generated names are monotonic."""
    return str(item.metadata["creationTimestamp"]), item.name
