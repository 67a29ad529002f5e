"""Views of the three kinds: read-only, typed, and tolerant of fields they do not know.

A view wraps the object as the apiserver gave it. The controller and the
projector read through views; what they write are plain dictionaries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crds import conditions
from crds.kinds import Kind
from crds.reasons import RUN_ENDS
from crds.times import parse_time

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Object:
    """What every object has."""

    raw: Json

    @property
    def metadata(self) -> Json:
        """The object's metadata."""
        found: Json = self.raw.get("metadata") or {}
        return found

    @property
    def spec(self) -> Json:
        """What is wanted."""
        found: Json = self.raw.get("spec") or {}
        return found

    @property
    def status(self) -> Json:
        """What was seen."""
        found: Json = self.raw.get("status") or {}
        return found

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
        """Its uid: another object of the same name has another one."""
        return str(self.metadata.get("uid", ""))

    @property
    def resource_version(self) -> str:
        """Its resourceVersion."""
        return str(self.metadata.get("resourceVersion", ""))

    @property
    def generation(self) -> int:
        """How often the spec changed."""
        return int(self.metadata.get("generation", 0))

    @property
    def deleting(self) -> bool:
        """Whether its deletion has begun."""
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
    def owner_uids(self) -> frozenset[str]:
        """The uids of its owners."""
        return frozenset(owner["uid"] for owner in self.metadata.get("ownerReferences") or ())

    def owner_uid(self, kind: Kind) -> str | None:
        """The uid of its owner of that kind; None while it has none."""
        for owner in self.metadata.get("ownerReferences") or ():
            if (owner.get("kind"), owner.get("apiVersion")) == (kind.name, kind.api_version):
                return str(owner["uid"])
        return None

    @property
    def created(self) -> datetime:
        """When it was created, in whole seconds."""
        return parse_time(str(self.metadata["creationTimestamp"]))

    @property
    def conditions(self) -> list[Json]:
        """Its conditions."""
        return list(self.status.get("conditions") or ())

    @property
    def phase(self) -> str:
        """Its phase; Pending where none was written."""
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
        return str(self.spec.get("plan") or "free")

    @property
    def git(self) -> Json | None:
        """Its git source."""
        return (self.spec.get("source") or {}).get("git")

    @property
    def active(self) -> str | None:
        """The active Deployment's name."""
        return self.status.get("activeDeployment")

    @property
    def last_order(self) -> int:
        """The greatest order given so far."""
        return int(self.status.get("lastOrder") or 0)


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
    def image(self) -> str | None:
        """Its image by digest, once built."""
        return self.status.get("image")

    @property
    def built(self) -> bool:
        """Whether its image is in the registry."""
        return bool(self.image) and conditions.is_true(self.conditions, conditions.BUILT)

    @property
    def failed(self) -> bool:
        """Whether it failed, which is final."""
        return self.phase == "Failed"

    @property
    def order(self) -> int:
        """Its order; 0 where it has none yet."""
        return int(self.status.get("order") or 0)

    @property
    def activation(self) -> int:
        """How often a rollback to it was asked for."""
        return int(self.spec.get("activation") or 0)

    @property
    def activation_seen(self) -> int:
        """How many of these were answered."""
        return int(self.status.get("activationSeen") or 0)

    @property
    def plan(self) -> Json:
        """What its configuration says."""
        found: Json = self.status.get("plan") or {}
        return found


@dataclass(frozen=True)
class Run(Object):
    """A view of a Run."""

    @property
    def project(self) -> str | None:
        """Its Project's name: as resolved, else as asked for."""
        return self.status.get("project") or self.spec.get("project")

    @property
    def deployment(self) -> str | None:
        """Its Deployment's name: as resolved, else as asked for."""
        return self.status.get("deployment") or self.spec.get("deployment")

    @property
    def cancel(self) -> bool:
        """Whether its cancellation was asked for."""
        return bool(self.spec.get("cancel"))

    @property
    def ended(self) -> bool:
        """Whether it has reached its end."""
        return self.phase in RUN_ENDS

    @property
    def claim(self) -> Json | None:
        """The pod that was given the run, `{podUid, time}`."""
        return self.status.get("claim")

    @property
    def result(self) -> Json | None:
        """What the pod reported."""
        return self.status.get("result")

    @property
    def pod(self) -> Json | None:
        """The pod that was made for it, `{name, uid}`."""
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
        """Whether no container of it will run again."""
        return self.phase in ("Succeeded", "Failed")

    def terminated(self, container: str) -> Json | None:
        """How a container ended (`exitCode`, `reason`, `message`, `finishedAt`); None while it has not."""
        for status in self.containers:
            if status.get("name") == container:
                return (status.get("state") or {}).get("terminated")
        return None
