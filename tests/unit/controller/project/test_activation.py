"""Order and activation: a late build never displaces a newer one, a rollback stays until the head moves.

A small world performs the Decisions as the apiserver would, in any interleaving
of commits, uploads, builds, failures, rollbacks and looks.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.owner import reference
from controller.project.decide import decide
from controller.runtime.decision import Decision, Patch
from controller.source.observed import unobserved
from crds import conditions, kinds
from crds.deployment_name import git_name
from crds.objects import Deployment, Project

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
BUILT = {"type": "Built", "status": "True", "reason": "Built", "message": "m"}


def merged(old, change):
    found = dict(old)
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = merged(found[key], value)
        else:
            found[key] = value
    return found


@dataclass
class ActivationWorld:
    """One Project with its Deployments and its repository."""

    git: bool
    commits: list[str] = field(default_factory=list)
    head: str | None = None
    objects: dict[str, dict] = field(default_factory=dict)
    status: dict = field(default_factory=dict)
    spec_generation: int = 1
    made: int = 0
    writes: int = 0

    @property
    def project(self) -> Project:
        spec = {"source": {"git": {"url": "https://example.org/x.git"}}} if self.git else {}
        metadata = {"name": "demo", "uid": "uid-demo", "resourceVersion": "1", "generation": 1}
        return Project({"metadata": metadata, "spec": spec, "status": self.status})

    @property
    def deployments(self) -> list[Deployment]:
        return [Deployment(raw) for raw in self.objects.values()]

    def create(self, name: str, spec: dict) -> None:
        self.made += 1
        metadata = {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": f"2026-11-21T10:{self.made // 60:02d}:{self.made % 60:02d}Z",
        }
        self.objects.setdefault(name, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})

    def decided(self) -> Decision:
        """What one look decides."""
        look = None
        if self.git and self.head:
            found = unobserved(self.project)
            look = type(found)(found.source, "", "main", self.head, f"tree-{self.head}", "subject")
        return decide(self.project, self.deployments, look, NOW)

    def settle(self, rounds: int = 6) -> Decision:
        """Looks until nothing changes."""
        for _ in range(rounds):
            decision = self.decided()
            before = (str(self.objects), str(self.status))
            self.perform(decision)
            if before == (str(self.objects), str(self.status)):
                return decision
        raise AssertionError("it never settles")

    def perform(self, decision: Decision) -> None:
        for write in self.writes_of(decision):
            write()

    def writes_of(self, decision: Decision) -> list[Callable[[], None]]:
        """Each single write of a Decision, in its order."""
        writes: list[Callable[[], None]] = []
        for child in decision.create:
            writes.append(partial(self.create, child.name, dict(child.body["spec"])))
        for patch in (*decision.before, None, *decision.after):
            writes.append(partial(self.patch, patch, decision))
        return writes

    def patch(self, patch: Patch | None, decision: Decision) -> None:
        if patch is None:
            self.status = merged(self.status, decision.status or {})
        elif patch.kind == kinds.PROJECT:
            last_order = patch.body["status"].get("lastOrder")
            assert last_order is None or last_order > self.status.get("lastOrder", 0)
            self.status = merged(self.status, patch.body["status"])
        else:
            raw = self.objects[patch.name]
            raw["status"] = merged(raw["status"], patch.body.get("status", {}))
            raw["metadata"] = merged(raw["metadata"], patch.body.get("metadata", {}))

    def build(self, name: str, works: bool) -> None:
        status = self.objects[name]["status"]
        if status["phase"] == "Failed" or "image" in status:
            return
        if works:
            status.update(image="registry/x@sha256:00", conditions=[BUILT], phase="Building")
        else:
            status.update(phase="Failed", error={"reason": "BuildFailed", "message": "m"})

    @property
    def active(self) -> str | None:
        return self.status.get("activeDeployment")


def upload(world: ActivationWorld, name: str, **spec) -> None:
    world.create(name, {"project": "demo", "source": {"archive": {"upload": "upl_1"}}, **spec})


def head_name(world: ActivationWorld, attempt: int = 1) -> str:
    spec = {"source": {"git": {"url": "https://example.org/x.git", "commit": world.head}}}
    return git_name("uid-demo", spec, attempt)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "preview", "build", "build", "fail", "rollback", "look"]),
        st.integers(0, 9),
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_newest_built_deployment_without_previews_is_active(steps):
    world = ActivationWorld(git=False)
    last_rollback = None
    for what, which in steps:
        names = list(world.objects)
        if what in ("create", "preview"):
            preview = {"preview": {}} if what == "preview" else {}
            upload(world, f"dep-{len(names):03d}", **preview)
            last_rollback = None
        elif names:
            name = names[which % len(names)]
            raw = world.objects[name]
            if what in ("build", "fail"):
                world.build(name, what == "build")
            elif what == "rollback" and "image" in raw["status"]:
                raw["spec"]["activation"] = raw["spec"].get("activation", 0) + 1
                last_rollback = None if "preview" in raw["spec"] else name
        world.settle()
        views = world.deployments
        fit = [d for d in views if d.built and not d.preview and d.order]
        best = max(fit, key=lambda d: d.order, default=None)
        assert world.active == (best.name if best else None)
        orders = [d.order for d in views if d.order]
        assert len(orders) == len(set(orders))
        assert all(not d.order for d in views if d.preview)
        assert world.status.get("lastOrder", 0) >= max(orders, default=0)
        phases = {d.name: d.phase for d in views if d.built}
        assert [name for name, phase in phases.items() if phase == "Active"] == (
            [world.active] if world.active else []
        )
        assert all(phase in ("Active", "Superseded") for phase in phases.values())
        if last_rollback:
            assert world.active == last_rollback


@settings(max_examples=100, deadline=None)
@given(st.permutations(range(4)))
def test_newest_is_active_after_builds_end_in_any_order(order):
    world = ActivationWorld(git=False)
    for index in range(4):
        upload(world, f"dep-{index}")
        world.settle()
    greatest = -1
    for index in order:
        world.build(f"dep-{index}", True)
        world.settle()
        greatest = max(greatest, index)
        assert world.active == f"dep-{greatest}"
    never = [d for d in world.deployments if d.phase == "Superseded" and "activatedAt" not in d.status]
    assert {d.name for d in never} == {
        f"dep-{i}" for at, i in enumerate(order) if any(j > i for j in order[:at])
    }


def deploy(world: ActivationWorld, commit: str) -> str:
    world.head = commit
    world.settle()
    name = head_name(world)
    world.build(name, True)
    world.settle()
    return name


def test_rollback_lasts_until_the_head_has_another_tree():
    world = ActivationWorld(git=True)
    one, two = deploy(world, "1" * 40), deploy(world, "2" * 40)
    assert world.active == two
    world.objects[one]["spec"]["activation"] = 1
    world.settle()
    assert world.active == one
    before = dict(world.status)
    for _ in range(3):
        world.settle()
    assert world.active == one and world.status == before
    assert world.objects[one]["status"]["activationSeen"] == 1
    world.objects[one]["spec"]["activation"] = 2
    world.settle()
    assert world.status["lastOrder"] == before["lastOrder"]
    three = deploy(world, "3" * 40)
    assert world.active == three


def test_activation_event_names_predecessor_and_cause():
    world = ActivationWorld(git=True)
    one, two = deploy(world, "1" * 40), deploy(world, "2" * 40)
    world.objects[one]["spec"]["activation"] = 1
    [note] = [note for note in world.decided().events if note.reason == "Activated"]
    assert note.message == f"{one} is the active deployment, replacing {two} (rollback)."
    first = ActivationWorld(git=True)
    first.head = "1" * 40
    first.settle()
    first.build(head_name(first), True)
    [note] = [note for note in first.decided().events if note.reason == "Activated"]
    assert note.message == f"{head_name(first)} is the active deployment."


def test_reverted_head_is_activated_without_a_new_deployment():
    world = ActivationWorld(git=True)
    one, two = deploy(world, "1" * 40), deploy(world, "2" * 40)
    world.head = "1" * 40
    world.settle()
    assert world.active == one
    assert set(world.objects) == {one, two}
    assert world.objects[two]["status"]["phase"] == "Superseded"


def test_reverted_head_with_a_failed_deployment_is_retried():
    world = ActivationWorld(git=True)
    world.head = "1" * 40
    world.settle()
    failed = head_name(world)
    world.build(failed, False)
    world.settle()
    assert len(world.objects) == 1
    two = deploy(world, "2" * 40)
    world.head = "1" * 40
    world.settle()
    again = head_name(world, 2)
    assert world.objects[again]["spec"]["attempt"] == 2
    assert world.active == two
    world.build(again, True)
    world.settle()
    assert world.active == again
    assert len(world.objects) == 3


def test_posted_commit_is_ordered_only_at_the_head():
    world = ActivationWorld(git=True)
    one = deploy(world, "1" * 40)
    git = {"url": "https://example.org/x.git", "commit": "9" * 40}
    world.create("dep-posted", {"project": "demo", "source": {"git": git}})
    world.settle()
    world.build("dep-posted", True)
    world.settle()
    assert world.active == one
    posted = world.objects["dep-posted"]["status"]
    assert "order" not in posted and posted["phase"] == "Superseded"
    world.objects["dep-posted"]["spec"]["activation"] = 1
    world.settle()
    assert world.active == "dep-posted"


def test_posted_commit_without_an_observed_head_needs_an_activation():
    world = ActivationWorld(git=True)
    git = {"url": "https://example.org/x.git", "commit": "9" * 40}
    world.create("dep-posted", {"project": "demo", "source": {"git": git}})
    world.settle()
    world.build("dep-posted", True)
    world.settle()
    [posted] = world.deployments
    ready = conditions.find(posted.conditions, conditions.READY)
    assert (world.active, posted.phase) == (None, "Superseded")
    assert ready["message"].startswith("No deployment is active;")
    world.objects["dep-posted"]["spec"]["activation"] = 1
    world.settle()
    assert world.active == "dep-posted"


def test_deleting_the_active_deployment_activates_the_next():
    world = ActivationWorld(git=False)
    for name in ("dep-0", "dep-1"):
        upload(world, name)
        world.settle()
        world.build(name, True)
        world.settle()
    del world.objects["dep-1"]
    world.settle()
    assert world.active == "dep-0"
    del world.objects["dep-0"]
    world.settle()
    assert "activeDeployment" not in world.status


@pytest.mark.parametrize("reachable", [True, False])
def test_head_deployed_again_after_its_deletion_gets_a_new_order(reachable):
    world = ActivationWorld(git=True)
    one, two, three = (deploy(world, digit * 40) for digit in "123")
    world.head = "3" * 40 if reachable else None
    spec = world.objects.pop(three)["spec"]
    world.settle()
    assert world.active == two
    world.objects[one]["spec"]["activation"] = 1
    world.settle()
    assert world.active == one
    world.create(three, spec)
    world.settle()
    world.head = "3" * 40
    world.settle()
    world.build(three, True)
    world.settle()
    assert (world.active, world.objects[three]["status"]["order"]) == (three, 5)
    assert world.status["source"]["order"] == 5


def test_new_attempt_at_a_failed_head_gets_a_new_order_after_a_rollback():
    world = ActivationWorld(git=True)
    one = deploy(world, "1" * 40)
    world.head = "2" * 40
    world.settle()
    failed = head_name(world)
    world.build(failed, False)
    world.objects[one]["spec"]["activation"] = 1
    world.settle()
    again = head_name(world, 2)
    world.create(again, {**world.objects[failed]["spec"], "attempt": 2})
    world.settle()
    world.build(again, True)
    world.settle()
    orders = {name: raw["status"]["order"] for name, raw in world.objects.items()}
    assert orders == {failed: 2, one: 3, again: 4}
    assert (world.active, world.status["source"]["order"]) == (again, 4)


class Crashed(Exception):
    """The controller crashed."""


def interrupted(
    world: ActivationWorld, crashes: set[int], rollback: tuple[int, str] | None, rounds: int = 12
) -> int:
    """Looks until nothing changes, dying after the writes named; how many writes there were.

    The rollback lands after that many writes. A write whose object changed since it
    was read is refused, and the look ends there, as at the apiserver.
    """
    count = 0

    def landed() -> set[str]:
        if rollback is None or rollback[0] != count:
            return set()
        spec = world.objects[rollback[1]]["spec"]
        spec["activation"] = spec.get("activation", 0) + 1
        return {rollback[1]}

    for _ in range(rounds):
        before = (str(world.objects), str(world.status))
        decision = world.decided()
        try:
            stale = landed()
            for write in world.writes_of(decision):
                if write.args[0] is not None and getattr(write.args[0], "name", "") in stale:
                    raise Crashed
                state = (str(world.objects), str(world.status))
                write()
                if state == (str(world.objects), str(world.status)):
                    continue
                count += 1
                if count in crashes:
                    raise Crashed
                stale |= landed()
        except Crashed:
            continue
        if before == (str(world.objects), str(world.status)):
            return count
    raise AssertionError("it never settles")


def two_heads_and(commit: str) -> tuple[ActivationWorld, str, list[str]]:
    """Two commits were deployed, then the head moves: the world, the head's Deployment, the others."""
    world = ActivationWorld(git=True)
    one, two = deploy(world, "1" * 40), deploy(world, "2" * 40)
    world.head = commit * 40
    return world, head_name(world), [name for name in (one, two) if name != head_name(world)]


@pytest.mark.parametrize("commit", ["1", "3"])
def test_head_move_survives_a_crash_after_any_write(commit):
    world, head, _ = two_heads_and(commit)
    total = interrupted(copy.deepcopy(world), set(), None)
    for first in range(1, total + 1):
        for second in range(first, total + 3):
            tried = copy.deepcopy(world)
            interrupted(tried, {first, second}, None)
            tried.build(head, True)
            interrupted(tried, set(), None)
            assert tried.active == head, (first, second)


@pytest.mark.parametrize("commit", ["1", "3"])
def test_rollback_survives_a_crash_at_any_write(commit):
    world, head, others = two_heads_and(commit)
    total = interrupted(copy.deepcopy(world), set(), None)
    for lands in range(1, total + 1):
        for other in others:
            for first in range(1, total + 4):
                for second in range(first, total + 6):
                    tried = copy.deepcopy(world)
                    interrupted(tried, {first, second}, (lands, other))
                    tried.build(head, True)
                    interrupted(tried, set(), None)
                    assert tried.active == other, (lands, other, first, second)
                    orders = [d.order for d in tried.deployments if d.order]
                    assert len(orders) == len(set(orders))


def orphan(world: ActivationWorld, name: str, order: int) -> None:
    """A built Deployment of the head that an earlier Project of this name has left without an owner."""
    source = {"git": {"url": "https://example.org/x.git", "commit": world.head}}
    world.create(name, {"project": "demo", "source": source, "attempt": 1})
    world.build(name, True)
    world.objects[name]["status"]["order"] = order


def test_orders_are_unique_beside_deployments_of_an_earlier_project():
    world = ActivationWorld(git=True, head="a" * 40)
    orphan(world, "dep-earlier", 3)
    world.settle()
    world.build(head_name(world), True)
    world.settle()
    assert {name: raw["status"]["order"] for name, raw in world.objects.items()} == {
        "dep-earlier": 3,
        head_name(world): 4,
    }
    assert world.active == head_name(world)
    # A rollback to it holds until the head moves.
    world.objects["dep-earlier"]["spec"]["activation"] = 1
    world.settle()
    assert world.active == "dep-earlier"
    assert world.objects["dep-earlier"]["status"]["order"] == 5


def test_a_new_project_adopts_ended_deployments_without_an_owner():
    world = ActivationWorld(git=True, head="a" * 40)
    orphan(world, "dep-built", 1)
    upload(world, "dep-failed")
    world.build("dep-failed", False)
    upload(world, "dep-waits")
    earlier = {**reference(kinds.PROJECT, world.project), "uid": "uid-earlier"}
    orphan(world, "dep-dying", 2)
    world.objects["dep-dying"]["metadata"]["ownerReferences"] = [earlier]
    world.settle()
    owners = {
        name: [owner["uid"] for owner in raw["metadata"].get("ownerReferences") or ()]
        for name, raw in world.objects.items()
        if name != head_name(world)
    }
    # The reconcile of a Deployment adopts one that is not built. One with an owner is deleted with that.
    assert owners == {
        "dep-built": ["uid-demo"],
        "dep-failed": ["uid-demo"],
        "dep-waits": [],
        "dep-dying": ["uid-earlier"],
    }
