"""Projects against a real apiserver and a real git server; the test writes build results."""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crds import kinds
from crds.deployment_name import git_name
from crds.names import ANNOTATION_FAILING_NOTIFICATIONS
from crds.objects import Deployment
from tests.cluster.controller.conftest import (
    WAIT_SECONDS,
    ControllerTestbed,
    both_triggers,
    condition,
    controller,
    settings,
)
from tests.testbed.git_server import GitServer

MAX_READS_OF_A_COMMIT = 12
DELETE_OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with GitServer(tmp_path) as made:
        yield made


async def deployments(testbed, project="demo"):
    listing = await testbed.kube.list(kinds.DEPLOYMENT, fields=f"spec.project={project}")
    return {d.spec.get("gitSha", d.name): d for d in map(Deployment, listing.items)}


async def wait_deployment(testbed, commit, seconds=WAIT_SECONDS):
    async with asyncio.timeout(seconds):
        while commit not in (found := await deployments(testbed)):
            await asyncio.sleep(0.05)
    return found[commit]


async def settle_polls(testbed, server, count):
    """Wait until the controller has looked at git `count` times from now, and has reconciled what it saw."""
    expected = len(reads(server)) + count
    async with asyncio.timeout(WAIT_SECONDS):
        while len(reads(server)) < expected:
            await asyncio.sleep(0.05)
    await testbed.settle()


def reads(server):
    return [line for line in server.requests if line.startswith("GET ")]


def status_of(o):
    return o["status"].get("phase")


async def test_next_commit_supersedes_the_active_deployment(testbed, server):
    repository = server.create("crew")
    first = repository.commit({"main.py": "1"}, "A first commit\n\nwith a body")
    project = await testbed.project(source={"git": {"url": server.url("crew"), "ref": {"branch": "main"}}})
    one = await wait_deployment(testbed, first)
    assert one.spec["message"] == "A first commit"
    assert one.name == git_name(project.uid, one.raw["spec"], 1)
    assert one.owner_uids == {project.uid}
    await testbed.mark_built(one.name)
    await testbed.wait_active(one.name)
    second = repository.commit({"main.py": "2"}, "A second commit")
    two = await wait_deployment(testbed, second)
    assert (await testbed.kube.get(kinds.PROJECT, "demo"))["status"]["activeDeployment"] == one.name
    await testbed.mark_built(two.name)
    await testbed.wait_active(two.name)
    await testbed.until(kinds.DEPLOYMENT, one.name, lambda o: status_of(o) == "Superseded")
    found = await testbed.until(
        kinds.PROJECT, "demo", lambda o: o["status"].get("source", {}).get("commit") == second
    )
    assert condition(found, "Ready") == ("True", "Resolved")
    ended = Deployment(await testbed.kube.get(kinds.DEPLOYMENT, two.name))
    assert ended.order == found["status"]["lastOrder"]
    assert ended.status["activatedAt"] == found["status"]["activatedAt"]
    assert condition(ended, "Ready") == ("True", "Active")


async def test_rollback_stays_until_the_branch_moves(testbed, server):
    repository = server.create("crew")
    names = []
    await testbed.project(source={"git": {"url": server.url("crew")}})
    for index in range(2):
        commit = repository.commit({"main.py": str(index)}, f"Commit {index}")
        names.append((await wait_deployment(testbed, commit)).name)
        await testbed.mark_built(names[-1])
        await testbed.wait_active(names[-1])
    await testbed.kube.patch(kinds.DEPLOYMENT, names[0], {"spec": {"activation": 1}})
    await testbed.wait_active(names[0])
    await testbed.until(kinds.DEPLOYMENT, names[1], lambda o: status_of(o) == "Superseded")
    await settle_polls(testbed, server, 2)
    assert (await testbed.kube.get(kinds.PROJECT, "demo"))["status"]["activeDeployment"] == names[0]
    third = await wait_deployment(testbed, repository.commit({"main.py": "3"}, "Commit 3"))
    await testbed.mark_built(third.name)
    await testbed.wait_active(third.name)


async def test_idle_project_is_never_written(testbed, server):
    repository = server.create("crew")
    commit = repository.commit({"crew/main.py": "1", "README": "1"}, "A commit")
    await testbed.project(source={"git": {"url": server.url("crew"), "path": "crew"}})
    one = await wait_deployment(testbed, commit)
    await testbed.mark_built(one.name)
    await testbed.wait_active(one.name)
    await testbed.until(
        kinds.PROJECT,
        "demo",
        lambda o: condition(o, "Ready") == ("True", "Resolved") and o["status"]["source"]["commit"] == commit,
    )
    await testbed.settle()
    before = await testbed.kube.get(kinds.PROJECT, "demo")
    await settle_polls(testbed, server, 3)
    after = await testbed.kube.get(kinds.PROJECT, "demo")
    assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    outside = repository.commit({"crew/main.py": "1", "README": "2"}, "Outside the path")
    await testbed.until(kinds.PROJECT, "demo", lambda o: o["status"]["source"]["commit"] == outside)
    assert set(await deployments(testbed)) == {commit}


@pytest.mark.parametrize(
    ("source", "reason", "words"),
    [
        ({"name": "none"}, "GitNotFound", "correct spec.source.git.url"),
        ({"name": "crew", "ref": {"branch": "nope"}}, "BranchNotFound", "branches: main"),
        ({"name": "empty"}, "EmptyRepository", "push one"),
        ({"name": "crew", "path": "nope"}, "PathNotFound", "correct spec.source.git.path"),
        ({"name": "crew", "secretRef": {"name": "none"}}, "SecretNotFound", "create it"),
        ({"url": "http://169.254.169.254/x.git"}, "AddressRefused", "CREWYARD_NET_ALLOW"),
        ({"url": "http://127.0.0.1:9/x.git"}, "Unreachable", "will retry"),
    ],
)
async def test_unreadable_source_names_the_next_step(testbed, server, source, reason, words):
    server.create("crew").commit({"main.py": "1"}, "A commit")
    server.create("empty")
    git = dict(source)
    git.setdefault("url", server.url(git.pop("name", "crew")))
    await testbed.project(source={"git": git})
    found = await testbed.until(kinds.PROJECT, "demo", lambda o: condition(o, "Ready") == ("False", reason))
    message = next(c["message"] for c in found["status"]["conditions"] if c["type"] == "Ready")
    assert words in message
    assert condition(found, "SourceResolved") == ("False", reason)


async def test_credentials_come_from_the_secret(testbed, tmp_path):
    with GitServer(tmp_path, username="me", password="secret") as server:
        commit = server.create("crew").commit({"main.py": "1"}, "A commit")
        await testbed.project(source={"git": {"url": server.url("crew"), "secretRef": {"name": "git"}}})
        await testbed.until(
            kinds.PROJECT, "demo", lambda o: condition(o, "Ready") == ("False", "SecretNotFound")
        )
        secret = {"metadata": {"name": "git"}, "stringData": {"username": "me", "password": "wrong"}}
        await testbed.kube.create(kinds.SECRET, secret)
        await testbed.until(
            kinds.PROJECT, "demo", lambda o: condition(o, "Ready") == ("False", "GitAuthFailed")
        )
        await testbed.kube.patch(kinds.SECRET, "git", {"stringData": {"password": "secret"}})
        await wait_deployment(testbed, commit)


@both_triggers
async def test_late_build_never_replaces_a_newer_one(testbed):
    await testbed.project()
    for name in ("dep-1", "dep-2"):
        spec = {"project": "demo", "source": {"archive": {"upload": "upl_1"}}}
        await testbed.kube.create(kinds.DEPLOYMENT, {"metadata": {"name": name}, "spec": spec})
        await testbed.until(kinds.DEPLOYMENT, name, lambda o: o["status"].get("order"))
    await testbed.mark_built("dep-2")
    await testbed.wait_active("dep-2")
    await testbed.mark_built("dep-1")
    late = await testbed.until(kinds.DEPLOYMENT, "dep-1", lambda o: status_of(o) == "Superseded")
    assert "activatedAt" not in late["status"]
    assert (await testbed.kube.get(kinds.PROJECT, "demo"))["status"]["activeDeployment"] == "dep-2"


async def test_failed_revision_is_retried_on_request(testbed, server):
    """Slow: pods of a build start on the node and fail, with its retries."""
    repository = server.create("crew")
    commit = repository.commit({"main.py": "1"}, "A commit")
    project = await testbed.project(source={"git": {"url": server.url("crew")}})
    one = await wait_deployment(testbed, commit)
    await testbed.until(kinds.DEPLOYMENT, one.name, lambda o: status_of(o) == "Failed", 900)
    await settle_polls(testbed, server, 2)
    assert len((await testbed.kube.list(kinds.DEPLOYMENT)).items) == 1
    request = {"metadata": {"annotations": {"crewyard.dev/requestedAt": "2999-01-01T00:00:00Z"}}}
    await testbed.kube.patch(kinds.PROJECT, "demo", request)
    again = git_name(project.uid, one.raw["spec"], 2)
    found = await testbed.until(kinds.DEPLOYMENT, again, lambda o: o["status"].get("order"))
    assert found["spec"]["attempt"] == 2


async def mark_pushed(testbed, text):
    """Annotate the Project as a webhook does."""
    await testbed.kube.patch(
        kinds.PROJECT, "demo", {"metadata": {"annotations": {"crewyard.dev/pushedAt": text}}}
    )


async def test_push_polls_now_and_skips_failed_commits(testbed, server):
    repository = server.create("crew")
    first = repository.commit({"main.py": "1"}, "A commit")
    await testbed.project(source={"git": {"url": server.url("crew"), "interval": "1h"}})
    one = await wait_deployment(testbed, first)
    failed = {"phase": "Failed", "error": {"reason": "BuildFailed", "message": "played"}}
    await testbed.kube.patch(kinds.DEPLOYMENT, one.name, {"status": failed}, "status")
    seen = len(reads(server))
    await mark_pushed(testbed, "2999-01-01T00:00:00Z")
    async with asyncio.timeout(WAIT_SECONDS):
        while len(reads(server)) == seen:
            await asyncio.sleep(0.05)
    await testbed.settle()
    assert len((await testbed.kube.list(kinds.DEPLOYMENT)).items) == 1
    second = repository.commit({"main.py": "2"}, "Another one")
    await mark_pushed(testbed, "2999-01-01T00:00:01Z")
    await wait_deployment(testbed, second)


async def create_active_deployment(testbed, index):
    """Create a built Deployment and wait until it is active."""
    name = f"dep-{index}"
    spec = {"project": "demo", "source": {"archive": {"upload": "upl_1"}}}
    await testbed.kube.create(kinds.DEPLOYMENT, {"metadata": {"name": name}, "spec": spec})
    await testbed.until(kinds.DEPLOYMENT, name, lambda o: o["status"].get("order"))
    await testbed.mark_built(name, image=f"{testbed.config.repository('demo')}@sha256:{index:064d}")
    await testbed.wait_active(name)


async def prune_pods(testbed):
    found = (await testbed.kube.list(kinds.POD, "app.kubernetes.io/component=prune")).items
    return [pod for pod in found if not pod["spec"].get("schedulingGates")]


async def test_retention_deletes_images_then_deployments(testbed):
    """Slow: four builds, and a pod that deletes an image."""
    await testbed.project(retention={"deployments": 2})
    for index in range(2):
        await create_active_deployment(testbed, index)
    await testbed.run("run-a", deployment="dep-0")
    await testbed.until(kinds.RUN, "run-a", lambda o: o["status"].get("pod"))
    for index in (2, 3):
        await create_active_deployment(testbed, index)
    async with asyncio.timeout(WAIT_SECONDS):
        while not (pods := await prune_pods(testbed)):
            await asyncio.sleep(0.05)
    env = {e["name"]: e.get("value") for e in pods[0]["spec"]["containers"][0]["env"]}
    request = json.loads(env["CREWYARD_PRUNE"])
    # The Run uses dep-0, so retention selects the next one.
    assert [image[-1] for image in request["images"]] == ["1"] and len(pods) == 1
    assert await testbed.kube.get(kinds.DEPLOYMENT, "dep-1")
    # Its image is being deleted: a rollback to it has no effect.
    await testbed.kube.patch(kinds.DEPLOYMENT, "dep-1", {"spec": {"activation": 1}})
    await testbed.settle()
    assert (await testbed.kube.get(kinds.PROJECT, "demo"))["status"]["activeDeployment"] == "dep-3"
    # The test image has no `build` module; the test writes the status of a successful pod.
    name = pods[0]["metadata"]["name"]
    failed = await testbed.until(kinds.POD, name, lambda o: o["status"]["phase"] == "Failed")
    (container,) = failed["status"]["containerStatuses"]
    container["state"]["terminated"] |= {"exitCode": 0, "message": '{"outcome": "pruned"}'}
    status = {"phase": "Succeeded", "containerStatuses": [container]}
    async with asyncio.timeout(WAIT_SECONDS):
        for attempt in itertools.count():
            await testbed.set_pod_status(name, failed["metadata"]["uid"], status)
            # Only the watch reports an ended pod; a change of the Project triggers a reconcile.
            change = {"metadata": {"annotations": {"attempt": str(attempt)}}}
            await testbed.kube.patch(kinds.PROJECT, "demo", change)
            if await testbed.kube.get(kinds.DEPLOYMENT, "dep-1") is None:
                break
            await asyncio.sleep(0.1)
    assert {d.name for d in (await deployments(testbed)).values()} == {"dep-0", "dep-2", "dep-3"}


async def test_recorded_failing_notifications_become_a_condition(testbed):
    secret = {"secretRef": {"name": "hook"}, "events": ["run.failed"]}
    entry = {"name": "chat", "url": "https://hooks.example.com/in", **secret}
    await testbed.project(notifications=[entry])
    for recorded, expected in (("chat,other", ("True", "DeliveryFailed")), (None, None)):
        annotations = {ANNOTATION_FAILING_NOTIFICATIONS: recorded}
        await testbed.kube.patch(kinds.PROJECT, "demo", {"metadata": {"annotations": annotations}})
        await testbed.until(
            kinds.PROJECT, "demo", lambda o, x=expected: condition(o, "NotificationsFailing") == x
        )


async def test_a_commit_costs_few_live_reads(kube, server):
    """From the push until the Deployment is active; the test plays the build."""
    repository = server.create("crew")
    first = repository.commit({"main.py": "1"}, "One")
    config = settings(kube.namespace)
    async with controller(kube, config) as process:
        testbed = ControllerTestbed(kube, config, process)
        await testbed.project(source={"git": {"url": server.url("crew"), "interval": "1h"}})
        name = (await wait_deployment(testbed, first)).name
        await testbed.mark_built(name)
        await testbed.wait_active(name)
        await testbed.settle()
        reads: Counter[str] = Counter()
        client = process.own.recorder._kube
        read = client.get

        async def get(kind, name):
            reads[kind.name] += 1
            return await read(kind, name)

        client.get = get
        second = repository.commit({"main.py": "2"}, "Two")
        await mark_pushed(testbed, "2999-01-01T00:00:00Z")
        name = (await wait_deployment(testbed, second)).name
        await testbed.mark_built(name)
        await testbed.wait_active(name)
        await testbed.until(kinds.PROJECT, "demo", lambda o: o["status"]["source"]["commit"] == second)
        # What follows from the activation is counted too.
        await testbed.settle()
    assert 0 < sum(reads.values()) <= MAX_READS_OF_A_COMMIT, reads


async def test_a_new_project_adopts_the_deployments_that_an_earlier_one_left(testbed, server):
    repository = server.create("crew")
    commit = repository.commit({"main.py": "1"}, "A commit")
    source = {"git": {"url": server.url("crew"), "ref": {"branch": "main"}}}
    earlier = await testbed.project(source=source)
    left = await wait_deployment(testbed, commit)
    await testbed.mark_built(left.name)
    await testbed.wait_active(left.name)
    path = kinds.PROJECT.path(testbed.kube.namespace, "demo")
    await testbed.kube.call("DELETE", path, body={**DELETE_OPTIONS, "propagationPolicy": "Orphan"})
    async with asyncio.timeout(WAIT_SECONDS):
        while await testbed.kube.get(kinds.PROJECT, "demo") is not None:
            await asyncio.sleep(0.1)
    project = await testbed.project(source=source)
    assert project.uid != earlier.uid

    def is_adopted(obj):
        owners = obj["metadata"].get("ownerReferences") or ()
        return [owner["uid"] for owner in owners] == [project.uid]

    await testbed.until(kinds.DEPLOYMENT, left.name, is_adopted)
    own = git_name(project.uid, left.spec, 1)
    await testbed.until(kinds.DEPLOYMENT, own, lambda obj: obj["status"].get("order"))
    await testbed.mark_built(own)
    await testbed.wait_active(own)
    await testbed.settle()
    orders = {
        name: (await testbed.kube.get(kinds.DEPLOYMENT, name))["status"]["order"] for name in (left.name, own)
    }
    assert orders == {left.name: 1, own: 2}
    await testbed.kube.patch(kinds.DEPLOYMENT, left.name, {"spec": {"activation": 1}})
    await testbed.wait_active(left.name)
