"""Refusals of commit statuses, with a host that answers as the test says."""

import base64
from datetime import UTC, datetime

from controller.commit_status.reconcile import CommitStatusReconciler
from controller.commit_status.request import StatusProblem
from crds import kinds
from crds.objects import Object
from crds.times import format_time
from tests.unit.controller.memory_kube import ReconcilerTestbed

SECRET = {
    "metadata": {"name": "git-host", "labels": {"crewyard.dev/project": "demo"}},
    "data": {"token": base64.b64encode(b"a token for tests only").decode()},
}
COMMIT = {"git": {"url": "https://git.example.com/team/crew.git", "commit": "a" * 40}}


class Host:
    """A host of commit statuses; `problem` is what a call raises."""

    problem: StatusProblem | None = None

    async def send(self, provider: str, request: object) -> None:
        if self.problem is not None:
            raise self.problem


async def test_a_refusal_after_a_success_is_a_second_event(make, config):
    testbed, host = ReconcilerTestbed(), Host()
    testbed.kube.put(kinds.SECRET, Object(SECRET))
    settings = {"provider": "gitlab", "repository": "team/crew", "secretRef": {"name": "git-host"}}
    testbed.show(kinds.PROJECT, make.project(commitStatus=settings))
    reconciler = CommitStatusReconciler(testbed.applier, config, host)
    created = {"creationTimestamp": format_time(datetime.now(UTC))}
    found = []
    for phase, problem in [
        ("Pending", "gitlab responded 403: no"),
        ("Pending", "gitlab responded 403: no"),
        ("Pending", None),
        ("Building", "gitlab responded 403: no"),
    ]:
        host.problem = StatusProblem(problem, False) if problem else None
        shown = make.deployment("dep-a", built=False, phase=phase, source=COMMIT, metadata=dict(created))
        testbed.show(kinds.DEPLOYMENT, shown)
        await reconciler.reconcile("dep-a")
        queue = testbed.applier.recorder._queue
        found.append(len([queue.get_nowait() for _ in range(queue.qsize())]))
    assert found == [1, 0, 0, 1]
